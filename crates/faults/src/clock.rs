//! The time of day, and polling.

use std::fs;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::{Instant, sleep};

use crate::Error;

/// The interval of polls.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Milliseconds since 1970, as the store counts them.
#[expect(clippy::disallowed_methods, reason = "the one place of this crate where time is read")]
pub fn now_ms() -> i64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX)
}

/// The start time of the machine. Processes record the time since then, which a shell reads without
/// a process.
pub fn boot_ms() -> Result<i64, Error> {
    let path = "/proc/uptime";
    let text = fs::read_to_string(path).map_err(Error::system(format!("read `{path}`")))?;
    let passed_ms = text.split_whitespace().next().and_then(passed_ms);
    Ok(now_ms() - passed_ms.ok_or(Error::Line { line: text })?)
}

/// `12.34` seconds in milliseconds.
pub fn passed_ms(text: &str) -> Option<i64> {
    let (seconds, rest) = text.split_once('.')?;
    let hundredths: i64 = rest.parse().ok().filter(|_| rest.len() == 2)?;
    Some(seconds.parse::<i64>().ok()? * 1_000 + hundredths * 10)
}

/// Polls `probe` until it answers. After `within`, fails with the text `what`.
pub async fn until<T>(
    what: &str,
    within: Duration,
    mut probe: impl AsyncFnMut() -> Option<T>,
) -> Result<T, Error> {
    let start = Instant::now();
    loop {
        if let Some(answer) = probe().await {
            return Ok(answer);
        }
        if start.elapsed() > within {
            return Err(Error::Late { what: what.to_owned(), within });
        }
        sleep(LOOK_EVERY).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_since_the_start_is_read_to_the_hundredth() {
        assert_eq!(passed_ms("12.34"), Some(12_340));
        assert_eq!(passed_ms("0.05"), Some(50));
        assert_eq!(passed_ms("12"), None);
        assert_eq!(passed_ms("1.5"), None);
    }
}
