//! How a scheduler is set up. The comments here are the reference.

use std::net::SocketAddr;

use model::{Millis, Patience};

/// Settings of a scheduler, checked by [`Config::check`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Where to listen. Only loopback addresses are allowed.
    pub listen: SocketAddr,
    /// Workers give a sign of life this often.
    pub heartbeat: Millis,
    /// A worker that gives none for so long has lost its attempts.
    pub lease: Millis,
    /// How soon a worker tries to connect again, at first and at most.
    pub reconnect: (Millis, Millis),
    /// An attempt whose worker was not heard of for so long is given up, whatever its lease.
    pub stale_heartbeat: Millis,
    /// So is an attempt of a type that workers find, if it said nothing for so long.
    pub stale_progress: Millis,
    /// How often leases are looked at.
    pub expire_every: Millis,
    /// How often averages and usage are counted anew.
    pub averages_every: Millis,
    /// What tenants used longer ago than this is forgiven.
    pub usage_window: Millis,
    /// A worker's hints are those of its last so many successful jobs, and its own.
    pub hints_learned: usize,
    /// What an attempt that is told to stop gets before it is killed.
    pub stop_grace: Millis,
    /// What is under way gets so long when the scheduler stops.
    pub shutdown_grace: Millis,
    /// Finished jobs are kept for so long.
    pub retention: Millis,
    /// The most output that is kept of one attempt.
    pub log_bytes_max: u64,
    /// Unfinished jobs: of one tenant, and in all.
    pub tenant_jobs_max: u64,
    /// Unfinished jobs of all tenants together.
    pub jobs_max: u64,
    /// Workers connected at once.
    pub workers_max: usize,
    /// What is done about attempts that say nothing about their job.
    pub patience: Patience,
    /// What draws come from, and hashes of names that strangers choose; `None` means a number that
    /// nobody can guess.
    pub seed: Option<u64>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 7070)),
            heartbeat: Millis::from_secs(2),
            lease: Millis::from_secs(10),
            reconnect: (Millis(200), Millis::from_secs(10)),
            stale_heartbeat: Millis::from_secs(15 * 60),
            stale_progress: Millis::from_secs(24 * 3600),
            expire_every: Millis::from_secs(1),
            averages_every: Millis::from_secs(30),
            usage_window: Millis::from_secs(24 * 3600),
            hints_learned: 10,
            stop_grace: Millis::from_secs(10),
            shutdown_grace: Millis::from_secs(10),
            retention: Millis::from_secs(7 * 24 * 3600),
            log_bytes_max: 1 << 20,
            tenant_jobs_max: 5_000_000,
            jobs_max: 10_000_000,
            workers_max: 10_000,
            patience: Patience::DEFAULT,
            seed: None,
        }
    }
}

/// A setting that may not be so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` {problem}")]
pub struct ConfigError {
    /// Which.
    pub field: &'static str,
    /// The value and the limit: the rest of a sentence that starts with the field.
    pub problem: String,
    /// A way out.
    pub hint: &'static str,
}

impl Config {
    /// Fails with the first setting that may not be so.
    pub fn check(&self) -> Result<(), ConfigError> {
        if !self.listen.ip().is_loopback() {
            return Err(ConfigError {
                field: "listen",
                problem: format!("is `{}`, which others can reach", self.listen),
                hint: "anybody who can connect can run commands; use 127.0.0.1 and a tunnel",
            });
        }
        self.positive()?;
        if self.lease.0 < self.heartbeat.0.saturating_mul(3) {
            return Err(ConfigError {
                field: "lease",
                problem: format!("is {} ms, less than three heartbeats", self.lease.0),
                hint: "one late heartbeat must not cost a worker its attempts",
            });
        }
        Ok(())
    }

    fn positive(&self) -> Result<(), ConfigError> {
        let lengths = [
            ("heartbeat", self.heartbeat),
            ("reconnect", self.reconnect.0),
            ("stale_heartbeat", self.stale_heartbeat),
            ("stale_progress", self.stale_progress),
            ("expire_every", self.expire_every),
            ("averages_every", self.averages_every),
            ("usage_window", self.usage_window),
            ("retention", self.retention),
        ];
        let zero = lengths.into_iter().find(|(_, length)| length.0 <= 0);
        zero.map_or(Ok(()), |(field, length)| {
            Err(ConfigError {
                field,
                problem: format!("is {} ms, which is not above zero", length.0),
                hint: "give it a length such as `2s`",
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_allowed() {
        assert_eq!(Config::default().check(), Ok(()));
    }

    #[test]
    fn addresses_that_others_can_reach_are_refused() {
        for listen in ["0.0.0.0:7070", "192.168.1.4:7070", "[::]:7070"] {
            let config = Config { listen: listen.parse().unwrap(), ..Config::default() };
            assert_eq!(config.check().unwrap_err().field, "listen");
        }
    }

    #[test]
    fn a_lease_outlasts_a_late_heartbeat() {
        let config = Config { lease: Millis(5_000), ..Config::default() };
        assert_eq!(config.check().unwrap_err().field, "lease");
    }
}
