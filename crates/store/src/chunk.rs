//! Decides which part of an output chunk is kept.

/// The decision about one output chunk.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Keep<'a> {
    /// The store has all of it.
    Nothing,
    /// It exceeds the limit of the attempt.
    TooMuch,
    /// This part is new.
    From {
        /// Bytes of output before this part.
        offset: u64,
        /// The output of the attempt.
        bytes: &'a [u8],
    },
}

/// Decides about `bytes` that an attempt wrote at `offset`, if the store has output up to
/// `kept_to`.
///
/// A worker that lost its connection may send output again from any offset. The store keeps each
/// byte once.
pub(crate) fn keep(offset: u64, bytes: &[u8], kept_to: u64, bytes_max: u64) -> Keep<'_> {
    let end = offset.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
    if end > bytes_max {
        return Keep::TooMuch;
    }
    let n_known = kept_to.saturating_sub(offset);
    let rest = usize::try_from(n_known).ok().and_then(|n_known| bytes.get(n_known..));
    match rest {
        None | Some([]) => Keep::Nothing,
        Some(bytes) => Keep::From { offset: offset + n_known, bytes },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_output_is_kept_once() {
        assert_eq!(keep(0, b"abc", 0, 9), Keep::From { offset: 0, bytes: b"abc" });
        assert_eq!(keep(0, b"abc", 3, 9), Keep::Nothing);
        assert_eq!(keep(1, b"bcde", 3, 9), Keep::From { offset: 3, bytes: b"de" });
        assert_eq!(keep(5, b"f", 3, 9), Keep::From { offset: 5, bytes: b"f" });
        assert_eq!(keep(0, b"", 0, 9), Keep::Nothing);
    }

    #[test]
    fn chunk_beyond_the_limit_is_dropped() {
        assert_eq!(keep(6, b"abc", 0, 9), Keep::From { offset: 6, bytes: b"abc" });
        assert_eq!(keep(7, b"abc", 0, 9), Keep::TooMuch);
        assert_eq!(keep(u64::MAX, b"abc", 0, 9), Keep::TooMuch);
    }
}
