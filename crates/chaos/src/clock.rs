//! The time of day, and waiting for something to come true.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::{Instant, sleep};

use crate::Error;

/// How often it is looked whether something has come true.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Milliseconds since 1970, as the database counts them.
#[expect(clippy::disallowed_methods, reason = "the one place of this crate where time is read")]
pub(crate) fn now_ms() -> i64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX)
}

/// Waits until `probe` answers, and fails with `what` did not come true within the time.
pub(crate) async fn until<T>(
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
