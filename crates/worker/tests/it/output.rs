//! Output around a broken connection.

use std::sync::Arc;

use model::maxima::LOG_CHUNK_BYTES_MAX;
use proto::v1;
use proto::v1::server_message::Message as Theirs;
use proto::v1::worker_message::Message as Ours;
use tokio::sync::Notify;
use worker::{Attempt, Done, Handler, Stream};

use crate::server::{Server, Session, welcome};
use crate::world::{Running, builder, spec};

/// Writes two words, and a third after a signal.
fn words(go_on: &Arc<Notify>) -> impl Handler {
    let go_on = Arc::clone(go_on);
    move |attempt: Attempt| {
        let go_on = Arc::clone(&go_on);
        async move {
            attempt.log(Stream::Out, b"one ");
            attempt.log(Stream::Err, b"two ");
            go_on.notified().await;
            attempt.log(Stream::Out, b"three");
            Ok(Done::new())
        }
    }
}

fn chunk(said: Ours) -> Option<v1::LogChunk> {
    if let Ours::Log(chunk) = said { Some(chunk) } else { None }
}

fn text(chunks: &[v1::LogChunk]) -> String {
    chunks.iter().map(|chunk| String::from_utf8_lossy(&chunk.bytes)).collect()
}

/// Waits until the worker has read all earlier messages: it answers in order.
async fn is_heard(session: &mut Session) {
    session.offer(99, 1, spec("nobody has it")).await;
    while !matches!(session.next().await, Ours::Refuse(_)) {}
}

#[tokio::test]
async fn output_precedes_its_end_in_every_session() {
    let mut server = Server::start();
    let go_on = Arc::new(Notify::new());
    let _running = Running::start(builder(&server).type_("a", 0, words(&go_on)));
    let mut session = server.welcomed().await;
    session.stop_acknowledging();
    session.offer(7, 1, spec("a")).await;
    go_on.notify_one();
    let heard = session.run_to_end().await;
    assert_eq!(text(&heard.1), "one two three");
    for _ in 0..2 {
        drop(session);
        session = server.welcomed().await;
        session.stop_acknowledging();
        assert_eq!(session.run_to_end().await, heard);
    }
}

#[tokio::test]
async fn new_output_follows_repeated_output() {
    let mut server = Server::start();
    let go_on = Arc::new(Notify::new());
    let _running = Running::start(builder(&server).type_("a", 0, words(&go_on)));
    let mut session = server.welcomed().await;
    session.stop_acknowledging();
    session.offer(7, 1, spec("a")).await;
    assert_eq!(session.output_with("two ").await, "one two ");
    drop(session);
    go_on.notify_one();
    let (_, chunks) = server.welcomed().await.run_to_end().await;
    assert_eq!(text(&chunks), "one two three");
    assert_eq!(chunks.iter().map(|chunk| chunk.offset).collect::<Vec<_>>(), [0, 4, 8]);
}

#[tokio::test]
async fn acknowledged_output_is_not_sent_again() {
    let mut server = Server::start();
    let go_on = Arc::new(Notify::new());
    let _running = Running::start(builder(&server).type_("a", 0, words(&go_on)));
    let mut session = server.welcomed().await;
    session.stop_acknowledging();
    session.offer(7, 1, spec("a")).await;
    session.output_with("two ").await;
    session.say(Theirs::LogAck(v1::LogAck { number: 1 })).await;
    is_heard(&mut session).await;
    drop(session);
    session = server.welcomed().await;
    session.stop_acknowledging();
    assert_eq!(session.output_with("two ").await, "two ");
    session.say(Theirs::LogAck(v1::LogAck { number: 2 })).await;
    is_heard(&mut session).await;
    drop(session);
    go_on.notify_one();
    let (_, chunks) = server.welcomed().await.run_to_end().await;
    assert_eq!(text(&chunks), "three");
    assert_eq!((chunks[0].offset, chunks[0].number), (8, 3));
}

#[tokio::test]
async fn acknowledged_end_drops_the_output_of_its_attempt() {
    let mut server = Server::start();
    let go_on = Arc::new(Notify::new());
    let _running = Running::start(builder(&server).slots(2).type_("a", 0, words(&go_on)));
    let mut session = server.welcomed().await;
    session.stop_acknowledging();
    session.offer(7, 1, spec("a")).await;
    session.output_with("two ").await;
    session.offer(8, 1, spec("a")).await;
    session.output_with("two ").await;
    go_on.notify_one();
    let (complete, _) = session.run_to_end().await;
    session.ack(&complete).await;
    is_heard(&mut session).await;
    drop(session);
    go_on.notify_one();
    let (other, chunks) = server.welcomed().await.run_to_end().await;
    assert_ne!(other.attempt, complete.attempt);
    assert!(chunks.iter().all(|chunk| chunk.attempt == other.attempt));
    assert_eq!(text(&chunks), "one two three");
}

