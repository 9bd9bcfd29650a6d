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

/// When a job may start, and how that is known; nothing if it is not.
pub(crate) fn start(starts_in_ms: Option<u64>, basis: &str) -> Option<String> {
    let seconds = i64::try_from(starts_in_ms?.div_ceil(1_000)).ok()?;
    Some(format!("starts in about {} ({basis})", length(seconds)))
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
    fn lengths_are_told_in_their_two_largest_units() {
        assert_eq!(length(0), "0s");
        assert_eq!(length(59), "59s");
        assert_eq!(length(3_600), "1h");
        assert_eq!(length(90_061), "1d 1h");
        assert_eq!(ago(0, 61_000), "1m 1s ago");
        assert_eq!(ago(5_000, 0), "in 5s");
    }
}
