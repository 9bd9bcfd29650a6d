//! What workers say changes the world: they come, live, speak and go.

use std::collections::{BTreeSet, VecDeque};

use futures_util::FutureExt as _;
use model::{Ending, Event, JobId, Name, Timestamp, WorkerId};
use proto::v1;
use proto::v1::server_message::Message;
use store::{LogChunk, Report, Session};

use crate::complete::end_of;
use crate::fleet::Seat;
use crate::scheduler::{Answer, Scheduler};
use crate::session::{Arrival, Beat, Heard, StreamId, heartbeat};

/// Bytes of output that may wait to be kept.
const LOG_BYTES_MAX: usize = 16 << 20;
/// Words of a worker that are kept until it has its session.
const EARLY_MAX: usize = 10_000;

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
        if seat.is_none() && self.fleet.n_connected() >= self.config.workers_max {
            let most = self.config.workers_max;
            let status = tonic::Status::resource_exhausted(format!(
                "there are {most} workers, the most that may connect"
            ));
            let _ = arrival.outbox.try_send(Err(status));
            return;
        }
        self.joining.insert(arrival.stream, Vec::new());
        let lease = self.config.lease;
        self.call(|store| {
            async move {
                let answer = store.join(arrival.worker.id.clone(), lease).await;
                Answer::Joined(arrival, answer)
            }
            .boxed()
        });
    }

    /// The worker has a session, unless a newer one of the same worker was quicker.
    pub(crate) fn joined(&mut self, arrival: Arrival, answer: Result<Session, store::Error>) {
        // Its stream may have ended in the meantime.
        let Some(early) = self.joining.remove(&arrival.stream) else { return };
        let Some(session) = self.ok(answer) else {
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
        let learned = seat.map(|seat| seat.learned.clone()).unwrap_or_default();
        tracing::info!(%worker, generation = session.generation, "a worker came");
        self.inventories.came(&worker, arrival.has_inventory);
        let (stream, attempts) = (arrival.stream, arrival.attempts.clone());
        let protocol = arrival.protocol.min(proto::PROTOCOL);
        let generation = session.generation;
        self.fleet.sit(stream, seat_of(arrival, session, learned, self.store.now()));
        let stale = self.reconcile(&worker, &attempts, was_here);
        let welcome = self.welcome(protocol, generation, stale);
        self.send(stream, Message::Welcome(welcome));
        self.seat_in_world(&worker);
        for job in self.fleet.jobs_of(&worker) {
            self.tell_to_stop(stream, &job);
        }
        self.hear(stream, early);
    }

    /// Whether another process of the same name is alive and well: it keeps its attempts.
    fn is_taken(&self, seat: &Seat, instance: &str) -> bool {
        let is_heard = self.store.now().since(seat.heard) <= self.late_after();
        seat.instance != instance && seat.stream.is_some() && is_heard
    }

    /// A heartbeat may be late by so much.
    fn late_after(&self) -> model::Millis {
        model::Millis(self.config.heartbeat.0.saturating_mul(5) / 2)
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
            log_bytes_max: config.log_bytes_max,
            result_bytes_max: u64::try_from(model::maxima::RESULT_BYTES_MAX).unwrap_or(u64::MAX),
            inventory_max: u32::try_from(model::maxima::INVENTORY_MAX).unwrap_or(u32::MAX),
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
        for job in self.fleet.jobs_of(worker) {
            let Some(live) = self.live.get_mut(&job) else { continue };
            if is_named(&named, &job, live.number) {
                live.is_offered = true;
                self.accept(worker, job);
            } else if live.is_started || (live.is_offered && !is_same_process) {
                self.end_silently(&job, Ending::Lost, "the worker came back without it");
            } else {
                self.end_silently(&job, Ending::Refused, "the worker did not get it");
            }
        }
        let is_ours = |attempt: &v1::AttemptRef| {
            let live = self.live.get(&JobId::number(attempt.job));
            live.is_some_and(|live| live.number == attempt.attempt && live.worker == *worker)
        };
        attempts.iter().filter(|attempt| !is_ours(attempt)).copied().collect()
    }

    /// A worker said something. Words of a stream that was replaced change nothing.
    pub(crate) fn hear(&mut self, stream: StreamId, heard: Vec<Heard>) {
        if let Some(early) = self.joining.get_mut(&stream) {
            // Whoever says so much before it is let in is not waited for.
            if early.len() + heard.len() > EARLY_MAX {
                self.joining.remove(&stream);
            } else {
                early.extend(heard);
            }
            return;
        }
        let Some(worker) = self.fleet.worker_on(stream).cloned() else {
            self.counters.add("stale_words", heard.len());
            return;
        };
        for heard in heard {
            self.hear_one(stream, &worker, heard);
        }
    }

    fn hear_one(&mut self, stream: StreamId, worker: &WorkerId, heard: Heard) {
        match heard {
            Heard::Heartbeat(beat) => self.beat(stream, worker, *beat),
            Heard::Inventory(inventory) => {
                self.inventories.hear(worker, inventory, &mut self.world);
            }
            Heard::Accept(attempt) => {
                if let Some(job) = self.current(worker, Some(attempt)) {
                    self.accept(worker, job);
                }
            }
            Heard::Refuse(attempt, reason) => {
                if let Some(job) = self.current(worker, Some(attempt)) {
                    self.counters.add("refused", 1);
                    self.end_silently(&job, Ending::Refused, &reason);
                }
            }
            Heard::Progress(attempt, progress) => {
                let Some(job) = self.spoke(worker, attempt) else { return };
                self.progressed(&job, &progress);
                let (attempt, worker) = (attempt.attempt, worker.clone());
                self.outgoing.reports.push(Report { job, attempt, worker, progress });
            }
            Heard::Log(attempt, log_stream, offset, bytes) => {
                let Some(job) = self.spoke(worker, attempt) else { return };
                let (attempt, at) = (attempt.attempt, self.store.now());
                self.log(LogChunk { job, attempt, stream: log_stream, offset, at, bytes });
            }
            Heard::Complete(attempt, completion) => {
                if let Some(job) = self.current(worker, Some(attempt)) {
                    self.finish(worker, &job, *completion);
                } else {
                    // It may be the same again, or too late: the store knows.
                    let job = JobId::number(attempt.job);
                    let end = end_of((&job, attempt.attempt), worker, *completion);
                    self.outgoing.ends.push(end);
                }
            }
            Heard::Draining(is_draining) => {
                if let Some(seat) = self.fleet.seats.get_mut(worker) {
                    seat.is_draining = is_draining;
                }
                self.seat_in_world(worker);
            }
            Heard::Goodbye => self.goodbye(worker),
        }
    }

    /// Output waits for the output before it to be kept; what is too much for that is dropped.
    fn log(&mut self, chunk: LogChunk) {
        self.outgoing.log_bytes += chunk.bytes.len();
        if self.outgoing.log_bytes > LOG_BYTES_MAX {
            self.counters.add("logs_dropped", 1);
        } else {
            self.outgoing.logs.push(chunk);
        }
    }

    /// An attempt gave a sign of life; the job that is its own.
    fn spoke(&mut self, worker: &WorkerId, attempt: v1::AttemptRef) -> Option<JobId> {
        let job = self.current(worker, Some(attempt))?;
        let now = self.store.now();
        if let Some(live) = self.live.get_mut(&job) {
            live.heard = now;
        }
        Some(job)
    }

    fn beat(&mut self, stream: StreamId, worker: &WorkerId, beat: Beat) {
        let now = self.store.now();
        self.compare(stream, worker, &beat);
        let Some(seat) = self.fleet.seats.get_mut(worker) else { return };
        seat.heard = now;
        seat.is_well = beat.is_healthy;
        seat.foreign_slots = beat.foreign_slots;
        seat.said.metrics = beat.metrics;
        if let Some(hints) = beat.hints {
            seat.said.hints = hints;
        }
        self.outgoing.renewals.push((seat.session.clone(), stream, beat.sequence));
        self.beat_in_world(worker, now);
    }

    /// A stream keeps its order, so a heartbeat after an accept names the attempt, unless its end
    /// came first. What the worker has lost track of is lost; what is not its own it must stop.
    fn compare(&mut self, stream: StreamId, worker: &WorkerId, beat: &Beat) {
        let named = names(&beat.attempts);
        for job in self.fleet.jobs_of(worker) {
            let Some(live) = self.live.get(&job) else { continue };
            if live.is_started && !live.is_ending && !is_named(&named, &job, live.number) {
                self.end_silently(&job, Ending::Lost, "the worker lost track of it");
            } else {
                self.tell_to_stop(stream, &job);
            }
        }
        for attempt in &beat.attempts {
            let live = self.live.get(&JobId::number(attempt.job));
            let is_ours =
                live.is_some_and(|live| live.number == attempt.attempt && live.worker == *worker);
            if !is_ours {
                let reason = v1::StopReason::Stale.into();
                let stop = v1::Stop { attempt: Some(*attempt), reason, grace_ms: 0 };
                self.send(stream, Message::Stop(stop));
            }
        }
    }

    /// The store has renewed leases: now the workers may rely on them.
    pub(crate) fn renewed(
        &mut self,
        beats: &[(StreamId, u64)],
        answer: Result<Vec<bool>, store::Error>,
    ) {
        // Without room on the disk no lease can end either: nobody has to stop for that.
        let is_full = matches!(answer, Err(store::Error::Full { .. }));
        let answers = self.ok(answer).or_else(|| is_full.then(|| vec![true; beats.len()]));
        for ((stream, sequence), is_newest) in beats.iter().zip(answers.unwrap_or_default()) {
            if is_newest {
                let ack = v1::HeartbeatAck { sequence: *sequence };
                self.send(*stream, Message::HeartbeatAck(ack));
            } else {
                self.part(*stream);
            }
        }
    }

    /// A worker's stream ended. It may come back: its attempts are its own until the lease ends.
    pub(crate) fn part(&mut self, stream: StreamId) {
        self.joining.remove(&stream);
        if let Some(worker) = self.fleet.rise(stream) {
            tracing::info!(%worker, "a worker's stream ended");
            self.beat_in_world(&worker, self.store.now());
        }
    }

    /// A worker goes for good: nothing is waited for.
    fn goodbye(&mut self, worker: &WorkerId) {
        let Some(seat) = self.fleet.seats.get(worker) else { return };
        let session = seat.session.clone();
        for job in self.fleet.jobs_of(worker) {
            self.end_silently(&job, Ending::Refused, "the worker left");
        }
        self.gone(worker);
        self.call(|store| async move { Answer::Left(store.leave(session).await) }.boxed());
    }

    fn gone(&mut self, worker: &WorkerId) {
        self.fleet.leave(worker);
        self.inventories.left(worker);
        self.world.apply(Event::Left(worker.clone()));
    }

    /// Workers that were not heard for two heartbeats get no more work; those that were not heard
    /// for a lease are gone.
    pub(crate) fn silent_workers(&mut self, now: Timestamp) {
        let late = self.late_after();
        let workers: Vec<WorkerId> = self.fleet.seats.keys().cloned().collect();
        for worker in workers {
            let Some(seat) = self.fleet.seats.get_mut(&worker) else { continue };
            let silence = now.since(seat.heard);
            if silence > self.config.lease {
                tracing::warn!(%worker, "a worker gave no sign of life");
                self.gone(&worker);
            } else if silence > late && seat.is_well {
                seat.is_well = false;
                self.beat_in_world(&worker, now);
            }
        }
    }

    /// What the operator closed or opened is seen by the world.
    pub(crate) fn refresh_workers(&mut self) {
        let workers: Vec<WorkerId> = self.fleet.seats.keys().cloned().collect();
        for worker in workers {
            self.beat_in_world(&worker, self.store.now());
        }
    }

    fn seat_in_world(&mut self, worker: &WorkerId) {
        if let Some(seat) = self.fleet.seats.get(worker) {
            self.world.apply(Event::Joined(Box::new(seat.worker(&self.closed))));
        }
    }

    fn beat_in_world(&mut self, worker: &WorkerId, at: Timestamp) {
        if let Some(seat) = self.fleet.seats.get(worker) {
            let seen = seat.worker(&self.closed);
            self.world.apply(Event::Heartbeat(heartbeat(&seen, at)));
        }
    }

    /// A worker that did a job well has what the job wanted.
    pub(crate) fn learn_hint(&mut self, worker: &WorkerId, hint: &Name) {
        let most = self.config.hints_learned;
        let Some(seat) = self.fleet.seats.get_mut(worker) else { return };
        seat.learned.push_back(hint.clone());
        while seat.learned.len() > most {
            seat.learned.pop_front();
        }
        self.beat_in_world(worker, self.store.now());
    }
}

fn names(attempts: &[v1::AttemptRef]) -> BTreeSet<(u64, u32)> {
    attempts.iter().map(|attempt| (attempt.job, attempt.attempt)).collect()
}

fn is_named(named: &BTreeSet<(u64, u32)>, job: &JobId, number: u32) -> bool {
    job.as_number().is_some_and(|job| named.contains(&(job, number)))
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
        heard: now,
    }
}
