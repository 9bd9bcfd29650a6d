//! Submissions.

use model::{
    Ask, Cause, Counts, Ending, Fixed, IfFailed, Input, JobId, Millis, Name, Retry, Spec, State,
    TenantId, Timestamp, Trait,
};

use super::site::{Site, after, assert_is, claim_of, ids, new, spec, submission, tenant};
use crate::{
    Claimed, Idempotency, NewJob, Old, Refusal, Repeat, Revived, Submission, first_record,
};

fn keyed(key: &str, body: u8, jobs: Vec<NewJob>) -> Submission {
    let idempotency = Some(Idempotency { key: key.to_owned(), body: [body; 32] });
    Submission { idempotency, ..submission(jobs) }
}

fn deduped(priority: i32) -> Spec {
    Spec { dedupe_key: Some("one".to_owned()), priority, ..spec() }
}

pub(super) async fn a_job_that_waits_for_nothing_is_queued(site: Site) {
    let submitted = site.submit(vec![new(Spec { priority: 7, ..spec() })]).await;
    assert_eq!((submitted.is_new, submitted.changed), (vec![true], Vec::new()));
    let record = &submitted.jobs[0];
    assert_is(record, State::Queued, None);
    assert_eq!((record.created, record.ready), (site.now(), Some(site.now())));
    assert_eq!((record.priority, record.counts), (7, Counts::default()));
    assert!(record.fence > 0 && record.current.is_none() && !record.on_hold);
    assert_eq!(site.get(record).await, *record);
    assert_eq!(site.look().await, [record.clone()]);
}

pub(super) async fn everything_that_was_asked_is_kept(site: Site) {
    let spec = Spec {
        payload: vec![0, 255, 10],
        pool: Some(Name::new("pool")),
        needs: [(Name::new("os"), vec![Name::new("linux"), Name::new("7")])].into(),
        slots: 2,
        amounts: [(Name::new("ram_mb"), 512)].into(),
        priority: -3,
        on_demand: true,
        traits: [Trait::Light, Trait::Network].into_iter().collect(),
        hint: Some(Name::new("hint")),
        inputs: vec![Input { digest: "abc".to_owned(), bytes: 9 }],
        resource: Some(Ask::Named(Name::new("workspace"))),
        if_failed: IfFailed::Run,
        dedupe_key: Some("key".to_owned()),
        not_before: Some(Timestamp(5)),
        start_before: Some(Timestamp(i64::MAX)),
        run_timeout: Some(Millis(6)),
        silence_timeout: Some(Millis(7)),
        retry: Retry { attempts_max: 9, backoff: Millis(1), backoff_max: Millis(2) },
        labels: [("a".to_owned(), "b".to_owned())].into(),
        estimate: Some(Millis(8)),
        cost: Fixed::thousandths(1_234),
        history_key: "history".to_owned(),
        group: Some("group".to_owned()),
        array_index: Some(3),
        parent: Some(JobId::number(1)),
        webhook: Some("https://example.com".to_owned()),
        ..spec()
    };
    let record = site.one(spec.clone()).await;
    assert_eq!(*site.get(&record).await.spec, spec);
    let ended = site.go(&record, Ending::Permanent).await;
    assert_eq!(*ended.record.spec, spec);
    assert_eq!(site.get(&record).await, ended.record);
}

pub(super) async fn numbers_go_up_and_are_never_used_twice(site: Site) {
    let records = site.submit(vec![new(spec()), new(spec()), new(spec())]).await.jobs;
    assert_eq!(ids(&records), [1, 2, 3].map(JobId::number));
    for record in &records {
        site.cancel(record).await;
    }
    site.time.pass(Millis(10));
    assert_eq!(site.store.forget(Old::from_before(site.now(), 100)).await.expect("it forgets"), 3);
    assert_eq!(site.plain().await.id, JobId::number(4));
}

pub(super) async fn reserved_numbers_are_never_used_by_other_jobs(site: Site) {
    // A store may reserve no numbers before its first write.
    site.plain().await;
    // A store that cannot reserve numbers returns `None`.
    let Some(first) = site.store.number(&tenant(), 2) else { return };
    let others = site.submit(vec![new(spec()), new(spec())]).await;
    let ahead = Submission { first: Some(first.clone()), ..submission(vec![new(spec()); 2]) };
    let submitted = site.store.submit(ahead).await.expect("the store answers");
    let submitted = submitted.expect("they are taken in");
    assert_eq!(submitted.jobs[0].id, first);
    let more = site.submit(vec![new(spec())]).await;
    let all = [ids(&others.jobs), ids(&submitted.jobs), ids(&more.jobs)].concat();
    let numbers: std::collections::BTreeSet<_> = all.iter().collect();
    assert_eq!(numbers.len(), 5, "{all:?}");
    let expected = first_record(first, spec(), 0, site.now());
    assert_eq!(submitted.jobs[0], expected);
}

