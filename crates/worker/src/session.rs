//! One connection to a server, from the hello to the goodbye.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use model::maxima::{INVENTORY_MAX, RESULT_BYTES_MAX};
use proto::v1;
use proto::v1::server_message::Message;
use proto::v1::worker_client::WorkerClient;
use proto::v1::worker_message::Message as Ours;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Status, Streaming};

use crate::Error;
use crate::attempt::Key;
use crate::backoff::Backoff;
use crate::detection::asked;
use crate::inventory::Shown;
use crate::life::{lost, offered};
use crate::lock::lock;
use crate::roster::refs;
use crate::shared::{Departure, Limits, Shared};
use crate::stop::StopReason;

/// The largest message that the worker accepts and sends.
const MESSAGE_BYTES_MAX: usize = 16 << 20;
/// Batches that wait for the connection. Few, so that a heartbeat does not wait for many.
const BATCHES_MAX: usize = 2;
/// With at least this many busy slots, completions within a pause share a batch. For short jobs, a
/// message for each completion would cost more than the jobs. With fewer, they are sent at once.
const BUSY_SLOTS: u32 = 64;
const PAUSE: Duration = Duration::from_millis(1);
/// The limit of progress in a heartbeat. Attempts also report it themselves.
const PROGRESS_BYTES_MAX: usize = 1 << 20;
/// Timeout from the start of a connection to the welcome.
const WELCOME_TIMEOUT: Duration = Duration::from_secs(10);
/// Defaults for a welcome without these fields.
const HEARTBEAT: Duration = Duration::from_secs(5);
const LEASE: Duration = Duration::from_secs(30);
/// The shortest interval of heartbeats, even if the server sets a shorter one.
const HEARTBEAT_MIN: Duration = Duration::from_millis(10);
/// A completion is sent again after this many heartbeats, and not before this time.
const REPEAT_HEARTBEATS: u32 = 3;
const REPEAT_MIN: Duration = Duration::from_secs(5);
/// The interval of inventories, and the delay after an attempt that may have changed one.
const INVENTORY_EVERY: Duration = Duration::from_secs(30);
const INVENTORY_AFTER: Duration = Duration::from_secs(1);

/// The end of a session.
#[derive(Debug)]
pub(crate) enum End {
    /// A retry may succeed. The reason.
    Broken(String),
    /// A retry cannot succeed.
    Final(Error),
    /// The worker said goodbye.
    Gone,
}

/// Runs one session until it ends.
pub(crate) async fn session(shared: &Arc<Shared>, backoff: &mut Backoff) -> End {
    let opened = timeout(WELCOME_TIMEOUT, open(shared)).await;
    let mut opened = match opened {
        Ok(Ok(opened)) => opened,
        Ok(Err(end)) => return end,
        Err(_) => return End::Broken("the server did not say welcome in time".to_owned()),
    };
    if let Err(error) = welcomed(shared, &opened) {
        return End::Final(error);
    }
    let welcome = &opened.welcome;
    backoff.set(welcome.reconnect_ms, welcome.reconnect_ms_max);
    let mut tasks = JoinSet::new();
    let every = or(welcome.heartbeat_ms, HEARTBEAT).max(HEARTBEAT_MIN);
    tasks.spawn(heartbeats(Arc::clone(shared), every));
    tasks.spawn(write(Arc::clone(shared), opened.sender.clone()));
    if shared.settings.inventory.is_some() {
        let n_max = usize::try_from(welcome.inventory_max).unwrap_or(INVENTORY_MAX);
        tasks.spawn(inventory(Arc::clone(shared), n_max.min(INVENTORY_MAX)));
    }
    drop(opened.sender);
    let end = read(shared, backoff, opened.rest, &mut opened.stream).await;
    // Messages that this session still took would be missing in the next one.
    tasks.shutdown().await;
    shared.outbox.disconnected();
    // The server that requested them is disconnected.
    shared.detections.stop_all();
    end
}

