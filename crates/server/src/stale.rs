//! Attempts that nobody heard of for so long that they are given up.

use futures_util::FutureExt as _;
use model::{Ending, JobId, Millis, Record, Timestamp};
use proto::v1;

use crate::detect::Activity;
use crate::scheduler::{Answer, Scheduler};

/// Attempts that are looked at again in one go.
const STALE_MAX: usize = 1_000;

impl Scheduler {
    /// How often attempts are looked at.
    pub(crate) fn stale_every(&self) -> Millis {
        let shortest = self.config.stale_heartbeat.min(self.config.stale_progress);
        Millis((shortest.0 / 4).clamp(1, 60_000))
    }

    /// Looks for attempts that may be stale, and reads their records once more before it acts.
    pub(crate) fn look_for_stale(&mut self, now: Timestamp) {
        let live = self.jobs.live_jobs();
        let stale = live.filter(|job| self.staleness(job, now).is_some());
        let stale: Vec<JobId> = stale.take(STALE_MAX).cloned().collect();
        for job in stale {
            self.call(|store| {
                async move {
                    let record = store.job(job.clone()).await;
                    Answer::Checked(job, record.map(|record| record.map(Box::new)))
                }
                .boxed()
            });
        }
    }

    /// A record was read again: if its attempt is the same and still stale, it is given up.
    pub(crate) fn checked(
        &mut self,
        job: &JobId,
        answer: Result<Option<Box<Record>>, store::Error>,
    ) {
        let Some(record) = self.ok(answer).flatten() else { return };
        let now = self.store.now();
        let live = self.jobs.live(job);
        let is_same = live.is_some_and(|live| live.number == record.counts.attempts);
        let Some(why) = self.staleness(job, now).filter(|_| is_same && record.current.is_some())
        else {
            return;
        };
        self.counters.add("stale", 1);
        self.stop(job, v1::StopReason::Stale);
        self.end_silently(job, Ending::Stale, &why);
        let what = format!("gave up attempt {} of job {job}", record.counts.attempts);
        let who = self.detection.holder.clone();
        let kind = record.spec.kind.to_string();
        self.write_down(&Activity::new("stale", &who, &kind, what).because(&why));
    }

    /// Why the attempt of a job is stale, if it is. Before this scheduler started, nobody listened.
    fn staleness(&self, job: &JobId, now: Timestamp) -> Option<String> {
        let live = self.jobs.live(job).filter(|live| !live.is_ending)?;
        let spoke = live.heard.max(self.started);
        let heard = self.fleet.seats.get(&live.worker).map_or(spoke, |seat| seat.heard);
        let config = &self.config;
        if now.since(heard) > config.stale_heartbeat {
            let length = ::detect::shown_length(config.stale_heartbeat);
            return Some(format!("no heartbeat of worker `{}` for {length}", live.worker));
        }
        let is_detected = self.detection.types.get(&live.kind.to_string());
        let is_detected = is_detected.is_some_and(|known| known.descriptor.is_some());
        if is_detected && now.since(spoke) > config.stale_progress {
            let length = ::detect::shown_length(config.stale_progress);
            return Some(format!("no progress for {length}"));
        }
        None
    }
}
