//! Jobs as people and programs see them.

use proto::json::state_name;
use proto::v1;

/// A moment, as far from now as it is.
pub(crate) fn ago(ms: i64, now_ms: i64) -> String {
    let seconds = (now_ms - ms) / 1_000;
    if seconds < 0 {
        format!("in {}", length(-seconds))
    } else {
        format!("{} ago", length(seconds))
    }
}

/// A length of time in its two largest units.
pub(crate) fn length(seconds: i64) -> String {
    let parts = [("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)];
    let mut rest = seconds;
    let mut said = Vec::new();
    for (unit, size) in parts {
        if rest >= size || (size == 1 && said.is_empty()) {
            said.push(format!("{}{unit}", rest / size));
            rest %= size;
        }
        if said.len() == 2 {
            break;
        }
    }
    said.join(" ")
}

/// How many go before a job.
pub(crate) fn ahead(n_jobs: u64) -> String {
    match n_jobs {
        0 => "no job goes before it".to_owned(),
        1 => "1 job goes before it".to_owned(),
        n => format!("{n} jobs go before it"),
    }
}

/// Whether a reason ends without a person: otherwise it is no matter how many jobs go first.
pub(crate) fn passes(reason: &str) -> bool {
    let known = model::Reason::ALL.into_iter().find(|known| known.name() == reason);
    known.is_none_or(|known| !known.is_lasting())
}

/// When a job may start, as milliseconds: about then, and from when to when.
#[derive(Clone, Copy, Default)]
pub(crate) struct Start {
    pub(crate) about: Option<u64>,
    pub(crate) min: Option<u64>,
    pub(crate) max: Option<u64>,
}

/// When a job may start, and how that is known; nothing if it is not.
pub(crate) fn start(start: Start, basis: &str) -> Option<String> {
    let seconds = |ms: u64| i64::try_from(ms.div_ceil(1_000)).ok().map(length);
    let about = seconds(start.about?)?;
    let range = start.min.zip(start.max);
    let range = range.and_then(|(min, max)| Some((seconds(min)?, seconds(max)?)));
    Some(match range.filter(|(min, max)| min != max) {
        Some((min, max)) => format!("starts in {min} to {max} ({basis})"),
        None => format!("starts in about {about} ({basis})"),
    })
}

/// The reasons that apply beside the first, each in a line. What the first says already is left
/// out.
pub(crate) fn also(checks: &[v1::Check]) -> Vec<String> {
    let Some((first, others)) = checks.split_first() else { return Vec::new() };
    let others = others.iter().filter(|check| !first.detail.contains(&check.detail));
    others.map(|check| format!("also {}: {}", check.code, check.detail)).collect()
}

/// The workers that come nearest, each in a line. While workers are full, their jobs were told.
pub(crate) fn nearest(reason: &str, workers: &[v1::NearWorker]) -> Vec<String> {
    if reason == model::Reason::WorkersFull.name() {
        return Vec::new();
    }
    let lacking = workers.iter().filter(|near| !near.lacks.is_empty());
    lacking
        .map(|near| format!("nearest worker {}: {}", near.worker, near.lacks.join("; ")))
        .collect()
}

/// A state in a word, with what else a person should know about it.
pub(crate) fn state(job: &v1::Job) -> String {
    let word = state_name(job.state());
    if job.on_hold {
        return format!("{word} (on hold)");
    }
    if job.cancelling {
        return format!("{word} (stopping)");
    }
    if job.cause.is_empty() { word.to_owned() } else { format!("{word} ({})", job.cause) }
}

/// How far a job is: `40 % verifying: 3 of 7`.
pub(crate) fn progress(progress: &v1::Progress) -> String {
    let v1::Progress { fraction, note, stage } = progress;
    let between = if stage.is_empty() || note.is_empty() { "" } else { ": " };
    format!("{:.0} % {stage}{between}{note}", fraction * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_has_a_range_if_one_is_known() {
        let about = Some(30_000);
        let told = |min, max| start(Start { about, min, max }, "why").unwrap();
        assert_eq!(told(Some(20_000), Some(50_000)), "starts in 20s to 50s (why)");
        assert_eq!(told(Some(0), None), "starts in about 30s (why)");
        assert_eq!(start(Start::default(), "why"), None);
    }

    #[test]
    fn what_the_first_reason_says_is_not_said_again() {
        let check = |code: &str, detail: &str| v1::Check {
            code: code.to_owned(),
            detail: detail.to_owned(),
            ..v1::Check::default()
        };
        let all = [check("one", "x; y"), check("two", "y"), check("three", "z")];
        assert_eq!(also(&all), ["also three: z"]);
    }

    #[test]
    fn lengths_are_told_in_their_two_largest_units() {
        assert_eq!(length(0), "0s");
        assert_eq!(length(59), "59s");
        assert_eq!(length(3_600), "1h");
        assert_eq!(length(90_061), "1d 1h");
        assert_eq!(ago(0, 61_000), "1m 1s ago");
        assert_eq!(ago(5_000, 0), "in 5s");
    }
}
