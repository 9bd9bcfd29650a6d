//! Settings: a TOML file, then the environment, then flags; each overrides the one before.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use model::Millis;
use serde::Deserialize;
use server::Config;

use crate::print::Failure;

/// Where a scheduler listens, and clients look for it.
pub(crate) const ADDRESS: &str = "127.0.0.1:7070";
/// The file that is read if it is there and nobody names another.
const FILE: &str = "maitre.toml";

/// Settings that the environment may give, by their names in a file.
const KEYS: [&str; 19] = [
    "listen",
    "data_dir",
    "store",
    "heartbeat",
    "lease",
    "reconnect",
    "reconnect_max",
    "expire_every",
    "averages_every",
    "usage_window",
    "stop_grace",
    "shutdown_grace",
    "retention",
    "hints_learned",
    "log_bytes_max",
    "tenant_jobs_max",
    "jobs_max",
    "workers_max",
    "losses_max",
];

/// Everything that a file may say. What it does not say is as documented in `docs/operating.md`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct File {
    pub(crate) listen: Option<SocketAddr>,
    pub(crate) data_dir: Option<PathBuf>,
    pub(crate) store: Option<String>,
    pub(crate) heartbeat: Option<Length>,
    pub(crate) lease: Option<Length>,
    /// How soon workers try to connect again, at first and at most.
    pub(crate) reconnect: Option<Length>,
    pub(crate) reconnect_max: Option<Length>,
    pub(crate) expire_every: Option<Length>,
    pub(crate) averages_every: Option<Length>,
    pub(crate) usage_window: Option<Length>,
    pub(crate) stop_grace: Option<Length>,
    pub(crate) shutdown_grace: Option<Length>,
    pub(crate) retention: Option<Length>,
    pub(crate) hints_learned: Option<usize>,
    pub(crate) log_bytes_max: Option<u64>,
    pub(crate) tenant_jobs_max: Option<u64>,
    pub(crate) jobs_max: Option<u64>,
    pub(crate) workers_max: Option<usize>,
    pub(crate) losses_max: Option<u32>,
    /// For `maitre work` and the worker of `maitre dev`.
    pub(crate) worker: crate::work::Section,
}

/// A length of time such as `2s`, `500ms` or `1h 30m`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Length(pub(crate) Duration);

impl Length {
    pub(crate) fn millis(self) -> Millis {
        Millis(i64::try_from(self.0.as_millis()).unwrap_or(i64::MAX))
    }
}

impl std::str::FromStr for Length {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        humantime::parse_duration(text).map(Self).map_err(|error| {
            format!("`{text}` is not a length of time such as `2s` or `1h 30m`: {error}")
        })
    }
}

impl<'de> Deserialize<'de> for Length {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// The file that was named, or the one in the working directory if there is one.
pub(crate) fn read(named: Option<&Path>) -> Result<File, Failure> {
    let path = named.unwrap_or(Path::new(FILE));
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if named.is_none() && error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => {
            return Err(Failure::Input {
                error: format!("cannot read `{}`: {error}", path.display()),
                hint: Some("give the path of a settings file with `--config`".to_owned()),
            });
        }
    };
    let wrong = |error: toml::de::Error| Failure::Input {
        error: format!("`{}` is not as it should be\n{error}", path.display()),
        hint: Some("docs/operating.md lists every setting".to_owned()),
    };
    // Read as it is first: then what is wrong is named by its line.
    let file: File = toml::from_str(&text).map_err(wrong)?;
    let environment = environment(|name| std::env::var(name).ok());
    if environment.is_empty() {
        return Ok(file);
    }
    let mut all: toml::Table = toml::from_str(&text).map_err(wrong)?;
    all.extend(environment);
    File::deserialize(all).map_err(|error| Failure::Input {
        error: format!("the environment (`MAITRE_…`) is not as it should be\n{error}"),
        hint: Some("docs/operating.md lists every setting".to_owned()),
    })
}

/// What the environment sets: `MAITRE_LEASE` for `lease`, and so on.
fn environment(variable: impl Fn(&str) -> Option<String>) -> toml::Table {
    let set = |key: &&str| {
        let value = variable(&format!("MAITRE_{}", key.to_ascii_uppercase()))?;
        let number = value.parse().map(toml::Value::Integer);
        Some(((*key).to_owned(), number.unwrap_or(toml::Value::String(value))))
    };
    KEYS.iter().filter_map(set).collect()
}

impl File {
    /// Where jobs are kept.
    pub(crate) fn data_dir(&self) -> PathBuf {
        self.data_dir.clone().unwrap_or_else(|| PathBuf::from("maitre-data"))
    }

    /// The scheduler's settings.
    pub(crate) fn config(&self) -> Config {
        let default = Config::default();
        let length = |given: Option<Length>, default| given.map_or(default, Length::millis);
        Config {
            listen: self.listen.unwrap_or(default.listen),
            heartbeat: length(self.heartbeat, default.heartbeat),
            lease: length(self.lease, default.lease),
            reconnect: (
                length(self.reconnect, default.reconnect.0),
                length(self.reconnect_max, default.reconnect.1),
            ),
            expire_every: length(self.expire_every, default.expire_every),
            averages_every: length(self.averages_every, default.averages_every),
            usage_window: length(self.usage_window, default.usage_window),
            stop_grace: length(self.stop_grace, default.stop_grace),
            shutdown_grace: length(self.shutdown_grace, default.shutdown_grace),
            retention: length(self.retention, default.retention),
            hints_learned: self.hints_learned.unwrap_or(default.hints_learned),
            log_bytes_max: self.log_bytes_max.unwrap_or(default.log_bytes_max),
            tenant_jobs_max: self.tenant_jobs_max.unwrap_or(default.tenant_jobs_max),
            jobs_max: self.jobs_max.unwrap_or(default.jobs_max),
            workers_max: self.workers_max.unwrap_or(default.workers_max),
            patience: model::Patience {
                losses_max: self.losses_max.unwrap_or(default.patience.losses_max),
                ..default.patience
            },
            ..default
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_written_with_their_units() {
        let file: File = toml::from_str("lease = \"1m 30s\"").unwrap();
        assert_eq!(file.config().lease, Millis::from_secs(90));
        let wrong = toml::from_str::<File>("lease = \"soon\"").unwrap_err().to_string();
        assert!(wrong.contains("lease") && wrong.contains("`soon`"), "{wrong}");
    }

    #[test]
    fn the_environment_sets_what_a_file_may_set() {
        let given = |name: &str| match name {
            "MAITRE_LEASE" => Some("40s".to_owned()),
            "MAITRE_WORKERS_MAX" => Some("7".to_owned()),
            _ => None,
        };
        let config = File::deserialize(environment(given)).unwrap().config();
        assert_eq!((config.lease, config.workers_max), (Millis::from_secs(40), 7));
        for key in KEYS {
            let wrong = File::deserialize(environment(|name| {
                (name == format!("MAITRE_{}", key.to_ascii_uppercase())).then(|| "?".to_owned())
            }));
            assert!(wrong.is_err() || ["data_dir", "store"].contains(&key), "{key} is a setting");
        }
    }

    #[test]
    fn a_setting_that_nobody_knows_is_refused_with_its_line() {
        let wrong = toml::from_str::<File>("\nleese = \"1m\"").unwrap_err().to_string();
        assert!(wrong.contains("line 2") && wrong.contains("`leese`"), "{wrong}");
    }
}