pub(super) async fn jobs_that_are_numbered_ahead_are_claimed_as_they_come_in(site: Site) {
    site.plain().await;
    let Some(first) = site.store.number(&tenant(), 2) else { return };
    let expected = first_record(first.clone(), spec(), 0, site.now());
    let claims = vec![claim_of(&expected, "w")];
    let ahead = Submission { first: Some(first), claims, ..submission(vec![new(spec()); 2]) };
    let submitted = site.store.submit(ahead).await.expect("the store answers");
    let submitted = submitted.expect("they are taken in");
    let [Claimed::Won(won)] = &submitted.claimed[..] else { panic!("{submitted:?}") };
    assert_is(won, State::Claimed, None);
    assert_eq!((&won.id, won.counts.attempts), (&expected.id, 1));
    assert_eq!(site.get(won).await, **won);
    assert_eq!(site.get(&submitted.jobs[1]).await.state, State::Queued);
    let ended = site.end(won, Ending::Succeeded).await;
    assert_is(&ended.record, State::Succeeded, None);
}

pub(super) async fn room_is_kept_for_jobs_that_are_numbered_ahead(site: Site) {
    let plain = |n: usize| vec![new(spec()); n];
    let records = site.submit(plain(27)).await.jobs;
    let Some(first) = site.store.number(&tenant(), 2) else { return };
    assert_eq!(site.store.number(&tenant(), 2), None);
    let full = site.store.submit(submission(plain(2))).await.expect("the store answers");
    let tenant_full = Refusal::TenantFull { tenant: tenant().to_string(), jobs: 29, max: 30 };
    assert_eq!(full, Err(tenant_full));
    site.submit(plain(1)).await;
    let ahead = Submission { first: Some(first), ..submission(plain(2)) };
    let submitted = site.store.submit(ahead).await.expect("the store answers");
    assert_eq!(submitted.expect("there is room").jobs.len(), 2);
    // The room is reserved once.
    assert_eq!(site.store.number(&tenant(), 1), None);
    site.cancel(&records[0]).await;
    assert!(site.store.number(&tenant(), 1).is_some());
}

pub(super) async fn the_same_key_and_body_give_the_same_jobs_again(site: Site) {
    let jobs = vec![new(spec()), new(spec())];
    let first = site.store.submit(keyed("k", 1, jobs.clone())).await;
    let first = first.expect("the store answers").expect("it is taken in");
    assert_eq!(first.is_new, [true, true]);
    // The answer holds the jobs as they are now.
    let running = site.run(&first.jobs[0], "w").await;
    let again = site.store.submit(keyed("k", 1, jobs.clone())).await;
    let again = again.expect("the store answers").expect("it is taken in");
    assert_eq!((again.is_new, again.changed), (vec![false, false], Vec::new()));
    assert_eq!(again.jobs, [running, first.jobs[1].clone()]);
    assert_eq!(site.look().await.len(), 2);
    // The same key of a different tenant is a separate key.
    let other = Spec { tenant: TenantId::new("other"), ..spec() };
    let other = site.store.submit(keyed("k", 2, vec![new(other)])).await;
    let other = other.expect("the store answers").expect("it is taken in");
    assert_eq!(other.is_new, [true]);
}

pub(super) async fn the_same_key_with_another_body_is_refused(site: Site) {
    let first = site.store.submit(keyed("k", 1, vec![new(spec())])).await;
    first.expect("the store answers").expect("it is taken in");
    let other = site.store.submit(keyed("k", 2, vec![new(spec())])).await;
    let refusal = Refusal::KeyConflict { key: "k".to_owned() };
    assert_eq!(other.expect("the store answers"), Err(refusal));
    assert_eq!(site.look().await.len(), 1);
}

pub(super) async fn a_key_is_forgotten_with_the_first_of_its_jobs(site: Site) {
    let jobs = vec![new(spec()), new(spec())];
    let first = site.store.submit(keyed("k", 1, jobs.clone())).await;
    let first = first.expect("the store answers").expect("it is taken in");
    site.cancel(&first.jobs[1]).await;
    site.time.pass(Millis(1));
    assert_eq!(site.store.forget(Old::from_before(site.now(), 9)).await.expect("it forgets"), 1);
    let again = site.store.submit(keyed("k", 2, jobs)).await;
    let again = again.expect("the store answers").expect("it is taken in");
    assert_eq!(again.is_new, [true, true]);
}

