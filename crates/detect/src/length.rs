//! Durations in the form that users write: `500ms`, `17m`, `1h 30m`.

use std::time::Duration;

use model::Millis;
use model::maxima::DURATION_MS_MAX;

/// Parses a duration. The error is the rest of a sentence.
pub fn length(text: &str) -> Result<Millis, String> {
    let unit =
        || format!("is `{text}`, which is no length of time; write `45s`, `17m` or `1h 30m`");
    let duration = humantime::parse_duration(text).map_err(|_| unit())?;
    let ms = i64::try_from(duration.as_millis()).ok().filter(|ms| *ms <= DURATION_MS_MAX);
    ms.map(Millis).ok_or_else(unit)
}

/// A duration in the form that a user would write.
pub fn shown(Millis(ms): Millis) -> String {
    humantime::format_duration(Duration::from_millis(ms.max(0).unsigned_abs())).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_needs_its_unit() {
        assert_eq!(length("1h 30m"), Ok(Millis(5_400_000)));
        assert_eq!(shown(Millis(5_400_000)), "1h 30m");
        let wrong = length("30").unwrap_err();
        assert!(wrong.starts_with("is `30`, which is no length of time"), "{wrong}");
    }
}
