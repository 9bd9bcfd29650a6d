//! Queue scans: the jobs that they find, and those that they skip.

use super::*;
use crate::recent::PAYLOAD_BYTES_MAX;

#[tokio::test]
async fn queue_of_one_tenant_does_not_hide_other_tenants() {
    let (database, time) = (database(), Time::new());
    let store = open(&database, &time).await;
    submit(&store, submission("flood", "kind", 5_000)).await;
    submit(&store, submission("other", "kind", 2)).await;
    let few = Window { jobs_max: 100, ..all(0, 1) };
    let seen = store.window(few).await.unwrap();
    assert!(seen.is_more && seen.own.len() == 52);
    let others = seen.own.iter().filter(|record| record.spec.tenant == TenantId::new("other"));
    assert_eq!(others.count(), 2);
}

#[tokio::test]
async fn large_payload_is_read_by_claims_and_not_by_scans() {
    let (database, time) = (database(), Time::new());
    let (one, two) = (open(&database, &time).await, open(&database, &time).await);
    let mut jobs = submission("a", "kind", 2);
    for (job, n_bytes) in jobs.jobs.iter_mut().zip([PAYLOAD_BYTES_MAX, PAYLOAD_BYTES_MAX + 1]) {
        job.spec.payload = vec![7; n_bytes];
    }
    submit(&one, jobs).await;
    let seen = two.window(all(0, 1)).await.unwrap().own;
    let n_bytes = |record: &model::Record| record.spec.payload.len();
    assert_eq!(
        seen.iter().map(|record| n_bytes(record)).collect::<Vec<_>>(),
        [PAYLOAD_BYTES_MAX, 0]
    );
    let claims = seen.iter().map(|record| claim(&record.id, "w")).collect();
    for (claimed, expected) in
        two.claim(claims).await.unwrap().iter().zip([PAYLOAD_BYTES_MAX, PAYLOAD_BYTES_MAX + 1])
    {
        assert!(matches!(claimed, Claimed::Won(record) if n_bytes(record) == expected));
    }
}

#[tokio::test]
async fn jobs_of_other_shards_are_not_read_without_idle_slots() {
    let (database, time) = (database(), Time::new());
    let store = open(&database, &time).await;
    submit(&store, submission("a", "kind", 40)).await;
    for (spare_max, expected) in [(0, 0), (3, 3), (100, 20)] {
        let seen = store.window(Window { spare_max, ..all(0, 2) }).await.unwrap();
        assert_eq!((seen.own.len(), seen.spare.len()), (20, expected));
    }
}

#[tokio::test]
async fn scanned_jobs_are_not_read_again_until_a_full_scan() {
    let (database, time) = (database(), Time::new());
    let store = open(&database, &time).await;
    submit(&store, submission("a", "kind", 25)).await;
    let few = |reach| Window { jobs_max: 10, reach, ..all(0, 1) };
    let numbers = |seen: Seen| (ids(&seen.own), seen.is_more);
    let look = async |reach| numbers(store.window(few(reach)).await.unwrap());
    assert_eq!(look(Reach::News).await, ((1..=10).collect(), true));
    assert_eq!(look(Reach::News).await, (vec![], true));
    assert_eq!(look(Reach::More).await, ((11..=20).collect(), true));
    assert_eq!(look(Reach::All).await, ((1..=10).collect(), true));
    time.pass(Millis(5));
    submit(&store, submission("a", "kind", 1)).await;
    assert_eq!(look(Reach::News).await, (vec![], true), "it comes in its turn");
    let mut urgent = submission("a", "kind", 1);
    urgent.jobs[0].spec.priority = 9;
    submit(&store, urgent).await;
    assert_eq!(look(Reach::News).await.0.first(), Some(&27), "it stands before the others");
    while look(Reach::More).await.1 {}
    submit(&store, submission("a", "kind", 1)).await;
    let (seen, is_more) = look(Reach::News).await;
    assert!(seen.contains(&28) && !is_more, "{seen:?}");
}

#[tokio::test]
async fn the_window_is_in_the_order_of_priority_and_age_and_holds_what_can_run() {
    let (database, time) = (database(), Time::new());
    let store = open(&database, &time).await;
    let mut jobs = submission("a", "kind", 6);
    jobs.jobs[1].spec.priority = 1;
    jobs.jobs[2].on_hold = true;
    jobs.jobs[3].spec.not_before = Some(time.now() + Millis(500));
    jobs.jobs[4].after_indexes = vec![0];
    submit(&store, jobs).await;
    let seen = store.window(all(0, 1)).await.unwrap();
    assert_eq!(ids(&seen.own), [2, 1, 6]);
    assert_eq!(seen.next_due, Some(time.now() + Millis(500)));
    time.pass(Millis(500));
    let seen = store.window(all(0, 1)).await.unwrap();
    assert_eq!(ids(&seen.own), [2, 1, 4, 6]);
    store.amend(vec![JobId::number(3)], crate::Amend::Release).await.unwrap();
    let news = Window { reach: Reach::News, ..all(0, 1) };
    // The scan begins at the new place. Jobs before it were scanned.
    assert_eq!(ids(&store.window(news).await.unwrap().own), [1, 3, 4, 6]);
    let nothing = Seen { is_whole: true, ..Seen::default() };
    assert_eq!(store.window(news).await.unwrap(), nothing);
}

#[tokio::test]
async fn each_job_is_one_schedulers_to_claim_until_it_is_overdue() {
    let (database, time) = (database(), Time::new());
    let store = open(&database, &time).await;
    submit(&store, submission("a", "kind", 4)).await;
    time.pass(Millis(1_500));
    submit(&store, submission("a", "kind", 4)).await;
    let (one, two) =
        (store.window(all(0, 2)).await.unwrap(), store.window(all(1, 2)).await.unwrap());
    assert_eq!(ids(&one.own), [2, 4, 6, 8]);
    assert_eq!(ids(&two.own), [1, 3, 5, 7]);
    assert_eq!((ids(&one.overdue), ids(&one.spare)), (vec![], vec![1, 3, 5, 7]));
    let claims = two.own.iter().filter(|record| record.fence == 1).take(2);
    let claims: Vec<Claim> = claims.map(|record| claim(&record.id, "w")).collect();
    for claimed in store.claim(claims).await.unwrap() {
        assert!(matches!(claimed, Claimed::Won(_)));
    }
    let two = store.window(all(1, 2)).await.unwrap();
    assert_eq!((ids(&two.own), ids(&two.overdue)), (vec![5, 7], vec![2, 4]));
}
