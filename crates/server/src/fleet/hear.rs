//! What workers say changes the world.

use std::collections::BTreeSet;

use model::{Ending, JobId, Name, Progress, WorkerId};
use proto::v1;
use proto::v1::server_message::Message;

use super::words::{Beat, Heard, StreamId};
use crate::complete::{Live, end_of};
use crate::scheduler::Scheduler;

/// Words of a worker that are kept until it has its session.
const EARLY_MAX: usize = 10_000;

impl Scheduler {
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
                if let Some(job) = self.current(worker, attempt) {
                    self.accept(worker, job);
                }
            }
            Heard::Refuse(attempt, reason) => {
                if let Some(job) = self.current(worker, attempt) {
                    self.counters.add("refused", 1);
                    self.end_silently(&job, Ending::Refused, &reason);
                }
            }
            Heard::Progress(attempt, progress) => {
                let Some(job) = self.spoke(worker, attempt) else { return };
                self.progressed(job, progress);
            }
            Heard::Log(attempt, piece) => {
                if let Some(job) = self.spoke(worker, attempt) {
                    self.put_out(stream, (job, attempt.attempt), piece);
                } else {
                    self.put_out_in_vain(stream, piece.number);
                }
            }
            Heard::Complete(attempt, completion) => {
                let current = self.current(worker, attempt);
                if self.outgoing.output.is_passed_over(stream, &JobId::number(attempt.job)) {
                    // It says so again, after the output that is missing. It has begun.
                    if let Some(job) = current {
                        self.accept(worker, job);
                    }
                } else if let Some(job) = current {
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
            Heard::Described(kind, json) => self.described(worker, &kind, &json),
            Heard::Proposals(proposals) => self.proposed(worker, proposals),
            Heard::Detected(detected) => self.looked_to_the_end(worker, &detected),
            Heard::Publish(json) => self.publish(worker, json),
            Heard::Goodbye => self.goodbye(worker),
        }
    }

    /// An attempt gave a sign of life; the job that is its own.
    fn spoke(&mut self, worker: &WorkerId, attempt: v1::AttemptRef) -> Option<JobId> {
        let job = self.current(worker, attempt)?;
        let now = self.store.now();
        if let Some(live) = self.jobs.live_mut(&job) {
            live.heard = now;
        }
        Some(job)
    }

    fn beat(&mut self, stream: StreamId, worker: &WorkerId, beat: Beat) {
        let now = self.store.now();
        self.compare(stream, worker, &beat);
        let slots_held = beat.slots_used.saturating_sub(self.slots_of(worker, &beat.attempts));
        for (attempt, progress) in beat.progress {
            self.hear_progress(worker, attempt, progress);
        }
        let Some(seat) = self.fleet.seats.get_mut(worker) else { return };
        seat.heard = now;
        seat.is_well = beat.is_healthy;
        seat.foreign_slots = beat.foreign_slots;
        seat.slots_held = slots_held;
        seat.detections = beat.detections;
        seat.said.metrics = beat.metrics;
        if let Some(hints) = beat.hints {
            seat.said.hints = hints;
        }
        self.outgoing.renewals.push((seat.session.clone(), stream, beat.sequence));
        self.beat_in_world(worker, now);
    }

    /// Slots of those of the attempts that are the worker's own.
    fn slots_of(&self, worker: &WorkerId, attempts: &[v1::AttemptRef]) -> u32 {
        let own = attempts.iter().filter(|attempt| self.jobs.is_current(worker, **attempt));
        own.filter_map(|attempt| self.jobs.live(&JobId::number(attempt.job)))
            .fold(0, |slots, live| slots.saturating_add(live.slots))
    }

    /// A heartbeat repeats how far attempts are, so that nothing is missed for good. Only what is
    /// news is a sign of life of the attempt.
    fn hear_progress(&mut self, worker: &WorkerId, attempt: v1::AttemptRef, progress: Progress) {
        let is_news = |live: &Live| live.progress.as_ref() != Some(&progress) && !live.is_ending;
        let live = self.jobs.live(&JobId::number(attempt.job));
        if live.is_some_and(is_news)
            && let Some(job) = self.spoke(worker, attempt)
        {
            self.progressed(job, progress);
        }
    }

    /// A stream keeps its order, so a heartbeat after an accept names the attempt, unless its end
    /// came first. What the worker has lost track of is lost; what is not its own it must stop.
    fn compare(&mut self, stream: StreamId, worker: &WorkerId, beat: &Beat) {
        let named = names(&beat.attempts);
        for job in self.jobs.of(worker) {
            let Some(live) = self.jobs.live(&job) else { continue };
            if live.is_started && !live.is_ending && !is_named(&named, &job, live.number) {
                self.end_silently(&job, Ending::Lost, "the worker lost track of it");
            } else {
                self.tell_to_stop(stream, &job);
            }
        }
        for attempt in &beat.attempts {
            if !self.jobs.is_current(worker, *attempt) {
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

pub(super) fn names(attempts: &[v1::AttemptRef]) -> BTreeSet<(u64, u32)> {
    attempts.iter().map(|attempt| (attempt.job, attempt.attempt)).collect()
}

pub(super) fn is_named(named: &BTreeSet<(u64, u32)>, job: &JobId, number: u32) -> bool {
    job.as_number().is_some_and(|job| named.contains(&(job, number)))
}
