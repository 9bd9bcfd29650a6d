//! A store that does not answer yet.

use std::time::Duration;

use crate::Error;

/// The first pause before it is asked again, and the longest.
const AGAIN: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(5));

/// Asks until the store answers: that it does not may pass, and whoever comes meanwhile is told
/// that it is not time yet. Anything else that is wrong is told at once.
pub(crate) async fn patiently<T, F>(mut ask: impl FnMut() -> F) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    let mut pause = AGAIN.0;
    loop {
        match ask().await {
            Err(Error::Store(error)) if may_pass(&error) => {
                tracing::warn!("{error}; trying again in {pause:?}");
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(AGAIN.1);
            }
            answer => return answer,
        }
    }
}

const fn may_pass(error: &store::Error) -> bool {
    match error {
        store::Error::Unavailable { .. } | store::Error::Unknown { .. } => true,
        store::Error::Full { .. } | store::Error::Broken { .. } | store::Error::Unusable(_) => {
            false
        }
    }
}
