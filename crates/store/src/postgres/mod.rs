//! A store in one Postgres, which several schedulers may share.
//!
//! Each stage has a file with its SQL and the conversion of its rows. The change of a record is in
//! `transition.rs`, for every store alike. Lists go to the database as arrays, so that the number
//! of statements does not depend on their length.

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
mod scratch;
mod tasks;

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::Arc;

use deadpool_postgres::Pool;

use crate::{Error, Options};
use desk::Desk;
use gather::Gather;

pub use scratch::Scratch;

/// A store in one Postgres. Must be created and used in a tokio runtime.
pub struct Postgres {
    desk: Arc<Desk>,
    submissions: Gather,
    url: String,
    /// The id of this scheduler among its peers.
    id: i64,
}

impl Postgres {
    /// Connects to a database, and updates its schema. Refuses a newer schema, and an incomplete
    /// import.
    pub async fn connect(url: &str, options: Options) -> Result<Self, Error> {
        let pool = connect::pool(url)?;
        migrate::migrate(&pool).await?;
        import::is_whole(&pool).await?;
        Self::over(pool, url, options).await
    }

    /// Connects to an existing store for a check. Creates nothing.
    pub async fn connect_to_check(url: &str, options: Options) -> Result<Self, Error> {
        let pool = connect::pool(url)?;
        migrate::is_current(&pool).await?;
        import::is_whole(&pool).await?;
        Self::over(pool, url, options).await
    }

    /// As `connect`, for an import. Accepts an incomplete one.
    pub async fn connect_to_import(url: &str, options: Options) -> Result<Self, Error> {
        let pool = connect::pool(url)?;
        migrate::migrate(&pool).await?;
        Self::over(pool, url, options).await
    }

    async fn over(pool: Pool, url: &str, options: Options) -> Result<Self, Error> {
        let (teller, told) = tell::channel();
        let desk = Arc::new(Desk::open(pool, options, teller).await?);
        desk.tasks.spawn("notifications sent", tell::run(Arc::downgrade(&desk), told));
        let id = RandomState::new().build_hasher().finish().cast_signed();
        Ok(Self { submissions: Gather::start(&desk), desk, url: url.to_owned(), id })
    }
}

#[cfg(test)]
mod tests;
