//! Dependencies between jobs.

use model::{Cause, Ending, IfFailed, Millis, Spec, State};

use super::site::{Site, after, assert_is, done, ids, new, spec};
use crate::NewJob;

pub(super) async fn job_is_released_by_its_last_blocker(site: Site) {
    let (one, two) = (site.plain().await, site.plain().await);
    let twice = Spec { after: vec![one.id.clone(), two.id.clone(), one.id.clone()], ..spec() };
    let submitted = site.submit(vec![new(twice)]).await;
    let waiter = &submitted.jobs[0];
    assert_is(waiter, State::Blocked, None);
    assert_eq!((waiter.n_blockers, waiter.ready), (2, None));
    assert_eq!(ids(&submitted.changed), [one.id.clone(), two.id.clone()]);
    for (before, now) in [&one, &two].into_iter().zip(&submitted.changed) {
        assert_eq!((now.n_dependents, now.fence), (1, before.fence + 1));
        assert_eq!(site.get(before).await, *now);
    }
    let ended = site.go(&one, Ending::Succeeded).await;
    assert_eq!(ended.record.n_dependents, 0);
    assert_eq!((ended.released, ended.cancelled), (vec![], vec![]));
    let waiting = site.get(waiter).await;
    assert_eq!(ended.changed, [waiting.clone()]);
    assert_eq!((waiting.state, waiting.n_blockers), (State::Blocked, 1));

    site.time.pass(Millis(30));
    let ended = site.go(&two, Ending::Succeeded).await;
    assert_eq!((ended.changed, ended.cancelled), (vec![], vec![]));
    let released = site.get(waiter).await;
    assert_eq!(ended.released, [released.clone()]);
    assert_is(&released, State::Queued, None);
    assert_eq!((released.n_blockers, released.ready), (0, Some(site.now())));
    assert_eq!(released.created, waiter.created);
    site.claim(&released, "w").await;
}

pub(super) async fn final_job_blocks_nothing(site: Site) {
    let (good, bad) = (site.plain().await, site.plain().await);
    site.go(&good, Ending::Succeeded).await;
    site.go(&bad, Ending::Permanent).await;
    assert_is(&site.one(after(&[&good])).await, State::Queued, None);
    let over = site.submit(vec![new(after(&[&good, &bad]))]).await;
    assert_is(&over.jobs[0], State::Cancelled, Some(Cause::Dependency));
    assert_eq!((over.is_new, over.jobs[0].finished), (vec![true], Some(site.now())));
    assert_eq!(site.get(&over.jobs[0]).await, over.jobs[0]);
    let run = Spec { if_failed: IfFailed::Run, ..after(&[&good, &bad]) };
    assert_is(&site.one(run).await, State::Queued, None);
}

pub(super) async fn places_in_a_submission_are_dependencies(site: Site) {
    let bad = site.plain().await;
    site.cancel(&bad).await;
    let at = |spec: Spec, places: &[usize]| NewJob { after_indexes: places.to_vec(), ..new(spec) };
    let jobs = vec![
        new(spec()),
        at(spec(), &[0]),
        at(spec(), &[0, 1, 1]),
        new(after(&[&bad])),
        at(spec(), &[3, 0]),
        at(Spec { if_failed: IfFailed::Run, ..spec() }, &[3, 0]),
    ];
    let records = site.submit(jobs).await.jobs;
    let facts = |place: usize| {
        let record = &records[place];
        (record.state, record.n_blockers, record.n_dependents)
    };
    assert_eq!(facts(0), (State::Queued, 0, 3));
    assert_eq!(facts(1), (State::Blocked, 1, 1));
    assert_eq!(facts(2), (State::Blocked, 2, 0));
    assert_eq!(facts(3), (State::Cancelled, 0, 0));
    assert_eq!(facts(4), (State::Cancelled, 0, 0));
    assert_eq!(facts(5), (State::Blocked, 1, 0));
    for record in &records {
        assert_eq!(site.get(record).await, *record);
    }
    let named = ids(&[records[0].clone(), records[1].clone()]);
    assert_eq!(records[2].spec.after, named, "it is known later which jobs it waited for");
    let ended = site.go(&records[0], Ending::Succeeded).await;
    assert_eq!(ids(&ended.released), ids(&[records[1].clone(), records[5].clone()]));
    assert_eq!(ids(&ended.changed), ids(&records[2..3]));
}

pub(super) async fn failure_cancels_or_releases_dependents(site: Site) {
    let root = site.plain().await;
    let other = site.plain().await;
    let child = site.one(after(&[&root, &other])).await;
    let grandchild = site.one(after(&[&child])).await;
    let stubborn = site.one(Spec { if_failed: IfFailed::Run, ..after(&[&root]) }).await;
    let patient = Spec { if_failed: IfFailed::Run, ..after(&[&grandchild, &other]) };
    let patient = site.one(patient).await;
    site.time.pass(Millis(9));
    let ended = site.go(&root, Ending::Permanent).await;
    assert_eq!(ids(&ended.cancelled), [child.id.clone(), grandchild.id.clone()]);
    assert_eq!(ids(&ended.released), [stubborn.id.clone()]);
    assert_eq!(ids(&ended.changed), [other.id.clone(), patient.id.clone()]);
    for record in &ended.cancelled {
        assert_is(record, State::Cancelled, Some(Cause::Dependency));
        assert_eq!((record.finished, record.n_blockers), (Some(site.now()), 0));
    }
    assert_eq!((ended.changed[0].n_dependents, ended.changed[1].n_blockers), (1, 1));
    let lists = [&ended.cancelled, &ended.released, &ended.changed];
    for record in lists.into_iter().flatten() {
        assert_eq!(site.get(record).await, *record);
    }
    // A transient failure with a retry releases no dependent.
    let other = site.go(&other, Ending::Transient).await;
    assert_eq!((other.record.state, other.record.n_dependents), (State::Queued, 1));
    assert_eq!(other.released.len() + other.cancelled.len() + other.changed.len(), 0);
}

pub(super) async fn cancelled_dependent_is_no_longer_counted(site: Site) {
    let root = site.plain().await;
    let waiter = site.one(after(&[&root])).await;
    let last = site.one(after(&[&waiter])).await;
    let (record, [released, cancelled, changed]) = done(site.cancel(&waiter).await);
    assert_is(&record, State::Cancelled, Some(Cause::Asked));
    assert_eq!((released, ids(&cancelled)), (vec![], vec![last.id.clone()]));
    assert_eq!(changed, [site.get(&root).await]);
    assert_eq!(changed[0].n_dependents, 0);
    let ended = site.go(&root, Ending::Succeeded).await;
    assert_eq!(ended.released.len() + ended.cancelled.len() + ended.changed.len(), 0);
}

pub(super) async fn a_diamond_is_cancelled_once(site: Site) {
    let top = site.plain().await;
    let left = site.one(after(&[&top])).await;
    let right = site.one(after(&[&top])).await;
    let bottom = site.one(after(&[&left, &right, &top])).await;
    let run = Spec { if_failed: IfFailed::Run, ..after(&[&left, &right, &bottom]) };
    let run = site.one(run).await;
    let (_, [released, cancelled, changed]) = done(site.cancel(&top).await);
    assert_eq!(ids(&cancelled), ids(&[left, right, bottom]));
    assert_eq!((ids(&released), changed), (vec![run.id.clone()], vec![]));
    assert_eq!(released, [site.get(&run).await]);
}
