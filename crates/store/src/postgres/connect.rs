//! Connections and their settings.

use std::str::FromStr as _;
use std::time::Duration;

use deadpool_postgres::{Manager, ManagerConfig, Pool, RecyclingMethod, Runtime};
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

use super::seal::{Seal, Sealed};
use crate::Error;

/// Limit of connections. A stage holds one at a time and waits for nothing else meanwhile. So too
/// few connections slow stages down, and cannot deadlock them.
const CONNECTIONS_MAX: usize = 12;
/// Timeout for a new connection, and for a free one of the pool.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A connection whose peer acknowledges nothing for about this time is closed. A network device
/// that drops a connection does not report it.
const SILENCE_MAX: Duration = Duration::from_secs(10);

/// The settings of every connection. Statements are written for index lookups in the order of their
/// arrays. These settings keep the planner from other plans if it believes that a table is small.
const SESSION: &str = "-c search_path=maitre -c statement_timeout=30s -c lock_timeout=10s \
    -c idle_in_transaction_session_timeout=30s -c plan_cache_mode=force_generic_plan \
    -c enable_seqscan=off -c enable_bitmapscan=off -c enable_hashjoin=off \
    -c enable_mergejoin=off -c default_transaction_isolation=read\\ committed -c jit=off";

/// The settings of a URL, and ours.
pub(super) fn config(url: &str) -> Result<(Config, Seal), Error> {
    let Sealed { url, mode, seal } = Sealed::read(url)?;
    let mut config = Config::from_str(&url).map_err(|error| {
        let cause =
            std::error::Error::source(&error).map_or(error.to_string(), ToString::to_string);
        Error::Unusable(format!(
            "the address of the store cannot be read: {cause}; it looks like \
             `postgres://user@host/database`"
        ))
    })?;
    let options = config.get_options().map(|own| format!("{SESSION} {own}"));
    config.options(options.unwrap_or_else(|| SESSION.to_owned()));
    config.application_name("maitre").connect_timeout(CONNECT_TIMEOUT);
    config
        .keepalives_idle(SILENCE_MAX / 2)
        .keepalives_interval(SILENCE_MAX / 10)
        .keepalives_retries(5)
        .tcp_user_timeout(SILENCE_MAX);
    // A local socket needs no encryption.
    let is_socket = config.get_hosts().iter().all(|host| matches!(host, Host::Unix(_)));
    let is_plain = is_socket && mode == SslMode::Prefer;
    config.ssl_mode(if is_plain { SslMode::Disable } else { mode });
    Ok((config, seal))
}

/// A pool, which connects on demand.
pub(super) fn pool(url: &str) -> Result<Pool, Error> {
    let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    let (config, seal) = config(url)?;
    let manager = Manager::from_config(config, seal, recycling);
    Pool::builder(manager)
        .max_size(CONNECTIONS_MAX)
        .runtime(Runtime::Tokio1)
        .wait_timeout(Some(CONNECT_TIMEOUT))
        .create_timeout(Some(CONNECT_TIMEOUT))
        .build()
        .map_err(|error| Error::Unusable(format!("no pool of connections: {error}")))
}
