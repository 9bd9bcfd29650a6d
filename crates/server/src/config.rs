//! How a scheduler is set up. The comments here are the reference.

use std::net::SocketAddr;
use std::path::PathBuf;

use model::{Millis, Patience};

use crate::limits::{Limits, REQUESTS_MIN};
use crate::secret::Secret;
use crate::what_if::WhatIf;

/// Settings of a scheduler, checked by [`Config::check`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Where to listen. An address that others can reach needs tokens and TLS.
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
    /// How long a start waits to be written down, in case its end comes: a row less is written for
    /// each attempt that ends by then.
    pub start_pause: Millis,
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
    /// What may grow how far.
    pub limits: Limits,
    /// The server's certificate, with those that vouch for it, and its key: PEM files. Both or
    /// none; with them, everything is encrypted.
    pub tls_cert: Option<PathBuf>,
    /// The key of the certificate.
    pub tls_key: Option<PathBuf>,
    /// An address that others can reach is served without encryption too: something else
    /// encrypts what passes.
    pub insecure_plaintext: bool,
    /// A file with a token that may do everything, beside those that are stored.
    pub admin_token_file: Option<PathBuf>,
    /// Pairs of tenant and type that have metrics of their own; the others share one.
    pub metrics_pairs_max: usize,
    /// Whether ends of jobs are told to those who ask for it, and how.
    pub webhooks: Webhooks,
    /// Who replays what happened, and how much of it.
    pub what_if: WhatIf,
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
            start_pause: Millis(10),
            averages_every: Millis::from_secs(30),
            usage_window: Millis::from_secs(24 * 3600),
            hints_learned: 10,
            stop_grace: Millis::from_secs(10),
            shutdown_grace: Millis::from_secs(10),
            retention: Millis::from_secs(7 * 24 * 3600),
            limits: Limits::DEFAULT,
            tls_cert: None,
            tls_key: None,
            insecure_plaintext: false,
            admin_token_file: None,
            metrics_pairs_max: 200,
            webhooks: Webhooks::default(),
            what_if: WhatIf::default(),
            patience: Patience::DEFAULT,
            seed: None,
        }
    }
}

/// Whether ends of jobs are told to those who ask for it, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Webhooks {
    /// Off by default: whoever may submit makes the scheduler connect to others.
    pub enabled: bool,
    /// What signatures are made with, one key for each tenant.
    pub secret: Option<Secret>,
    /// Addresses of this machine and of private networks may be told too.
    pub private: bool,
    /// How often one end is told before it is given up.
    pub tries_max: u32,
    /// The wait before the second time; it doubles with each further one. Longer than two answers
    /// may take, so that nothing is told twice at once.
    pub backoff: Millis,
    /// The longest wait.
    pub backoff_max: Millis,
    /// How long one answer may take, from the first byte to the last.
    pub timeout: Millis,
    /// How many are told at once.
    pub at_once_max: usize,
}

/// A secret has at least so many bytes.
const SECRET_BYTES_MIN: usize = 32;

impl Default for Webhooks {
    fn default() -> Self {
        Self {
            enabled: false,
            secret: None,
            private: false,
            tries_max: 12,
            backoff: Millis::from_secs(30),
            backoff_max: Millis::from_secs(3600),
            timeout: Millis::from_secs(10),
            at_once_max: 32,
        }
    }
}

