//! Stopping attempts: because somebody called the job off, another needs the room, or it is time.

use model::{JobId, Record};
use proto::v1;
use proto::v1::server_message::Message;
use store::Cancelled;

use crate::scheduler::Scheduler;

impl Scheduler {
    /// A job was called off. If a worker has it, it is told; if its claim is under way, it will be.
    pub(crate) fn cancel(&mut self, job: &JobId) {
        if self.jobs.live(job).is_some() {
            self.stop(job, v1::StopReason::Cancelled);
        } else if !self.jobs.cancel_claim(job) {
            self.withdraw(job);
            self.refetch.insert(job.clone());
        }
    }

    /// Tells the worker of a job to stop it. It is told again with each heartbeat until it has.
    pub(crate) fn stop(&mut self, job: &JobId, reason: v1::StopReason) {
        let Some(live) = self.jobs.live_mut(job) else { return };
        // Called off is called off, whatever else it was to be stopped for.
        if live.stop != Some(v1::StopReason::Cancelled) {
            live.stop = Some(reason);
        }
        let worker = live.worker.clone();
        if let Some(stream) = self.fleet.stream_of(&worker) {
            self.tell_to_stop(stream, job);
        }
    }

    pub(crate) fn tell_to_stop(&mut self, stream: crate::fleet::words::StreamId, job: &JobId) {
        let Some(live) = self.jobs.live(job) else { return };
        let Some(reason) = live.stop.filter(|_| !live.is_ending) else { return };
        let message = Message::Stop(v1::Stop {
            attempt: Some(v1::AttemptRef::new(job, live.number)),
            reason: reason.into(),
            grace_ms: self.config.stop_grace.0.unsigned_abs(),
        });
        self.send(stream, message);
    }

    /// Jobs that waited for too long were given up.
    pub(crate) fn given_up(
        &mut self,
        jobs: Vec<JobId>,
        answer: Result<Vec<Cancelled>, store::Error>,
    ) {
        let Some(answers) = self.ok(answer) else {
            self.outgoing.late.extend(jobs);
            return;
        };
        for (job, answer) in jobs.into_iter().zip(answers) {
            if !matches!(answer, Cancelled::Done { .. }) {
                self.refetch.insert(job);
            }
            if let Cancelled::Done { record, released, cancelled, changed } = answer {
                self.counters.add("given_up", 1);
                let gone: Vec<&Record> = std::iter::once(&*record).chain(&cancelled).collect();
                for record in gone {
                    self.withdraw(&record.id);
                    self.changed(record);
                }
                for record in released.iter().chain(&changed) {
                    self.enqueue(record);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use model::WorkerId;
    use store::{Memory, Options};

    use super::*;
    use crate::config::Config;
    use crate::recover::recover;
    use crate::watch::Hub;

    #[tokio::test]
    async fn what_is_called_off_while_it_is_being_claimed_stops_once_it_is() {
        use v1::StopReason::Preempted;
        let store = Arc::new(Memory::new(Options::default()));
        let scheduler = recover(Arc::new(Config::default()), store, Hub::new()).await;
        let mut scheduler = scheduler.expect("memory does not fail");
        let (job, worker) = (JobId::number(1), WorkerId::new("w"));
        for is_called_off in [false, true] {
            scheduler.jobs.claim(job.clone(), worker.clone());
            assert_eq!(scheduler.jobs.n_claiming(), 1);
            scheduler.stop(&job, Preempted);
            if is_called_off {
                scheduler.cancel(&job);
            }
            assert_eq!(scheduler.jobs.unclaim(&job), is_called_off);
            assert_eq!(scheduler.jobs.n_claiming(), 0);
        }
    }
}
