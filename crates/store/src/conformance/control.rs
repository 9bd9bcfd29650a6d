//! Cancel, hold, release, priority and revive.

use model::{Cause, Ending, Fixed, JobId, Millis, Retry, Spec, State};

use super::site::{Site, accepted, after, assert_is, done, end_of, ids, spec};
use crate::{Amend, Amended, Cancelled, Claimed, End, Revived};

pub(super) async fn a_waiting_job_is_cancelled_at_once(site: Site) {
    let record = site.plain().await;
    site.time.pass(Millis(4));
    let (cancelled, _) = done(site.cancel(&record).await);
    assert_is(&cancelled, State::Cancelled, Some(Cause::Asked));
    assert_eq!((cancelled.finished, cancelled.fence), (Some(site.now()), record.fence + 1));
    assert_eq!(site.get(&record).await, cancelled);
    assert_eq!(site.try_claim(&record, "w").await, Claimed::Lost(None));
    let unchanged = Cancelled::Unchanged(Box::new(cancelled));
    assert_eq!(site.cancel(&record).await, unchanged);
    let unknown = site.store.cancel(vec![JobId::number(99)]).await.expect("it answers");
    assert_eq!(unknown, [Cancelled::Unknown]);
}

pub(super) async fn cancelled_live_job_ends_as_cancelled(site: Site) {
    for ending in Ending::ALL {
        let record = site.plain().await;
        let child = site.one(after(&[&record])).await;
        let running = site.run(&record, "w").await;
        let Cancelled::Stopping(stopping) = site.cancel(&record).await else {
            panic!("a worker has it")
        };
        assert!(stopping.cancelling && stopping.state == State::Running);
        assert_eq!(stopping.fence, running.fence + 1);
        assert_eq!(site.cancel(&record).await, Cancelled::Stopping(stopping.clone()));
        assert_eq!(site.get(&record).await, *stopping);
        let ended = accepted(site.try_end(end_of(&running, ending)).await);
        assert_is(&ended.record, State::Cancelled, Some(Cause::Asked));
        assert!(!ended.record.cancelling);
        assert_eq!(ids(&ended.cancelled), [child.id.clone()]);
        let pasts = site.past(&record).await;
        assert_eq!((pasts.len(), pasts[0].ending), (1, ending));
    }
}

pub(super) async fn a_final_job_cannot_be_cancelled(site: Site) {
    let record = site.plain().await;
    let ended = site.go(&record, Ending::Succeeded).await.record;
    assert_eq!(site.cancel(&record).await, Cancelled::Unchanged(Box::new(ended)));
}

pub(super) async fn hold_release_and_priority_change_waiting_jobs(site: Site) {
    let first = site.plain().await;
    let second = site.one(after(&[&first])).await;
    let ids = vec![first.id.clone(), second.id.clone(), JobId::number(99)];
    let mut fence = site.get(&first).await.fence;
    for (amend, on_hold, priority) in [
        (Amend::Hold, true, 0),
        (Amend::Priority(-9), true, -9),
        (Amend::Release, false, -9),
        (Amend::Priority(0), false, 0),
    ] {
        let amended = site.store.amend(ids.clone(), amend).await.expect("it answers");
        for (answer, record) in amended.iter().zip([&first, &second]) {
            let now = site.get(record).await;
            assert_eq!((now.on_hold, now.priority), (on_hold, priority));
            assert_eq!(*answer, Amended::Done(Box::new(now)));
        }
        assert_eq!(amended[2], Amended::Unknown);
        fence += 1;
        assert_eq!(site.get(&first).await.fence, fence);
        // A repetition changes nothing.
        site.store.amend(ids.clone(), amend).await.expect("it answers");
        assert_eq!(site.get(&first).await.fence, fence);
    }
    let running = site.run(&first, "w").await;
    for state in [State::Running, State::Succeeded] {
        let amended = site.store.amend(ids[..1].to_vec(), Amend::Hold).await.expect("it answers");
        assert_eq!(amended, [Amended::NotWaiting(state)]);
        site.try_end(end_of(&running, Ending::Succeeded)).await;
    }
}

