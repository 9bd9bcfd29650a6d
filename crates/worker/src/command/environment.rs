//! The environment variables of a command.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::path::Path;

use crate::Attempt;

/// Variables that commands inherit from the worker. Programs need them, and they hold no secrets.
const PASSED_ON: [&str; 6] = ["PATH", "HOME", "LANG", "TZ", "TMPDIR", "USER"];

/// The inherited part of the worker's environment.
#[derive(Debug)]
pub(crate) struct Environment(BTreeMap<String, OsString>);

impl Environment {
    pub(crate) fn here() -> Self {
        let passed = PASSED_ON.into_iter();
        Self(passed.filter_map(|name| Some((name.to_owned(), env::var_os(name)?))).collect())
    }

    /// The environment of `attempt`: inherited variables, then `job`'s, then the facts.
    pub(crate) fn of(
        &self,
        attempt: &Attempt,
        job: &BTreeMap<String, String>,
        result_path: &Path,
    ) -> BTreeMap<String, OsString> {
        let mut all = self.0.clone();
        all.extend(job.iter().map(|(name, value)| (name.clone(), value.into())));
        let mut fact = |name: &str, value: Option<OsString>| {
            // A job cannot set these variables.
            all.remove(name);
            all.extend(value.map(|value| (name.to_owned(), value)));
        };
        let spec = attempt.spec();
        fact("MAITRE_JOB", Some(attempt.job().to_string().into()));
        fact("MAITRE_ATTEMPT", Some(attempt.number().to_string().into()));
        fact("MAITRE_TENANT", Some(spec.tenant.to_string().into()));
        fact("MAITRE_RESOURCE", attempt.resource().map(Into::into));
        fact("MAITRE_ARRAY_INDEX", spec.array_index.map(|index| index.to_string().into()));
        fact("MAITRE_RESULT", Some(result_path.into()));
        all
    }
}
