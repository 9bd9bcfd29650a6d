//! Chunks that are sent again, and chunks that make room.

use super::*;

const ONE: Key = Key { job: 1, attempt: 1 };
const TWO: Key = Key { job: 2, attempt: 1 };

/// Adds chunks of this length. Their offsets identify them.
fn say(logs: &mut Logs, key: Key, offsets: std::ops::Range<u64>, length: usize) {
    for offset in offsets {
        let bytes = vec![b'x'; length].into();
        logs.push(key, v1::LogChunk { offset, bytes, ..v1::LogChunk::default() });
    }
}

/// Sends all chunks, and returns their offsets.
fn send(logs: &mut Logs) -> Vec<u64> {
    std::iter::from_fn(|| logs.take()).map(|chunk| chunk.offset).collect()
}

fn is_empty(logs: &Logs) -> bool {
    let size = (logs.bytes_new, logs.bytes_told, logs.kept.len(), logs.last.len());
    size == (0, 0, 0, 0)
}

#[test]
fn new_session_gets_all_chunks_from_the_oldest() {
    let mut logs = Logs::default();
    say(&mut logs, ONE, 0..3, 1);
    assert_eq!((send(&mut logs), send(&mut logs)), (vec![0, 1, 2], vec![]));
    say(&mut logs, ONE, 3..5, 1);
    assert_eq!(logs.take().map(|chunk| chunk.offset), Some(3));
    for _ in 0..2 {
        logs.repeat_all();
        assert_eq!(logs.sent(), 0);
        assert_eq!((send(&mut logs), logs.sent()), (vec![0, 1, 2, 3, 4], 5));
    }
}

#[test]
fn acknowledged_chunks_are_never_sent_again() {
    let mut logs = Logs::default();
    say(&mut logs, ONE, 0..4, 1);
    let numbers = |logs: &mut Logs| {
        std::iter::from_fn(|| logs.take()).map(|chunk| chunk.number).collect::<Vec<u64>>()
    };
    assert_eq!(numbers(&mut logs), [1, 2, 3, 4]);
    logs.acknowledged(1);
    logs.repeat_all();
    assert_eq!(logs.take().map(|chunk| chunk.number), Some(2));
    // A late acknowledgement of the last session still counts.
    logs.acknowledged(3);
    assert_eq!(numbers(&mut logs), [4]);
    logs.acknowledged(2);
    logs.repeat_all();
    assert_eq!((numbers(&mut logs), logs.sent()), (vec![4], logs.end()));
    logs.acknowledged(4);
    assert!(is_empty(&logs));
}

#[test]
fn unsent_chunks_cannot_be_acknowledged() {
    let mut logs = Logs::default();
    say(&mut logs, ONE, 0..1, 1);
    send(&mut logs);
    say(&mut logs, ONE, 1..2, 1);
    logs.acknowledged(u64::MAX);
    assert_eq!((send(&mut logs), logs.kept.len()), (vec![1], 1));
}

#[test]
fn chunks_of_an_ended_attempt_are_not_sent() {
    let mut logs = Logs::default();
    for at in 0..4 {
        say(&mut logs, ONE, 2 * at..2 * at + 1, 10);
        say(&mut logs, TWO, 2 * at + 1..2 * at + 2, 10);
    }
    send(&mut logs);
    say(&mut logs, ONE, 8..9, 10);
    logs.forget(ONE);
    assert_eq!((logs.bytes_new, logs.bytes_told, send(&mut logs)), (0, 40, vec![]));
    assert_eq!(logs.sent(), logs.end(), "an end does not wait for what is not sent");
    logs.repeat_all();
    assert_eq!((send(&mut logs), logs.sent()), (vec![1, 3, 5, 7], logs.end()));
    // Later output is new.
    say(&mut logs, ONE, 9..10, 10);
    assert_eq!(send(&mut logs), [9]);
    logs.forget(TWO);
    logs.forget(TWO);
    assert_eq!((logs.bytes_told, logs.last.len()), (10, 1));
    logs.forget(ONE);
    assert!(is_empty(&logs));
}

#[test]
fn sent_chunks_make_room_oldest_first() {
    const LENGTH: usize = 64 << 10;
    const N_MAX: usize = LOG_BYTES_QUEUED_MAX / LENGTH;
    let mut logs = Logs::default();
    let n_max = u64::try_from(N_MAX).unwrap();
    say(&mut logs, ONE, 0..n_max, LENGTH);
    assert!(!logs.has_room(1));
    assert_eq!(send(&mut logs).len(), N_MAX);
    assert!(logs.has_room(LOG_BYTES_QUEUED_MAX));
    say(&mut logs, TWO, n_max..n_max + 2, LENGTH);
    assert!(logs.size() <= LOG_BYTES_QUEUED_MAX && logs.first == 3, "{}", logs.first);
    // Also while it is sent for the second time.
    logs.repeat_all();
    assert_eq!(logs.take().map(|chunk| chunk.offset), Some(3));
    assert!(logs.has_room(LOG_BYTES_QUEUED_MAX - 2 * LENGTH));
    say(&mut logs, TWO, n_max + 2..2 * n_max, LENGTH);
    assert!(!logs.has_room(1));
    assert_eq!(send(&mut logs), (n_max..2 * n_max).collect::<Vec<u64>>());
}

#[test]
fn waiting_caller_displaces_no_unacknowledged_chunk() {
    const LENGTH: usize = 64 << 10;
    let mut logs = Logs { is_acknowledged: true, ..Logs::default() };
    let fill = |logs: &mut Logs| {
        let mut n = 0;
        while logs.has_room_to_spare(LENGTH) {
            say(logs, ONE, n..n + 1, LENGTH);
            logs.take();
            n += 1;
        }
        n
    };
    let n_told = fill(&mut logs);
    assert_eq!((logs.first, n_told), (0, 31), "half of it, and nothing had to go");
    assert!(logs.has_room(LOG_BYTES_QUEUED_MAX), "a caller that cannot wait has all of the room");
    logs.acknowledged(3);
    assert_eq!((fill(&mut logs), logs.first), (3, 3));
    logs.is_acknowledged = false;
    assert!(logs.has_room_to_spare(LOG_BYTES_QUEUED_MAX), "there is nothing to wait for");
}

#[test]
fn unsent_chunks_make_no_room() {
    let mut logs = Logs::default();
    say(&mut logs, ONE, 0..5, LOG_BYTES_QUEUED_MAX / 4);
    assert_eq!(send(&mut logs), [0, 1, 2, 3, 4]);
}

#[test]
fn small_chunks_count_their_overhead() {
    let mut logs = Logs::default();
    for offset in 0..100_000 {
        say(&mut logs, ONE, offset..offset + 1, 1);
        logs.take();
    }
    assert!(logs.kept.len() <= LOG_BYTES_QUEUED_MAX / CHUNK_BYTES);
    logs.forget(ONE);
    assert!(is_empty(&logs));
}