pub(super) async fn a_revived_job_has_all_its_tries_and_new_tokens(site: Site) {
    let retry = Retry { attempts_max: 2, ..Retry::DEFAULT };
    let record = site.one(Spec { retry, ..spec() }).await;
    let child = site.one(after(&[&record])).await;
    site.go(&record, Ending::Lost).await;
    site.go(&record, Ending::Preempted).await;
    site.go(&record, Ending::Transient).await;
    let running = site.run(&record, "w").await;
    let error = Some("no".to_owned());
    let end = End { error, exit_code: Some(1), ..end_of(&running, Ending::Transient) };
    let failed = accepted(site.try_end(end.clone()).await).record;
    assert_is(&failed, State::Failed, Some(Cause::Exhausted));
    site.time.pass(Millis(70));
    let revived = site.store.revive(vec![record.id.clone()]).await.expect("it answers").remove(0);
    let Revived::Done(revived) = revived else { panic!("it was not revived: {revived:?}") };
    assert_is(&revived, State::Queued, None);
    let counts = revived.counts;
    assert_eq!((counts.attempts, counts.failures, counts.losses), (4, 0, 0));
    assert_eq!((counts.evictions, counts.revived), (1, 1));
    assert_eq!((revived.ready, revived.created), (Some(site.now()), record.created));
    assert_eq!((&revived.error, revived.exit_code, revived.finished), (&None, None, None));
    assert_eq!((revived.cost, revived.fence), (Some(Fixed::whole(2)), failed.fence + 1));
    assert_eq!(site.get(&record).await, *revived);
    assert_eq!(site.look().await, [(*revived).clone()]);
    assert_eq!(site.get(&child).await.state, State::Cancelled);

    let again = site.store.revive(vec![record.id.clone()]).await.expect("it answers");
    assert_eq!(again, [Revived::NotFinished(State::Queued)]);
    assert_eq!(site.try_end(end).await, crate::Ended::Repeated);
    assert_eq!(site.go(&record, Ending::Transient).await.record.state, State::Queued);
    let ended = site.go(&record, Ending::Succeeded).await.record;
    assert_eq!(ended.counts.attempts, 6);
    let ids = vec![record.id.clone(), JobId::number(99)];
    let answers = site.store.revive(ids).await.expect("it answers");
    assert_eq!(answers, [Revived::NotFinished(State::Succeeded), Revived::Unknown]);
}

pub(super) async fn a_job_is_not_revived_onto_a_key_that_is_taken(site: Site) {
    let deduped = Spec { dedupe_key: Some("one".to_owned()), ..spec() };
    let first = site.one(deduped.clone()).await;
    site.cancel(&first).await;
    let second = site.one(deduped).await;
    let taken = site.store.revive(vec![first.id.clone()]).await.expect("it answers");
    assert_eq!(taken, [Revived::Taken(second.id.clone())]);
    site.cancel(&second).await;
    let both = vec![first.id.clone(), second.id.clone()];
    let answers = site.store.revive(both).await.expect("it answers");
    assert!(matches!(answers[0], Revived::Done(_)));
    assert_eq!(answers[1], Revived::Taken(first.id));
}

pub(super) async fn late_job_fails(site: Site) {
    let start_before = Some(site.now() + Millis(10));
    let late = site.one(Spec { start_before, ..spec() }).await;
    let child = site.one(after(&[&late])).await;
    let running = site.one(Spec { start_before, ..spec() }).await;
    let running = site.run(&running, "w").await;
    let blocked = Spec { start_before, ..after(&[&running]) };
    let blocked = site.one(blocked).await;
    let any = site.plain().await;
    let ids_of = [&late, &running, &blocked, &any].map(|record| record.id.clone()).to_vec();
    site.time.pass(Millis(9));
    for answer in site.store.give_up(ids_of.clone()).await.expect("it answers") {
        assert!(matches!(answer, Cancelled::Unchanged(_)));
    }
    site.time.pass(Millis(1));
    let mut answers = site.store.give_up(ids_of.clone()).await.expect("it answers").into_iter();
    let (record, [_, cancelled, _]) = done(answers.next().expect("one answer each"));
    assert_is(&record, State::Failed, Some(Cause::TooLate));
    assert_eq!(ids(&cancelled), [child.id]);
    for answer in answers {
        assert!(matches!(answer, Cancelled::Unchanged(record) if !record.state.is_terminal()));
    }
    let again = site.store.give_up(vec![late.id, JobId::number(99)]).await.expect("it answers");
    assert_eq!(again, [Cancelled::Unchanged(Box::new(record)), Cancelled::Unknown]);
}
