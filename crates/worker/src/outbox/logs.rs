//! Output of attempts, until the server says that it is kept.
//!
//! What is sent stays, so that the next session can send it again: the server may have died with
//! it. The end of an attempt is acknowledged only once its output is kept.
//!
//! **Invariant:** a chunk goes out in the order in which it came in, in every session.
//! **Invariant:** what was sent makes room for what was not, and never the other way round. Who can
//! wait, waits until what was sent is kept.

use std::collections::{HashMap, VecDeque};

use proto::v1;

use crate::attempt::Key;

/// Output of all attempts: what waits to be sent, and with it what may have to be sent again.
pub(crate) const LOG_BYTES_QUEUED_MAX: usize = 4 << 20;
/// What a chunk takes beside its bytes, about: many small ones are no way around the limit.
const CHUNK_BYTES: usize = 128;

/// Chunks by number, as they came in.
#[derive(Debug, Default)]
pub(super) struct Logs {
    /// Those from `first` on.
    kept: VecDeque<Kept>,
    first: u64,
    /// Those before were sent in this session, or need not be.
    sent: u64,
    /// Those before were sent in some session.
    told: u64,
    /// Bytes of chunks that were never sent, and of the others.
    bytes_new: usize,
    bytes_told: usize,
    /// The last chunk of each attempt.
    last: HashMap<Key, u64>,
    /// The server says what it keeps.
    pub(super) is_acknowledged: bool,
}

#[derive(Debug)]
struct Kept {
    key: Key,
    /// The chunk of the same attempt before this one.
    before: Option<u64>,
    /// `None`: its attempt is over.
    chunk: Option<v1::LogChunk>,
}

impl Logs {
    /// Whether so much fits, if what was sent makes room.
    pub(super) fn has_room(&self, n_bytes: usize) -> bool {
        self.bytes_new + n_bytes <= LOG_BYTES_QUEUED_MAX
    }

    /// Whether so much fits for who can wait: nothing that may be lost has to make room, and
    /// enough is left for who cannot. A server that never says what it keeps is not waited for.
    pub(super) fn has_room_to_spare(&self, n_bytes: usize) -> bool {
        if self.is_acknowledged {
            self.size() + n_bytes <= LOG_BYTES_QUEUED_MAX / 2
        } else {
            self.has_room(n_bytes)
        }
    }

    pub(super) fn push(&mut self, key: Key, mut chunk: v1::LogChunk) {
        self.bytes_new += chunk.bytes.len();
        // So that what is acknowledged is how many need not be sent any more.
        chunk.number = self.end() + 1;
        let before = self.last.insert(key, self.end());
        self.kept.push_back(Kept { key, before, chunk: Some(chunk) });
        while self.first < self.told && self.size() > LOG_BYTES_QUEUED_MAX {
            self.drop_first();
        }
    }

    /// The next one to send.
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

    /// The number of the next chunk to come in.
    pub(super) fn end(&self) -> u64 {
        self.first + u64::try_from(self.kept.len()).unwrap_or(u64::MAX)
    }

    /// All with a number below this are sent.
    pub(super) fn sent(&self) -> u64 {
        self.sent
    }

    /// A new session has begun: everything that is still here is sent again.
    pub(super) fn repeat_all(&mut self) {
        self.sent = self.first;
    }

    /// The server keeps the first so many of all that ever came in.
    pub(super) fn acknowledged(&mut self, n_kept: u64) {
        // It cannot keep what it was never told.
        while self.first < n_kept.min(self.told) {
            self.drop_first();
        }
    }

    /// An attempt is over: nobody needs to hear what it said.
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