/// A session that the server welcomed.
struct Opened {
    sender: mpsc::Sender<v1::WorkerBatch>,
    stream: Streaming<v1::ServerBatch>,
    /// When the hello was sent, and the attempts in it.
    hello_at: Instant,
    attempts: Vec<Key>,
    welcome: v1::Welcome,
    /// Messages in the same batch as the welcome.
    rest: Vec<v1::ServerMessage>,
}

async fn open(shared: &Shared) -> Result<Opened, End> {
    let channel = shared.settings.endpoint.connect().await.map_err(|error| {
        let source = std::error::Error::source(&error).map(ToString::to_string);
        End::Broken(source.unwrap_or_else(|| error.to_string()))
    })?;
    let bearer = shared.settings.bearer.clone();
    let mut client = WorkerClient::with_interceptor(channel, bearer)
        .max_decoding_message_size(MESSAGE_BYTES_MAX)
        .max_encoding_message_size(MESSAGE_BYTES_MAX);
    let attempts: Vec<Key> = attempts(shared).into_iter().collect();
    let hello =
        v1::Hello { attempts: refs(attempts.iter().copied()), ..shared.settings.hello.clone() };
    let hello = v1::WorkerMessage { message: Some(Ours::Hello(hello)) };
    let (sender, receiver) = mpsc::channel(BATCHES_MAX);
    let hello_at = Instant::now();
    sender
        .try_send(v1::WorkerBatch { messages: vec![hello] })
        .map_err(|_| End::Broken("there is no room for the hello".to_owned()))?;
    let response = client.session(ReceiverStream::new(receiver)).await;
    let response = response.map_err(|status| ended(shared, &status))?;
    let mut stream = response.into_inner();
    let batch = stream.message().await.map_err(|status| ended(shared, &status))?;
    let mut rest = batch.unwrap_or_default().messages;
    let first = (!rest.is_empty()).then(|| rest.remove(0)).and_then(|first| first.message);
    let Some(Message::Welcome(welcome)) = first else {
        return Err(End::Broken("the server did not begin with a welcome".to_owned()));
    };
    Ok(Opened { sender, stream, hello_at, attempts, welcome, rest })
}

/// The consequence of an error of the server.
fn ended(shared: &Shared, status: &Status) -> End {
    // The next hello would get the same answer.
    let is_meant = matches!(
        status.code(),
        Code::FailedPrecondition | Code::InvalidArgument | Code::AlreadyExists
    );
    // The answer may also come from a proxy that cannot reach the server for now. But a worker that
    // was never welcomed has probably a wrong address.
    let is_wrong_door = matches!(
        status.code(),
        Code::Unauthenticated | Code::PermissionDenied | Code::Unimplemented
    );
    if is_meant || (is_wrong_door && !shared.was_welcomed.load(Ordering::SeqCst)) {
        End::Final(Error::Refused { message: status.message().to_owned() })
    } else {
        End::Broken(format!("{}: {}", status.code(), status.message()))
    }
}

/// Applies a welcome.
fn welcomed(shared: &Shared, opened: &Opened) -> Result<(), Error> {
    let welcome = &opened.welcome;
    let (oldest, newest) = (proto::PROTOCOL_OLDEST, proto::PROTOCOL);
    if !(oldest..=newest).contains(&welcome.protocol) {
        return Err(Error::Protocol { theirs: welcome.protocol, oldest, newest });
    }
    tracing::info!(generation = welcome.generation, "worker session opened");
    shared.was_welcomed.store(true, Ordering::SeqCst);
    let result_bytes_max = match welcome.result_bytes_max {
        0 => RESULT_BYTES_MAX,
        max => usize::try_from(max).unwrap_or(usize::MAX),
    };
    shared.set_limits(Limits { result_bytes_max, log_bytes_max: welcome.log_bytes_max });
    shared.lease.welcome(opened.hello_at, or(welcome.lease_ms, LEASE));
    for key in welcome.stale.iter().copied().map(Key::from) {
        shared.outbox.forget(key);
        if let Some(ticket) = shared.roster.find(key) {
            let text = "it was given to another".to_owned();
            shared.roster.stop(&ticket, StopReason::Stale, text, Duration::ZERO);
        }
    }
    // The server still expects attempts whose lease ended after the hello.
    let mut here = attempts(shared);
    here.extend(welcome.stale.iter().copied().map(Key::from));
    for key in opened.attempts.iter().filter(|key| !here.contains(key)) {
        shared.outbox.complete(*key, lost(*key, "its lease was over"));
    }
    if shared.roster.is_leaving() {
        let _ = shared.outbox.answer(Ours::Draining(v1::Draining { draining: true }));
    }
    shared.outbox.connected(welcome.acknowledges_output);
    Ok(())
}