pub(super) async fn a_dedupe_key_is_joined_and_raises_the_priority(site: Site) {
    let first = site.one(deduped(1)).await;
    let lower = site.submit(vec![new(deduped(0))]).await;
    assert_eq!((lower.is_new, lower.changed), (vec![false], Vec::new()));
    assert_eq!(lower.jobs, [first.clone()]);
    let higher = site.submit(vec![new(deduped(5))]).await;
    assert_eq!((higher.is_new, &higher.changed), (vec![false], &higher.jobs));
    assert_eq!((&higher.jobs[0].id, higher.jobs[0].priority), (&first.id, 5));
    assert_eq!(higher.jobs[0].fence, first.fence + 1);
    assert_eq!(site.look().await, higher.jobs);
    // The same key of a different type or tenant is a separate key.
    let kind = site.submit(vec![new(Spec { kind: Name::new("other"), ..deduped(0) })]).await;
    let tenant = Spec { tenant: TenantId::new("other"), ..deduped(0) };
    assert_eq!(
        (kind.is_new, site.submit(vec![new(tenant)]).await.is_new),
        (vec![true], vec![true])
    );
}

pub(super) async fn a_dedupe_key_that_is_dropped_changes_nothing(site: Site) {
    let first = site.one(deduped(1)).await;
    let dropped = NewJob { repeat: Repeat::Drop, ..new(deduped(5)) };
    let dropped = site.submit(vec![dropped]).await;
    assert_eq!((dropped.jobs, dropped.is_new, dropped.changed), (vec![first], vec![false], vec![]));
}

pub(super) async fn a_dedupe_key_is_free_again_when_its_job_is_final(site: Site) {
    let first = site.one(deduped(0)).await;
    site.go(&first, Ending::Succeeded).await;
    let second = site.submit(vec![new(deduped(0))]).await;
    assert_eq!(second.is_new, [true]);
    assert_ne!(second.jobs[0].id, first.id);
}

pub(super) async fn two_of_one_submission_join_each_other(site: Site) {
    let jobs = vec![new(deduped(1)), new(spec()), new(deduped(3))];
    let submitted = site.submit(jobs).await;
    assert_eq!(submitted.is_new, [true, true, false]);
    assert_eq!((&submitted.jobs[0], submitted.jobs[0].priority), (&submitted.jobs[2], 3));
    assert_eq!(submitted.changed, []);
    assert_eq!(site.look().await, submitted.jobs[..2]);
}

pub(super) async fn a_refused_submission_leaves_no_trace(site: Site) {
    let other = site.one(Spec { tenant: TenantId::new("other"), ..spec() }).await;
    let first = site.one(deduped(0)).await;
    let before = site.look().await;
    let unknown = JobId::number(99);
    for id in [unknown, other.id.clone(), JobId::new("nine")] {
        let broken = Spec { after: vec![id.clone()], ..spec() };
        let jobs = vec![new(deduped(9)), new(after(&[&first])), new(broken)];
        let refused = site.store.submit(keyed("k", 1, jobs)).await.expect("the store answers");
        assert_eq!(refused, Err(Refusal::NoSuchJob { index: 2, job: id }));
        assert_eq!(site.look().await, before);
    }
    let forward = NewJob { after_indexes: vec![1], ..new(spec()) };
    let refused = site.store.submit(submission(vec![forward, new(spec())])).await;
    assert!(matches!(refused, Ok(Err(Refusal::NoSuchJob { index: 0, .. }))));
    // The refused submission did not use up its key.
    let again = site.store.submit(keyed("k", 2, vec![new(spec())])).await;
    assert_eq!(again.expect("the store answers").expect("it is taken in").is_new, [true]);
}

pub(super) async fn a_tenant_and_a_store_can_be_full(site: Site) {
    let plain = |n: usize| vec![new(spec()); n];
    let records = site.submit(plain(29)).await.jobs;
    let full = site.store.submit(submission(plain(2))).await.expect("the store answers");
    let tenant_full = Refusal::TenantFull { tenant: tenant().to_string(), jobs: 29, max: 30 };
    assert_eq!(full, Err(tenant_full));
    assert_eq!(site.look().await.len(), 29);
    site.submit(plain(1)).await;
    let other = Spec { tenant: TenantId::new("other"), ..spec() };
    site.submit(vec![new(other.clone()); 10]).await;
    let full = site.store.submit(submission(vec![new(other.clone())])).await;
    let store_full = Refusal::StoreFull { jobs: 40, max: 40 };
    assert_eq!(full.expect("the store answers"), Err(store_full.clone()));
    // A final job takes no room, and neither does a job that is final at its submission.
    site.cancel(&records[0]).await;
    site.one(other).await;
    let over = site.one(after(&[&records[0]])).await;
    assert_is(&over, State::Cancelled, Some(Cause::Dependency));
    // A revived job needs room like a new one.
    let again = site.store.revive(vec![records[0].id.clone()]).await;
    assert_eq!(again.expect("the store answers"), [Revived::Full(store_full)]);
}
