//! Workers come, also back: each gets a session, and both sides agree on what it has.

use std::collections::VecDeque;

use futures_util::FutureExt as _;
use model::{Ending, Millis, Name, Record, Timestamp, WorkerId};
use proto::v1;
use proto::v1::server_message::Message;
use store::{Session, Store};

use super::Seat;
use super::hear::{is_named, names};
use super::words::Arrival;
use crate::scheduler::{Answer, Scheduler};

impl Scheduler {
    /// A worker came: the store gives its session a generation.
    pub(crate) fn hello(&mut self, arrival: Box<Arrival>) {
        let worker = &arrival.worker.id;
        let seat = self.fleet.seats.get(worker);
        if seat.is_some_and(|seat| self.is_taken(seat, &arrival.instance)) {
            let status = tonic::Status::aborted(format!(
                "another worker called `{worker}` is connected; give this one another name"
            ));
            let _ = arrival.outbox.try_send(Err(status));
            return;
        }
        if seat.is_none() && self.fleet.n_connected() >= self.config.limits.workers_max {
            let most = self.config.limits.workers_max;
            let found = format!("there would be {} workers", most + 1);
            let hint = "let another scheduler have it, or set the limit higher";
            let status = crate::limits::exceeded(("workers_max", most), found, hint);
            let _ = arrival.outbox.try_send(Err(status));
            return;
        }
        self.joining.insert(arrival.stream, Vec::new());
        let lease = self.config.lease;
        self.call(|store| {
            async move {
                let answer = let_in(&*store, &arrival.worker.id, lease).await;
                Answer::Joined(arrival, answer)
            }
            .boxed()
        });
    }

    /// The worker has a session, unless a newer one of the same worker was quicker.
    pub(crate) fn joined(
        &mut self,
        arrival: Arrival,
        answer: Result<(Session, Vec<Record>), store::Error>,
    ) {
        // Its stream may have ended in the meantime.
        let Some(early) = self.joining.remove(&arrival.stream) else { return };
        let Some((session, held)) = self.ok(answer) else {
            let status = tonic::Status::unavailable("the store did not answer; try again");
            let _ = arrival.outbox.try_send(Err(status));
            return;
        };
        let worker = arrival.worker.id.clone();
        let seat = self.fleet.seats.get(&worker);
        let was_here = seat.is_none_or(|seat| seat.instance == arrival.instance);
        if seat.is_some_and(|seat| seat.session.generation > session.generation) {
            let is_same = seat.is_some_and(|seat| seat.instance == arrival.instance);
            let _ = arrival.outbox.try_send(Err(superseded(is_same)));
            return;
        }
        if let Some((seat, outbox)) = seat.and_then(|seat| Some((seat, seat.outbox.as_ref()?))) {
            let is_same = seat.instance == arrival.instance;
            let _ = outbox.try_send(Err(superseded(is_same)));
        }
        let learned = seat.map(|seat| seat.learned.clone());
        let learned = learned.or_else(|| self.fleet.remembered.remove(&worker)).unwrap_or_default();
        tracing::info!(%worker, generation = session.generation, "a worker came");
        // The world does not know a worker that runs no jobs, nor the inputs that it lacks.
        self.inventories.came(&worker, arrival.has_inventory && arrival.runs_jobs);
        let (stream, attempts) = (arrival.stream, arrival.attempts.clone());
        let protocol = arrival.protocol;
        let generation = session.generation;
        self.fleet.sit(stream, seat_of(arrival, session, learned, self.store.now()));
        if !held.is_empty() {
            // What it has is counted on a worker that the world knows.
            self.seat_in_world(&worker);
            self.take_over(&held);
        }
        let stale = self.reconcile(&worker, &attempts, was_here);
        let welcome = self.welcome(protocol, generation, stale);
        self.send(stream, Message::Welcome(welcome));
        self.seat_in_world(&worker);
        self.introduce(&worker);
        for job in self.jobs.of(&worker) {
            self.tell_to_stop(stream, &job);
        }
        self.hear(stream, early);
    }

    /// Whether another process of the same name is alive and well: it keeps its attempts.
    fn is_taken(&self, seat: &Seat, instance: &str) -> bool {
        let is_heard = self.store.now().since(seat.heard) <= self.late_after();
        seat.instance != instance && seat.stream.is_some() && is_heard
    }

    fn welcome(&self, protocol: u32, generation: u64, stale: Vec<v1::AttemptRef>) -> v1::Welcome {
        let config = &self.config;
        v1::Welcome {
            protocol,
            generation,
            heartbeat_ms: config.heartbeat.0.unsigned_abs(),
            lease_ms: config.lease.0.unsigned_abs(),
            reconnect_ms: config.reconnect.0.0.unsigned_abs(),
            reconnect_ms_max: config.reconnect.1.0.unsigned_abs(),
            stale,
            log_bytes_max: config.limits.log_bytes_max,
            result_bytes_max: u64::try_from(model::maxima::RESULT_BYTES_MAX).unwrap_or(u64::MAX),
            inventory_max: u32::try_from(model::maxima::INVENTORY_MAX).unwrap_or(u32::MAX),
            acknowledges_output: true,
        }
    }

    /// Compares what a worker says it has with what we know it has. Answers what it has wrongly.
    ///
    /// An attempt that the same process does not name never reached it. If another process has come
    /// in its place, the attempt may be what ended the first.
    fn reconcile(
        &mut self,
        worker: &WorkerId,
        attempts: &[v1::AttemptRef],
        is_same_process: bool,
    ) -> Vec<v1::AttemptRef> {
        let named = names(attempts);
        for job in self.jobs.of(worker) {
            let Some(live) = self.jobs.live_mut(&job) else { continue };
            if is_named(&named, &job, live.number) {
                live.is_offered = true;
                self.accept(worker, job);
            } else if live.is_started || (live.is_offered && !is_same_process) {
                self.end_silently(&job, Ending::Lost, "the worker came back without it");
            } else {
                self.end_silently(&job, Ending::Refused, "the worker did not get it");
            }
        }
        let foreign = attempts.iter().filter(|attempt| !self.jobs.is_current(worker, **attempt));
        foreign.copied().collect()
    }
}

/// Gives a worker a session, and finds out what it has of what other schedulers gave it.
async fn let_in(
    store: &dyn Store,
    worker: &WorkerId,
    lease: Millis,
) -> Result<(Session, Vec<Record>), store::Error> {
    let session = store.join(worker.clone(), lease).await?;
    let held = match store.shared() {
        Some(shared) => shared.held(worker.clone()).await?,
        None => Vec::new(),
    };
    Ok((session, held))
}

/// What a session is told whose place was taken: by the same process, which needs no telling, or by
/// another one of the same name, with which it must not fight for ever.
fn superseded(is_same_instance: bool) -> tonic::Status {
    if is_same_instance {
        return tonic::Status::aborted("a newer session of this worker took its place");
    }
    tonic::Status::already_exists("another worker of this name took its place")
}

fn seat_of(arrival: Arrival, session: Session, learned: VecDeque<Name>, now: Timestamp) -> Seat {
    Seat {
        stream: Some(arrival.stream),
        session,
        outbox: Some(arrival.outbox),
        said: arrival.worker,
        instance: arrival.instance,
        software: arrival.software,
        learned,
        is_draining: false,
        is_well: true,
        foreign_slots: 0,
        slots_held: 0,
        detects: arrival.detects,
        runs_jobs: arrival.runs_jobs,
        detections: (0, 0),
        heard: now,
    }
}
