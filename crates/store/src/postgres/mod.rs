//! Everything in one Postgres, which several schedulers may share.
//!
//! One file a stage; each is SQL and what to do with its rows. What a stage does to a record is in
//! `transition.rs`, for every store alike. Lists go to the database as arrays: a stage is a few
//! statements, however long its list.

mod connect;
mod seal;
mod migrate;
mod fault;
mod clock;
mod desk;
mod room;
mod queues;
mod marks;
mod tell;
mod row;
mod columns;
mod draft;
mod write;
mod known;
mod gather;
mod submit;
mod claim;
mod grants;
mod limits;
mod spent;
mod start;
mod log;
mod complete;
mod plain;
mod settle;
mod cancel;
mod amend;
mod revive;
mod lease;
mod list;
mod filter;
mod read;
mod settings;
mod history;
mod lead;
mod note;
mod series;
mod notice;
mod forget;
mod old;
mod check;
mod import;
mod arrive;
mod window;
mod meet;
mod store;

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::Arc;

use deadpool_postgres::Pool;

use crate::{Error, Options};
use desk::Desk;
use gather::Gather;

/// A store in one Postgres. Must be made and used in a runtime of tokio.
pub struct Postgres {
    desk: Arc<Desk>,
    submissions: Gather,
    url: String,
    /// Which of those that share it this one is.
    id: i64,
}

impl Postgres {
    /// Connects to a database, and brings its schema up to date. Refuses what is newer, and what
    /// is half of a store.
    pub async fn connect(url: &str, options: Options) -> Result<Self, Error> {
        let pool = connect::pool(url)?;
        migrate::migrate(&pool).await?;
        import::is_whole(&pool).await?;
        Self::over(pool, url, options).await
    }

    /// Connects to a store that is there already, to look whether it is whole: makes nothing.
    pub async fn connect_to_check(url: &str, options: Options) -> Result<Self, Error> {
        let pool = connect::pool(url)?;
        migrate::is_current(&pool).await?;
        import::is_whole(&pool).await?;
        Self::over(pool, url, options).await
    }

    /// As `connect`, to move a store into it: also if an earlier try left half of it there.
    pub async fn connect_to_import(url: &str, options: Options) -> Result<Self, Error> {
        let pool = connect::pool(url)?;
        migrate::migrate(&pool).await?;
        Self::over(pool, url, options).await
    }

    async fn over(pool: Pool, url: &str, options: Options) -> Result<Self, Error> {
        let (teller, told) = tell::channel();
        let desk = Arc::new(Desk::open(pool, options, teller).await?);
        tokio::spawn(tell::run(Arc::downgrade(&desk), told));
        let id = RandomState::new().build_hasher().finish().cast_signed();
        Ok(Self { submissions: Gather::start(&desk), desk, url: url.to_owned(), id })
    }
}

#[cfg(test)]
mod tests;
