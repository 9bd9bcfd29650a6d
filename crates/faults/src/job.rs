//! The jobs of the scenarios: they record their runs, and some of them fail.

use std::path::Path;

use checker::Asked;
use proto::v1;

/// A record is one line with a word, the job, the attempt, the worker and the time. It is one
/// write, so that many processes can write to one file.
const SCRIPT: &str = "\
mark() {
    read -r up rest < /proc/uptime
    echo \"$1 $MAITRE_JOB $MAITRE_ATTEMPT $USER $up\" >> \"$RUNS\"
}
mark start
case $1 in
    slow) n=$2; while [ $n -gt 0 ]; do sleep 0.1; mark tick; n=$((n - 1)); done ;;
    flaky) mkdir \"$RUNS.$MAITRE_JOB\" 2>/dev/null && { mark fail; exit 1; } ;;
    fail) mark fail; exit 1 ;;
    wrong) mark fail; exit 65 ;;
    *) echo \"this is job $MAITRE_JOB\" ;;
esac
mark end
";

/// The behaviour of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// It succeeds at once.
    Plain,
    /// It runs for this many tenths of a second.
    Slow(u64),
    /// It fails the first time.
    Flaky,
    /// It always fails with a transient error.
    Failing,
    /// It fails with a permanent error.
    Wrong,
}

/// A job of a tenant.
pub(crate) fn spec(tenant: &str, manner: Manner, runs: &Path) -> v1::Spec {
    let (word, tenths) = match manner {
        Manner::Plain => ("plain", 0),
        Manner::Slow(tenths) => ("slow", tenths),
        Manner::Flaky => ("flaky", 0),
        Manner::Failing => ("fail", 0),
        Manner::Wrong => ("wrong", 0),
    };
    let payload = serde_json::json!({
        "argv": ["sh", "-c", SCRIPT, "sh", word, tenths.to_string()],
        "env": { "RUNS": runs },
    });
    v1::Spec {
        tenant: tenant.to_owned(),
        r#type: "exec".to_owned(),
        payload: payload.to_string().into_bytes(),
        retry: Some(v1::Retry { attempts_max: 2, backoff_ms: 60, backoff_ms_max: 200 }),
        ..v1::Spec::default()
    }
}

/// Its specification for the checker.
pub(crate) fn asked(spec: &v1::Spec) -> Asked {
    Asked {
        tenant: spec.tenant.clone(),
        after: spec.after.clone(),
        after_indexes: spec
            .after_indexes
            .iter()
            .filter_map(|at| usize::try_from(*at).ok())
            .collect(),
        run_if_failed: spec.run_if_failed,
        terms: None,
        label: String::new(),
    }
}
