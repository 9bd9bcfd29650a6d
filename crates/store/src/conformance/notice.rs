//! The store returns a notice when a job with a webhook is final.

use model::{Cause, Ending, Millis, Retry, Spec, State};

use super::site::{Site, after, done, spec};
use crate::{Notice, Old};

const RETRY: Retry = Retry { attempts_max: 9, backoff: Millis(1_000), backoff_max: Millis(4_000) };

impl Site {
    async fn notices(&self, max: usize) -> Vec<Notice> {
        self.store.notices(RETRY, max).await.expect("the store answers")
    }
}

fn asking() -> Spec {
    Spec { webhook: Some("https://a.example/x".to_owned()), ..spec() }
}

/// The jobs, their final states, and how often each notice was returned.
fn told(notices: &[Notice]) -> Vec<(u64, State, u32)> {
    let told = |notice: &Notice| {
        let job = notice.job.as_number().expect("a store numbers its jobs");
        (job, notice.state, notice.tries)
    };
    notices.iter().map(told).collect()
}

pub(super) async fn only_jobs_with_a_webhook_have_notices(site: Site) {
    let plain = site.plain().await;
    site.go(&plain, Ending::Succeeded).await;
    let record = site.one(asking()).await;
    let retried = site.go(&record, Ending::Transient).await.record;
    assert_eq!(site.notices(9).await, []);
    site.time.pass(Millis(60_000));
    let last = site.go(&retried, Ending::Permanent).await.record;
    let notices = site.notices(9).await;
    let [notice] = &notices[..] else { panic!("one notice is due: {notices:?}") };
    assert_eq!(notice.tries, 1);
    assert_eq!(Notice::of(notice.id, &last), Some(Notice { tries: 0, ..notice.clone() }));
    assert_eq!((notice.cause, notice.url.as_str()), (last.cause, "https://a.example/x"));
}

pub(super) async fn notice_is_due_again_after_a_wait_until_it_is_delivered(site: Site) {
    let record = site.one(asking()).await;
    site.go(&record, Ending::Succeeded).await;
    let first = site.notices(9).await;
    for (tries, wait) in [(2, 1_000), (3, 2_000), (4, 4_000), (5, 4_000)] {
        // The wait is between a half and all of `wait`.
        site.time.pass(Millis(wait / 2 - 1));
        assert_eq!(site.notices(9).await, []);
        site.time.pass(Millis(wait / 2 + 1));
        let again = site.notices(9).await;
        assert_eq!(again, [Notice { tries, ..first[0].clone() }]);
    }
    site.store.told(vec![first[0].id, 999]).await.expect("the store answers");
    site.time.pass(Millis(100_000));
    assert_eq!(site.notices(9).await, []);
}

pub(super) async fn notices_come_in_order_and_their_ids_are_never_used_twice(site: Site) {
    let mut ids = Vec::new();
    for _ in 0..3 {
        let record = site.one(asking()).await;
        site.go(&record, Ending::Succeeded).await;
        site.time.pass(Millis(1));
    }
    for n in 1..=3 {
        let notices = site.notices(1).await;
        assert_eq!(told(&notices), [(n, State::Succeeded, 1)]);
        ids.push(notices[0].id);
    }
    assert!(ids.is_sorted());
    site.store.told(ids.clone()).await.expect("the store answers");
    let record = site.one(asking()).await;
    site.go(&record, Ending::Succeeded).await;
    assert!(site.notices(9).await[0].id > ids[2]);
}

pub(super) async fn every_final_state_has_a_notice(site: Site) {
    let first = site.one(asking()).await;
    let second = site.one(Spec { webhook: asking().webhook, ..after(&[&first]) }).await;
    let third = site.one(Spec { webhook: asking().webhook, ..after(&[&second]) }).await;
    let late = site.one(Spec { start_before: Some(site.now()), ..asking() }).await;
    site.store.give_up(vec![late.id.clone()]).await.expect("the store answers");
    done(site.cancel(&first).await);
    // A job that is final at its submission.
    site.one(Spec { webhook: asking().webhook, ..after(&[&third]) }).await;
    let notices = site.notices(9).await;
    let off = State::Cancelled;
    assert_eq!(
        told(&notices),
        [(4, State::Failed, 1), (1, off, 1), (2, off, 1), (3, off, 1), (5, off, 1)]
    );
    let causes: Vec<Option<Cause>> = notices.iter().map(|notice| notice.cause).collect();
    let follows = Some(Cause::Dependency);
    assert_eq!(causes, [Some(Cause::TooLate), Some(Cause::Asked), follows, follows, follows]);
}

pub(super) async fn a_notice_outlives_its_job_but_not_forever(site: Site) {
    let record = site.one(asking()).await;
    let cancelled = done(site.cancel(&record).await).0;
    site.store.revive(vec![record.id.clone()]).await.expect("the store answers");
    assert_eq!(told(&site.notices(9).await), [(1, State::Cancelled, 1)], "it is queued again");
    site.time.pass(Millis(9_000));
    let before = cancelled.finished.expect("it was final");
    site.store.forget(Old::from_before(before, 9)).await.expect("the store answers");
    assert_eq!(site.notices(9).await.len(), 1);
    site.time.pass(Millis(9_000));
    site.store.forget(Old::from_before(before + Millis(1), 9)).await.expect("the store answers");
    assert_eq!(site.notices(9).await, []);
}
