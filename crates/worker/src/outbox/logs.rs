//! Output of attempts, until the server acknowledges that it is durable.
//!
//! Sent chunks stay, so that the next session can send them again: the server may have crashed. The
//! server acknowledges the end of an attempt only after its output is durable.
//!
//! **Invariant:** chunks go out in the order of their arrival, in every session.
//! **Invariant:** sent chunks make room for unsent ones, and never the reverse. A caller that can
//! wait does so until sent chunks are acknowledged.

use std::collections::{HashMap, VecDeque};

use proto::v1;

use crate::attempt::Key;

/// The limit of output of all attempts: unsent chunks, and sent chunks without an acknowledgement.
pub(crate) const LOG_BYTES_QUEUED_MAX: usize = 4 << 20;
/// Approximate overhead of a chunk, so that many small ones cannot exceed the limit.
const CHUNK_BYTES: usize = 128;

/// Chunks by number, in the order of their arrival.
#[derive(Debug, Default)]
pub(super) struct Logs {
    /// Chunks from number `first` on.
    kept: VecDeque<Kept>,
    first: u64,
    /// Chunks before this one were sent in this session, or need not be.
    sent: u64,
    /// Chunks before this one were sent in some session.
    told: u64,
    /// Bytes of chunks that were never sent, and of the others.
    bytes_new: usize,
    bytes_told: usize,
    /// The last chunk of each attempt.
    last: HashMap<Key, u64>,
    /// The server acknowledges output.
    pub(super) is_acknowledged: bool,
}

#[derive(Debug)]
struct Kept {
    key: Key,
    /// The previous chunk of the same attempt.
    before: Option<u64>,
    /// `None`: its attempt is over.
    chunk: Option<v1::LogChunk>,
}

impl Logs {
    /// Whether output of this size fits, if sent chunks make room.
    pub(super) fn has_room(&self, n_bytes: usize) -> bool {
        self.bytes_new + n_bytes <= LOG_BYTES_QUEUED_MAX
    }

    /// Whether output of a caller that can wait fits: no unacknowledged chunk has to make room, and
    /// room remains for callers that cannot wait. Without acknowledgements, sent chunks do not
    /// count.
    pub(super) fn has_room_to_spare(&self, n_bytes: usize) -> bool {
        if self.is_acknowledged {
            self.size() + n_bytes <= LOG_BYTES_QUEUED_MAX / 2
        } else {
            self.has_room(n_bytes)
        }
    }

    pub(super) fn push(&mut self, key: Key, mut chunk: v1::LogChunk) {
        self.bytes_new += chunk.bytes.len();
        // The number equals the count of chunks up to this one, as the acknowledgement does.
        chunk.number = self.end() + 1;
        let before = self.last.insert(key, self.end());
        self.kept.push_back(Kept { key, before, chunk: Some(chunk) });
        while self.first < self.told && self.size() > LOG_BYTES_QUEUED_MAX {
            self.drop_first();
        }
    }

    /// The next chunk to send.
    pub(super) fn take(&mut self) -> Option<v1::LogChunk> {
        loop {
            let chunk = self.kept.get(self.place(self.sent))?.chunk.clone();
            let is_new = self.sent == self.told;
            self.sent += 1;
            if is_new {
                self.told = self.sent;
            }
            if let Some(chunk) = chunk {
                if is_new {
                    self.bytes_new -= chunk.bytes.len();
                    self.bytes_told += chunk.bytes.len();
                }
                return Some(chunk);
            }
        }
    }

    /// The number of the next chunk to arrive.
    pub(super) fn end(&self) -> u64 {
        self.first + u64::try_from(self.kept.len()).unwrap_or(u64::MAX)
    }

    /// Chunks with a number below this are sent.
    pub(super) fn sent(&self) -> u64 {
        self.sent
    }

    /// A new session has begun: all remaining chunks are sent again.
    pub(super) fn repeat_all(&mut self) {
        self.sent = self.first;
    }

    /// The server has the first `n_kept` of all chunks.
    pub(super) fn acknowledged(&mut self, n_kept: u64) {
        // It cannot have chunks that were never sent.
        while self.first < n_kept.min(self.told) {
            self.drop_first();
        }
    }

    /// An attempt is over: its output is not needed any more.
    pub(super) fn forget(&mut self, key: Key) {
        let mut number = self.last.remove(&key);
        while let Some(here) = number.filter(|number| *number >= self.first) {
            let place = self.place(here);
            let Some(kept) = self.kept.get_mut(place) else { break };
            number = kept.before;
            if let Some(chunk) = kept.chunk.take() {
                self.uncount(here, &chunk);
            }
        }
        while self.kept.front().is_some_and(|kept| kept.chunk.is_none()) {
            self.drop_first();
        }
    }

    fn place(&self, number: u64) -> usize {
        usize::try_from(number - self.first).unwrap_or(usize::MAX)
    }

    fn size(&self) -> usize {
        self.bytes_new + self.bytes_told + self.kept.len() * CHUNK_BYTES
    }

    fn drop_first(&mut self) {
        let Some(Kept { key, chunk, .. }) = self.kept.pop_front() else { return };
        if let Some(chunk) = chunk {
            self.uncount(self.first, &chunk);
        }
        if self.last.get(&key) == Some(&self.first) {
            self.last.remove(&key);
        }
        self.first += 1;
        self.sent = self.sent.max(self.first);
        self.told = self.told.max(self.first);
    }

    fn uncount(&mut self, number: u64, chunk: &v1::LogChunk) {
        let bytes = if number < self.told { &mut self.bytes_told } else { &mut self.bytes_new };
        *bytes -= chunk.bytes.len();
    }
}

#[cfg(test)]
mod tests;
