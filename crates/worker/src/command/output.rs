//! Sends the output of a command to the server.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use model::maxima::LOG_CHUNK_BYTES_MAX;
use tokio::io::{AsyncRead, AsyncReadExt as _};

use crate::lock::lock;
use crate::{Attempt, Stream};

/// Bytes from the end of stderr that an error message includes. They leave room for its first line.
const TAIL_BYTES_MAX: usize = model::maxima::TEXT_BYTES_MAX - 256;

/// The last bytes of a stream.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tail(Arc<Mutex<VecDeque<u8>>>);

impl Tail {
    fn push(&self, bytes: &[u8]) {
        let mut tail = lock(&self.0);
        tail.extend(&bytes[bytes.len().saturating_sub(TAIL_BYTES_MAX)..]);
        let n_over = tail.len().saturating_sub(TAIL_BYTES_MAX);
        tail.drain(..n_over);
    }

    /// As text, without a partial character at its start.
    pub(crate) fn text(&self) -> String {
        let bytes: Vec<u8> = lock(&self.0).iter().copied().collect();
        let text = String::from_utf8_lossy(&bytes);
        text.trim_start_matches(char::REPLACEMENT_CHARACTER).trim().to_owned()
    }
}

/// Sends output until the stream ends. `tail` keeps its last bytes.
pub(crate) async fn pump(
    mut from: impl AsyncRead + Unpin,
    attempt: Attempt,
    stream: Stream,
    tail: Tail,
) {
    let mut buffer = vec![0; LOG_CHUNK_BYTES_MAX];
    while let Ok(n_bytes) = from.read(&mut buffer).await
        && n_bytes > 0
    {
        tail.push(&buffer[..n_bytes]);
        attempt.log_patiently(stream, &buffer[..n_bytes]).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_kept_and_begins_with_a_whole_character() {
        let tail = Tail::default();
        tail.push("ä".repeat(TAIL_BYTES_MAX).as_bytes());
        tail.push(b"end\n");
        let text = tail.text();
        assert!(text.len() <= TAIL_BYTES_MAX && text.len() >= TAIL_BYTES_MAX - 4);
        assert!(text.starts_with('ä') && text.ends_with("äend"));
    }
}