/// 0 means that the field is not set.
fn or(ms: u64, default: Duration) -> Duration {
    if ms == 0 { default } else { Duration::from_millis(ms) }
}

async fn read(
    shared: &Arc<Shared>,
    backoff: &mut Backoff,
    first: Vec<v1::ServerMessage>,
    stream: &mut Streaming<v1::ServerBatch>,
) -> End {
    let cut = shared.cut.notified();
    tokio::pin!(cut);
    let mut messages = first;
    loop {
        for message in messages.drain(..).filter_map(|message| message.message) {
            if !heard(shared, backoff, message) {
                return End::Broken("the server does not read our answers".to_owned());
            }
        }
        let batch = tokio::select! {
            batch = stream.message() => batch,
            () = &mut cut => return End::Broken("no heartbeat is acknowledged".to_owned()),
        };
        match batch {
            Ok(Some(batch)) => messages = batch.messages,
            Ok(None) | Err(_) if shared.outbox.is_goodbye_sent() => return End::Gone,
            Ok(None) => return End::Broken("the server hung up".to_owned()),
            Err(status) => return ended(shared, &status),
        }
    }
}

/// Handles a message of the server. `false` if the session cannot continue.
fn heard(shared: &Arc<Shared>, backoff: &mut Backoff, message: Message) -> bool {
    match message {
        Message::Welcome(_) => tracing::warn!("server sent a second welcome"),
        Message::HeartbeatAck(ack) => {
            if shared.lease.acknowledged(ack.sequence) {
                // An acknowledgement proves that the server works. A connection alone does not.
                backoff.reset();
            }
        }
        Message::Offer(offer) => return offered(shared, offer),
        Message::Stop(stop) => stopped(shared, &stop),
        Message::CompleteAck(ack) => {
            if let Some(key) = ack.attempt.map(Key::from) {
                // A refused attempt has no completion, so its acknowledgement does not matter.
                if shared.outbox.forget(key) && ack.stale {
                    tracing::warn!(
                        job = key.job,
                        attempt = key.attempt,
                        "completion rejected as stale"
                    );
                }
            }
        }
        Message::LogAck(ack) => shared.outbox.logs_acknowledged(ack.number),
        Message::Drain(drain) => {
            // Without an exit, the server alone stops its offers.
            if drain.then_exit {
                shared.depart(Departure::WhenEmpty);
            }
        }
        Message::Configured(configured) => shared.known.configured(&configured),
        Message::Context(context) => shared.known.published(&context),
        Message::Describe(describe) => return described(shared, describe.r#type),
        Message::Detect(detect) => asked(shared, detect),
        Message::StopDetection(stop) => shared.detections.stop(&stop.run),
        Message::Shutdown(shutdown) => {
            shared.depart(Departure::Now(Duration::from_millis(shutdown.grace_ms)));
        }
    }
    true
}

/// Sends the descriptor of a type. `false` if the server does not read answers.
fn described(shared: &Shared, kind: String) -> bool {
    let descriptor = shared.settings.descriptors.get(&kind);
    let json = descriptor.cloned().unwrap_or_default().to_text();
    shared.outbox.answer(Ours::Described(v1::Described { r#type: kind, json }))
}

fn stopped(shared: &Shared, stop: &v1::Stop) {
    let Some(key) = stop.attempt.map(Key::from) else { return };
    let reason = StopReason::from(stop.reason());
    if let Some(ticket) = shared.roster.find(key) {
        let text = match reason {
            StopReason::Preempted => "it made room for another job",
            StopReason::Timeout => "the server says that its time is up",
            StopReason::Stale | StopReason::LeaseOver => "it was given to another",
            StopReason::Cancelled | StopReason::Leaving => "it was called off",
        };
        let grace = Duration::from_millis(stop.grace_ms);
        shared.roster.stop(&ticket, reason, text.to_owned(), grace);
    } else if reason.is_silent() {
        shared.outbox.forget(key);
    } else if !shared.outbox.repeat(key) {
        // The server would wait for the end of an attempt that the worker does not have.
        shared.outbox.complete(key, lost(key, "the worker does not have it"));
    }
}

/// Sends all waiting messages as one batch, in a loop.
async fn write(shared: Arc<Shared>, sender: mpsc::Sender<v1::WorkerBatch>) {
    loop {
        // Room comes first: messages that leave the outbox must be sent.
        let Ok(permit) = sender.reserve().await else { return };
        let parcel = shared.outbox.next(Instant::now());
        if !parcel.messages.is_empty() {
            permit.send(v1::WorkerBatch { messages: parcel.messages });
        }
        if parcel.is_last {
            return;
        }
        if shared.roster.slots_used() >= BUSY_SLOTS {
            sleep(PAUSE).await;
        }
        let later = async {
            match parcel.next_at {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = shared.outbox.wake.notified() => {}
            () = later => {}
        }
    }
}

async fn heartbeats(shared: Arc<Shared>, every: Duration) {
    let mut interval = interval(every);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        shared.outbox.repeat_older_than((every * REPEAT_HEARTBEATS).max(REPEAT_MIN));
        let sequence = shared.sequence.fetch_add(1, Ordering::SeqCst) + 1;
        let heartbeat = heartbeat(&shared, sequence);
        let published = lock(&shared.condition).published.take();
        if let Some(json) = published {
            shared.outbox.page(Ours::Publish(v1::Publish { json }));
        }
        shared.lease.sent(sequence, Instant::now());
        shared.outbox.heartbeat(heartbeat);
    }
}

fn heartbeat(shared: &Shared, sequence: u64) -> v1::Heartbeat {
    let condition = lock(&shared.condition);
    v1::Heartbeat {
        sequence,
        slots_used: shared.roster.slots_used(),
        slots_total: shared.settings.hello.slots,
        detections_used: u32::try_from(shared.detections.n_running()).unwrap_or(u32::MAX),
        detections_total: shared.settings.hello.types.iter().map(|kind| kind.detect_max).sum(),
        // It goes before the completions of its batch: an ended attempt that it does not name is
        // lost.
        attempts: refs(attempts(shared)),
        // Accepted attempts start at once.
        queued: [].into(),
        metrics: Some(shared.gauges.metrics(&shared.speeds)),
        foreign_slots: shared.gauges.foreign_slots(),
        unhealthy: condition.is_unwell,
        hints: condition.hints.clone().map(|hints| v1::Hints { hints }),
        progress: shared.roster.progress(PROGRESS_BYTES_MAX),
    }
}

/// The attempts of a heartbeat, with ended ones that are not acknowledged. In this order: an
/// attempt that ends meanwhile is in the outbox before it leaves the roster.
fn attempts(shared: &Shared) -> BTreeSet<Key> {
    shared.roster.keys().into_iter().chain(shared.outbox.unacknowledged()).collect()
}

/// Sends the inventory: all at first, then the changes.
async fn inventory(shared: Arc<Shared>, digests_max: usize) {
    let Some(source) = &shared.settings.inventory else { return };
    let mut shown = Shown::new(digests_max);
    loop {
        let source = Arc::clone(source);
        let looked = tokio::task::spawn_blocking(move || source.digests()).await;
        match looked {
            Ok(Ok(digests)) if shared.outbox.has_inventory_room() => {
                let pages = shown.pages(digests);
                if !pages.is_empty() {
                    shared.outbox.inventory(pages);
                }
            }
            Ok(Ok(_)) => {}
            Ok(Err(error)) => tracing::warn!(%error, "inventory read failed"),
            Err(error) => tracing::warn!(%error, "inventory task failed"),
        }
        tokio::select! {
            () = sleep(INVENTORY_EVERY) => {}
            () = shared.roster.ended.notified() => sleep(INVENTORY_AFTER).await,
        }
    }
}
