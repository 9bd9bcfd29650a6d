//! The order of messages, and the messages that stay.

use super::*;

const KEY: Key = Key { job: 7, attempt: 1 };

fn log(bytes: usize) -> v1::LogChunk {
    v1::LogChunk { bytes: vec![0; bytes].into(), ..v1::LogChunk::default() }
}

fn kinds(parcel: &Parcel) -> String {
    let kind = |message: &v1::WorkerMessage| match message.message {
        Some(Message::Heartbeat(_)) => 'h',
        Some(Message::Accept(_)) => 'a',
        Some(Message::Progress(_)) => 'p',
        Some(Message::Log(_)) => 'l',
        Some(Message::Complete(_)) => 'c',
        Some(Message::Goodbye(_)) => 'g',
        _ => '?',
    };
    parcel.messages.iter().map(kind).collect()
}

#[test]
fn batch_starts_with_heartbeat_and_has_output_before_its_end() {
    let outbox = Outbox::new(1);
    outbox.complete(KEY, v1::Complete::default());
    outbox.log(KEY, log(1));
    outbox.progress(KEY, v1::Progress::default());
    assert!(outbox.answer(Message::Accept(v1::Accept::default())));
    outbox.heartbeat(v1::Heartbeat::default());
    outbox.goodbye();
    let parcel = outbox.next(Instant::now());
    assert_eq!((kinds(&parcel).as_str(), parcel.is_last), ("haplcg", true));
}

#[test]
fn end_of_a_started_attempt_includes_its_start() {
    let (outbox, now) = (Outbox::new(1), Instant::now());
    let accept = |key: Key| Message::Accept(v1::Accept { attempt: Some(key.into()) });
    let end = |key: Key, ending: v1::Ending| v1::Complete {
        attempt: Some(key.into()),
        ending: ending.into(),
        ..v1::Complete::default()
    };
    let other = Key { job: 8, ..KEY };
    assert!(outbox.answer(accept(KEY)) && outbox.answer(accept(other)));
    outbox.complete(KEY, end(KEY, v1::Ending::Succeeded));
    assert_eq!(kinds(&outbox.next(now)), "ac");
    // A stopped attempt may never have started.
    assert!(outbox.answer(accept(other)));
    outbox.complete(other, end(other, v1::Ending::Cancelled));
    assert_eq!(kinds(&outbox.next(now)), "ac");
    // An end that waits for its output does not report the start yet.
    let late = Key { job: 9, ..KEY };
    assert!(outbox.answer(accept(late)));
    for _ in 0..3 {
        outbox.log(KEY, log(BATCH_BYTES_MAX / 2));
    }
    outbox.complete(late, end(late, v1::Ending::Succeeded));
    assert_eq!((kinds(&outbox.next(now)), kinds(&outbox.next(now))), ("all".into(), "lc".into()));
}

#[test]
fn a_completion_waits_for_the_output_before_it() {
    let (outbox, now) = (Outbox::new(1), Instant::now());
    for _ in 0..3 {
        outbox.log(KEY, log(BATCH_BYTES_MAX / 2));
    }
    outbox.complete(KEY, v1::Complete::default());
    outbox.goodbye();
    let parcel = outbox.next(now);
    assert_eq!((kinds(&parcel).as_str(), parcel.next_at), ("ll", Some(now)));
    assert_eq!(kinds(&outbox.next(now)), "lcg");
}

#[test]
fn a_completion_waits_for_the_output_before_it_in_every_session() {
    let (outbox, now) = (Outbox::new(1), Instant::now());
    for _ in 0..3 {
        outbox.log(KEY, log(BATCH_BYTES_MAX / 2));
    }
    outbox.complete(KEY, v1::Complete::default());
    for _ in 0..2 {
        assert_eq!(
            (kinds(&outbox.next(now)), kinds(&outbox.next(now))),
            ("ll".into(), "lc".into())
        );
        assert_eq!(kinds(&outbox.next(now)), "");
        outbox.connected(true);
    }
    outbox.forget(KEY);
    assert_eq!(kinds(&outbox.next(now)), "");
}

#[test]
fn progress_is_sent_once_a_second_and_the_last_at_once() {
    let (outbox, now) = (Outbox::new(1), Instant::now());
    outbox.progress(KEY, v1::Progress::default());
    outbox.progress(KEY, v1::Progress::default());
    assert_eq!(kinds(&outbox.next(now)), "p");
    outbox.progress(KEY, v1::Progress::default());
    let parcel = outbox.next(now + PROGRESS_EVERY / 2);
    assert_eq!((kinds(&parcel).as_str(), parcel.next_at), ("", Some(now + PROGRESS_EVERY)));
    assert_eq!(kinds(&outbox.next(now + PROGRESS_EVERY)), "p");
    outbox.progress(KEY, v1::Progress::default());
    outbox.complete(KEY, v1::Complete::default());
    assert_eq!(kinds(&outbox.next(now + PROGRESS_EVERY)), "pc");
}

#[test]
fn a_completion_is_sent_once_a_session_until_it_is_old() {
    let (outbox, now) = (Outbox::new(1), Instant::now());
    outbox.complete(KEY, v1::Complete::default());
    assert_eq!(kinds(&outbox.next(now)), "c");
    assert_eq!(kinds(&outbox.next(now)), "");
    outbox.repeat_older_than(Duration::from_hours(1));
    assert_eq!(kinds(&outbox.next(now)), "");
    outbox.repeat_older_than(Duration::ZERO);
    assert_eq!(kinds(&outbox.next(now)), "c");
    outbox.connected(true);
    assert_eq!(kinds(&outbox.next(now)), "c");
    outbox.forget(KEY);
    outbox.connected(true);
    assert_eq!(kinds(&outbox.next(now)), "");
}

#[test]
fn too_many_completions_leave_no_room_for_more() {
    let outbox = Outbox::new(1);
    let large = v1::Complete { result: Some(vec![0; 1 << 20]), ..v1::Complete::default() };
    for job in 0..63 {
        outbox.complete(Key { job, attempt: 1 }, large.clone());
    }
    assert!(outbox.has_completion_room());
    outbox.complete(KEY, v1::Complete::default());
    outbox.complete(Key { job: 63, attempt: 1 }, large.clone());
    outbox.complete(Key { job: 64, attempt: 1 }, large);
    assert!(!outbox.has_completion_room());
}