impl Webhooks {
    fn check(&self) -> Result<(), ConfigError> {
        let n_bytes = self.secret.as_ref().map_or(0, |secret| secret.reveal().len());
        if self.enabled && n_bytes < SECRET_BYTES_MIN {
            return Err(ConfigError {
                field: "webhook_secret",
                problem: format!("has {n_bytes} bytes of at least {SECRET_BYTES_MIN}"),
                hint: "it is what signatures are made with; `openssl rand -hex 32` makes one",
            });
        }
        let most = self.at_once_max.clamp(1, 1_000);
        if most != self.at_once_max || self.tries_max == 0 {
            return Err(ConfigError {
                field: "webhooks_at_once_max",
                problem: format!(
                    "is {} and `webhook_tries_max` {}: they are 1..1000 and at least 1",
                    self.at_once_max, self.tries_max
                ),
                hint: "leave them out for the defaults",
            });
        }
        let least = self.timeout.0.saturating_mul(2).saturating_add(1_000);
        if self.backoff.0 < least {
            return Err(ConfigError {
                field: "webhook_backoff",
                problem: format!(
                    "is {} ms, less than twice `webhook_timeout` and a second ({least} ms)",
                    self.backoff.0
                ),
                hint: "nobody is told again while the first answer may still come",
            });
        }
        if self.backoff_max.0 < self.backoff.0 {
            return Err(ConfigError {
                field: "webhook_backoff_max",
                problem: format!("is {} ms, less than `webhook_backoff`", self.backoff_max.0),
                hint: "it is the longest wait between two tries",
            });
        }
        Ok(())
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
    /// How long a worker has to take what it is offered. One that got the offer late and is not
    /// heard of since may run it until its lease is over, which is a lease after that at most.
    pub(crate) const fn accept_within(&self) -> Millis {
        Millis(self.lease.0 * 2)
    }

    /// Fails with the first setting that may not be so.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.encrypted()?;
        self.webhooks.check()?;
        self.what_if.check()?;
        if let Some((field, limit, max)) = self.limits.beyond() {
            return Err(ConfigError {
                field,
                problem: format!("is {limit}, of at most {max}"),
                hint: "what is larger was never tried",
            });
        }
        if self.limits.requests_max < REQUESTS_MIN {
            let problem = format!("is {}, of at least {REQUESTS_MIN}", self.limits.requests_max);
            let hint = "clients ask so much at once before they are told how much they may";
            return Err(ConfigError { field: "requests_max", problem, hint });
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

    /// What others can reach is encrypted.
    fn encrypted(&self) -> Result<(), ConfigError> {
        let error = |field, problem, hint| Err(ConfigError { field, problem, hint });
        match (&self.tls_cert, &self.tls_key) {
            (Some(_), Some(_)) => Ok(()),
            (Some(_), None) => {
                error("tls_key", "is missing".to_owned(), "`tls_cert` needs the key to it")
            }
            (None, Some(_)) => {
                error("tls_cert", "is missing".to_owned(), "`tls_key` needs its certificate")
            }
            (None, None) if self.listen.ip().is_loopback() || self.insecure_plaintext => Ok(()),
            (None, None) => error(
                "listen",
                format!("is `{}`, which others can reach, without TLS", self.listen),
                "set `tls_cert` and `tls_key`; or `insecure_plaintext = true` if something else \
                 encrypts what passes",
            ),
        }
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
    fn addresses_that_others_can_reach_are_refused_without_tls() {
        for listen in ["0.0.0.0:7070", "192.168.1.4:7070", "[::]:7070"] {
            let config = Config { listen: listen.parse().unwrap(), ..Config::default() };
            assert_eq!(config.check().unwrap_err().field, "listen");
            let told = Config { insecure_plaintext: true, ..config.clone() };
            assert_eq!(told.check(), Ok(()));
            let (tls_cert, tls_key) = (Some("c".into()), Some("k".into()));
            let half = Config { tls_cert: tls_cert.clone(), ..config.clone() };
            assert_eq!(half.check().unwrap_err().field, "tls_key");
            assert_eq!(Config { tls_cert, tls_key, ..config }.check(), Ok(()));
        }
    }

    #[test]
    fn a_limit_beyond_what_was_ever_tried_is_refused() {
        let limits = Limits { requests_max: 99, ..Limits::DEFAULT };
        let config = Config { limits, ..Config::default() };
        assert_eq!(config.check().unwrap_err().field, "requests_max");
        let limits = Limits { payload_bytes_max: 1 << 30, ..Limits::DEFAULT };
        let config = Config { limits, ..Config::default() };
        assert_eq!(config.check().unwrap_err().field, "payload_bytes_max");
    }

    #[test]
    fn webhooks_need_a_secret_that_is_hard_to_guess() {
        for secret in [None, Some(Secret::new("short".to_owned()))] {
            let webhooks = Webhooks { enabled: true, secret, ..Webhooks::default() };
            let config = Config { webhooks, ..Config::default() };
            assert_eq!(config.check().unwrap_err().field, "webhook_secret");
        }
    }

    #[test]
    fn nobody_is_told_again_while_the_first_answer_may_still_come() {
        let backoff = Millis::from_secs(20);
        let config = |webhooks| Config { webhooks, ..Config::default() };
        let early = config(Webhooks { backoff, ..Webhooks::default() });
        assert_eq!(early.check().unwrap_err().field, "webhook_backoff");
        let timeout = Millis::from_secs(9);
        assert_eq!(config(Webhooks { backoff, timeout, ..Webhooks::default() }).check(), Ok(()));
        let short = config(Webhooks { backoff_max: backoff, ..Webhooks::default() });
        assert_eq!(short.check().unwrap_err().field, "webhook_backoff_max");
    }

    #[test]
    fn a_lease_outlasts_a_late_heartbeat() {
        let config = Config { lease: Millis(5_000), ..Config::default() };
        assert_eq!(config.check().unwrap_err().field, "lease");
    }
}
