//! Attempts stop to make room for a job that is owed it.
//!
//! Where the store is shared, the job may have been claimed elsewhere since it was seen to wait.
//! So the store is asked first: nobody stops for somebody who does not wait.

use futures_util::FutureExt as _;
use model::{Event, JobId, Preempt, Record, State};
use proto::v1;

use crate::complete::Live;
use crate::scheduler::{Answer, Scheduler};

/// Room that is to be made, if the job still waits for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MakeRoom {
    victim: JobId,
    /// The attempt of the victim that is meant.
    number: u32,
    preemptor: JobId,
}

impl Scheduler {
    /// One whose claim is under way makes no room: by the time it has the job, whoever was to have
    /// the room may have been seated elsewhere.
    pub(crate) fn preempt(&mut self, Preempt { victim, preemptor, .. }: Preempt) {
        let Some(live) = self.jobs.live(&victim) else {
            self.world.apply(Event::Spared { victim, preemptor });
            return;
        };
        let room = MakeRoom { number: live.number, victim, preemptor };
        if !self.is_shared() {
            self.evict(&room);
            return;
        }
        self.call(|store| {
            async move {
                let record = store.job(room.preemptor.clone()).await;
                Answer::Preemptor(room, record.map(|record| record.map(Box::new)))
            }
            .boxed()
        });
    }

    /// The job that room was to be made for was read.
    pub(crate) fn preemptor_read(
        &mut self,
        room: MakeRoom,
        answer: Result<Option<Box<Record>>, store::Error>,
    ) {
        let is_meant = |live: &Live| live.number == room.number;
        let is_there = self.jobs.live(&room.victim).is_some_and(is_meant);
        let answer = self.ok(answer);
        let record = answer.as_ref().and_then(Option::as_deref);
        let waits = record.is_some_and(|one| one.state == State::Queued && !one.on_hold);
        if is_there && waits && self.jobs.seen(&room.preemptor).is_some() {
            self.evict(&room);
            return;
        }
        let MakeRoom { victim, preemptor, .. } = room;
        self.world.apply(Event::Spared { victim, preemptor: preemptor.clone() });
        self.is_dirty = true;
        if let Some(record) = record {
            self.stand_in_line(record);
        } else if answer.is_some() {
            self.withdraw(&preemptor);
        }
    }

    fn evict(&mut self, room: &MakeRoom) {
        self.counters.add("preemptions", 1);
        self.stop(&room.victim, v1::StopReason::Preempted);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::share::tests::{claimed, queued, scheduler};

    /// Job 1 is under way here, and room is to be made for job 2, which waits.
    async fn asked(number: u32) -> (Scheduler, MakeRoom) {
        let mut scheduler = scheduler().await;
        let victim = claimed(1, "w");
        let live = Live::of(&victim).expect("it was claimed");
        scheduler.jobs.give(victim.id.clone(), live);
        let preemptor = queued(2);
        scheduler.stand_in_line(&preemptor);
        (scheduler, MakeRoom { victim: victim.id, number, preemptor: preemptor.id })
    }

    /// Whether job 1 stops for job 2, and whether job 2 waits.
    fn outcome(scheduler: &Scheduler, room: &MakeRoom) -> (bool, bool) {
        let live = scheduler.jobs.live(&room.victim).expect("it goes on until it is told");
        (live.stop.is_some(), scheduler.jobs.seen(&room.preemptor).is_some())
    }

    async fn read(number: u32, answer: Result<Option<Record>, store::Error>) -> (bool, bool) {
        let (mut scheduler, room) = asked(number).await;
        scheduler.preemptor_read(room.clone(), answer.map(|record| record.map(Box::new)));
        outcome(&scheduler, &room)
    }

    #[tokio::test]
    async fn nobody_stops_for_a_job_that_does_not_wait() {
        let waiting = queued(2);
        assert_eq!(read(1, Ok(Some(waiting.clone()))).await, (true, true));
        assert_eq!(read(2, Ok(Some(waiting.clone()))).await, (false, true), "another attempt");
        assert_eq!(read(1, Ok(Some(claimed(2, "v")))).await, (false, false), "it runs elsewhere");
        let held = Record { on_hold: true, fence: waiting.fence + 1, ..waiting };
        assert_eq!(read(1, Ok(Some(held))).await, (false, false));
        assert_eq!(read(1, Ok(None)).await, (false, false), "it is gone");
        let lost = store::Error::Unavailable { doing: "read", cause: "gone".to_owned() };
        assert_eq!(read(1, Err(lost)).await, (false, true), "nobody knows");
    }

    #[tokio::test]
    async fn only_where_others_may_have_claimed_it_the_store_is_asked_first() {
        for is_shared in [true, false] {
            let (mut scheduler, room) = asked(1).await;
            if !is_shared {
                scheduler.sharing = None;
            }
            let (victim, preemptor) = (room.victim.clone(), room.preemptor.clone());
            let worker = model::WorkerId::new("w");
            scheduler.preempt(Preempt { victim, worker, preemptor });
            assert_eq!(outcome(&scheduler, &room), (!is_shared, true));
            assert_eq!(scheduler.calls.len(), usize::from(is_shared));
        }
    }
}