#[tokio::test]
async fn writer_does_not_wait_for_repeated_output() {
    const N_CHUNKS: usize = 100;
    let mut server = Server::start();
    let handler = |attempt: Attempt| async move {
        let bytes = vec![b'x'; N_CHUNKS * LOG_CHUNK_BYTES_MAX];
        attempt.log_patiently(Stream::Out, &bytes).await;
        Ok(Done::new())
    };
    let _running = Running::start(builder(&server).type_("a", 0, handler));
    let roomy = || Theirs::Welcome(v1::Welcome { log_bytes_max: 64 << 20, ..welcome() });
    let mut session = server.session().await;
    session.say(roomy()).await;
    session.stop_acknowledging();
    session.offer(7, 1, spec("a")).await;
    let (end, chunks) = session.run_to_end().await;
    assert_eq!(chunks.len(), N_CHUNKS, "all of it came, and nothing else");
    drop(session);
    let mut session = server.session().await;
    session.say(roomy()).await;
    let (again, latest) = session.run_to_end().await;
    assert_eq!(again, end);
    let n_bytes: usize = latest.iter().map(|chunk| chunk.bytes.len()).sum();
    assert!((2 << 20..=4 << 20).contains(&n_bytes), "{n_bytes} bytes");
    assert!(chunks.ends_with(&latest), "it is the end of it that comes again");
}

#[tokio::test]
async fn waiting_caller_waits_for_acknowledgements() {
    const N_CHUNKS: u64 = 100;
    let mut server = Server::start();
    let handler = |attempt: Attempt| async move {
        for number in 0..N_CHUNKS {
            let byte = u8::try_from(number).expect("there are few");
            attempt.log_patiently(Stream::Out, &vec![byte; LOG_CHUNK_BYTES_MAX]).await;
        }
        Ok(Done::new())
    };
    let _running = Running::start(builder(&server).type_("a", 0, handler));
    let careful = || {
        let (log_bytes_max, acknowledges_output) = (64 << 20, true);
        Theirs::Welcome(v1::Welcome { log_bytes_max, acknowledges_output, ..welcome() })
    };
    let mut session = server.session().await;
    session.say(careful()).await;
    session.offer(7, 1, spec("a")).await;
    let mut kept: Vec<v1::LogChunk> = Vec::new();
    // When these sessions end, the server has received more than it acknowledged.
    for n_kept in [20, 40] {
        while kept.len() < n_kept + 10 {
            kept.extend(chunk(session.next().await));
        }
        kept.truncate(n_kept);
        let number = kept[n_kept - 1].number;
        session.say(Theirs::LogAck(v1::LogAck { number })).await;
        is_heard(&mut session).await;
        drop(session);
        session = server.session().await;
        session.say(careful()).await;
    }
    while kept.last().is_none_or(|last| last.number < N_CHUNKS) {
        if let Some(chunk) = chunk(session.next().await) {
            session.say(Theirs::LogAck(v1::LogAck { number: chunk.number })).await;
            kept.push(chunk);
        }
    }
    let numbers = kept.iter().map(|chunk| chunk.number);
    assert_eq!(numbers.collect::<Vec<u64>>(), (1..=N_CHUNKS).collect::<Vec<u64>>());
    assert!(kept.iter().zip(0..).all(|(chunk, byte)| chunk.bytes[0] == byte));
}

#[tokio::test]
async fn attempt_that_waits_for_output_room_is_not_silent() {
    let mut server = Server::start();
    let has_given_up = Arc::new(Notify::new());
    let gives_up = Arc::clone(&has_given_up);
    let handler = move |attempt: Attempt| {
        let gives_up = Arc::clone(&gives_up);
        async move {
            let bytes = vec![b'x'; 64 * LOG_CHUNK_BYTES_MAX];
            let log = attempt.log_patiently(Stream::Out, &bytes);
            // A caller that stops waiting is silent from then on.
            tokio::select! {
                () = log => {}
                () = gives_up.notified() => {}
            }
            attempt.stopped().await;
            Ok(Done::new())
        }
    };
    let _running = Running::start(builder(&server).type_("a", 0, handler));
    let mut session = server.session().await;
    let (log_bytes_max, acknowledges_output) = (64 << 20, true);
    session
        .say(Theirs::Welcome(v1::Welcome { log_bytes_max, acknowledges_output, ..welcome() }))
        .await;
    let silence_timeout_ms = Some(200);
    session.offer(7, 1, v1::Spec { silence_timeout_ms, ..spec("a") }).await;
    // One second, counted in heartbeats.
    for _ in 0..20 {
        session.heartbeat().await;
    }
    session.offer(99, 1, spec("nobody has it")).await;
    loop {
        match session.next().await {
            Ours::Refuse(_) => break,
            said => assert!(!matches!(said, Ours::Complete(_)), "it is not silent: {said:?}"),
        }
    }
    has_given_up.notify_one();
    session.complete().await;
}
