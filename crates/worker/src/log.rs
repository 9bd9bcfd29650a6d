//! Output of an attempt: counted, cut at the limit, and with a line for dropped parts.

use model::maxima::LOG_CHUNK_BYTES_MAX;
use proto::v1;

use crate::attempt::{Key, Stream};
use crate::outbox::Outbox;

/// The position in the output of one attempt.
#[derive(Debug)]
pub(crate) struct Cursor {
    key: Key,
    /// Bytes on both streams so far, dropped ones included.
    offset: u64,
    /// Bytes that may still be sent, without the line about the cut.
    left: u64,
    cut_line: Vec<u8>,
    /// Bytes that were dropped since the last chunk for lack of room.
    lost: u64,
    is_cut: bool,
}

impl Cursor {
    pub(crate) fn new(key: Key, bytes_max: u64) -> Self {
        let cut_line = format!("\n[maitre: output beyond {bytes_max} bytes is not kept]\n");
        let cut_line = cut_line.into_bytes();
        let left = bytes_max.saturating_sub(length(&cut_line));
        Self { key, offset: 0, left, cut_line, lost: 0, is_cut: bytes_max == 0 }
    }

    /// Whether the limit is reached. Further output is dropped.
    pub(crate) fn is_cut(&self) -> bool {
        self.is_cut
    }

    pub(crate) fn write(&mut self, outbox: &Outbox, stream: Stream, bytes: &[u8]) {
        for piece in bytes.chunks(LOG_CHUNK_BYTES_MAX) {
            self.piece(outbox, stream, piece);
        }
    }

    /// Reports dropped output at the end.
    pub(crate) fn finish(&mut self, outbox: &Outbox) {
        self.tell_lost(outbox, Stream::Err);
    }

    fn piece(&mut self, outbox: &Outbox, stream: Stream, piece: &[u8]) {
        if self.is_cut {
            self.offset += length(piece);
            return;
        }
        let fits = usize::try_from(self.left).unwrap_or(usize::MAX).min(piece.len());
        let (kept, over) = piece.split_at(fits);
        if !kept.is_empty() {
            self.left -= length(kept);
            if outbox.has_log_room(kept.len()) {
                self.tell_lost(outbox, stream);
                self.push(outbox, stream, kept);
            } else {
                self.lost += length(kept);
                self.offset += length(kept);
            }
        }
        if !over.is_empty() {
            self.is_cut = true;
            self.tell_lost(outbox, stream);
            let line = std::mem::take(&mut self.cut_line);
            self.push(outbox, stream, &line);
            self.offset += length(over);
        }
    }

    fn tell_lost(&mut self, outbox: &Outbox, stream: Stream) {
        if self.lost == 0 {
            return;
        }
        let line = format!("\n[maitre: {} bytes of output were lost here]\n", self.lost);
        self.lost = 0;
        self.push(outbox, stream, line.as_bytes());
    }

    /// The worker's own lines need no room: they are short and few.
    fn push(&mut self, outbox: &Outbox, stream: Stream, bytes: &[u8]) {
        let chunk = v1::LogChunk {
            attempt: Some(self.key.into()),
            stream: v1::Stream::from(stream).into(),
            offset: self.offset,
            bytes: bytes.to_vec().into(),
            // The outbox sets the number.
            number: 0,
        };
        outbox.log(self.key, chunk);
        self.offset += length(bytes);
    }
}

fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outbox::LOG_BYTES_QUEUED_MAX;

    const KEY: Key = Key { job: 7, attempt: 1 };

    fn chunks(outbox: &Outbox) -> Vec<v1::LogChunk> {
        outbox.take_logs()
    }

    #[test]
    fn offsets_count_over_both_streams() {
        let outbox = Outbox::new(1);
        let mut cursor = Cursor::new(KEY, 1_000);
        cursor.write(&outbox, Stream::Out, b"one");
        cursor.write(&outbox, Stream::Err, b"three");
        cursor.write(&outbox, Stream::Out, b"x");
        let offsets: Vec<u64> = chunks(&outbox).iter().map(|chunk| chunk.offset).collect();
        assert_eq!(offsets, [0, 3, 8]);
    }

    #[test]
    fn output_is_sent_in_chunks_of_the_largest_size() {
        let outbox = Outbox::new(1);
        let mut cursor = Cursor::new(KEY, 1 << 20);
        cursor.write(&outbox, Stream::Out, &vec![b'x'; 2 * LOG_CHUNK_BYTES_MAX + 1]);
        let lengths: Vec<usize> = chunks(&outbox).iter().map(|chunk| chunk.bytes.len()).collect();
        assert_eq!(lengths, [LOG_CHUNK_BYTES_MAX, LOG_CHUNK_BYTES_MAX, 1]);
    }

    #[test]
    fn one_line_says_that_output_was_cut_and_all_of_it_is_within_the_limit() {
        let outbox = Outbox::new(1);
        let mut cursor = Cursor::new(KEY, 100);
        for _ in 0..30 {
            cursor.write(&outbox, Stream::Out, b"0123456789");
        }
        let bytes: Vec<u8> = chunks(&outbox).into_iter().flat_map(|chunk| chunk.bytes).collect();
        let text = String::from_utf8(bytes).unwrap();
        assert_eq!(text.len(), 100);
        assert_eq!(text.matches("beyond 100 bytes is not kept").count(), 1);
        assert!(cursor.is_cut());
    }

    #[test]
    fn dropped_output_is_marked_and_counted_in_the_offset() {
        let outbox = Outbox::new(1);
        let mut cursor = Cursor::new(KEY, 1 << 30);
        let n_chunks = LOG_BYTES_QUEUED_MAX / LOG_CHUNK_BYTES_MAX;
        for _ in 0..n_chunks + 3 {
            cursor.write(&outbox, Stream::Out, &vec![b'x'; LOG_CHUNK_BYTES_MAX]);
        }
        assert_eq!(chunks(&outbox).len(), n_chunks);
        cursor.write(&outbox, Stream::Out, b"after");
        let rest = chunks(&outbox);
        let lost = 3 * LOG_CHUNK_BYTES_MAX;
        let line = format!("\n[maitre: {lost} bytes of output were lost here]\n");
        assert_eq!(rest[0].bytes, line.as_bytes());
        assert_eq!(rest[0].offset, u64::try_from(LOG_BYTES_QUEUED_MAX + lost).unwrap());
        assert_eq!(rest[1].bytes, b"after"[..]);
        assert_eq!(rest[1].offset, rest[0].offset + u64::try_from(line.len()).unwrap());
    }
}
