//! Sessions and leases of workers.

use model::{Ending, Millis, Record};

use super::site::{Site, accepted, end_of, ids, spec, worker};
use crate::{End, Ended, Old, Provided, Session};

const LEASE: Millis = Millis(1_000);

async fn join(site: &Site, name: &str) -> Session {
    site.store.join(worker(name), LEASE).await.expect("the store answers")
}

async fn renew(site: &Site, session: &Session) -> bool {
    let renewed = site.store.renew(vec![session.clone()], LEASE).await;
    renewed.expect("the store answers") == [true]
}

async fn expired(site: &Site) -> Vec<Record> {
    site.store.expired(99).await.expect("the store answers")
}

pub(super) async fn generations_go_up_and_the_newest_counts(site: Site) {
    let first = join(&site, "w").await;
    let second = join(&site, "w").await;
    assert_eq!(first.worker, worker("w"));
    assert_eq!(second.generation, first.generation + 1);
    let stranger = Session { worker: worker("v"), generation: 1 };
    let renewed = site.store.renew(vec![first.clone(), second.clone(), stranger], LEASE).await;
    assert_eq!(renewed.expect("the store answers"), [false, true, false]);
    assert!(!site.store.leave(first).await.expect("the store answers"));
    assert!(renew(&site, &second).await);
    // Also after the session was deleted.
    site.time.pass(Millis(1_000_000));
    site.store.forget(Old::from_before(site.now(), 9)).await.expect("it forgets");
    assert!(join(&site, "w").await.generation > second.generation);
    assert!(!renew(&site, &second).await);
}

pub(super) async fn attempts_of_a_silent_worker_are_expired(site: Site) {
    let (silent, lively) = (join(&site, "silent").await, join(&site, "lively").await);
    let claimed = site.claim(&site.plain().await, "silent").await;
    let running = site.run(&site.plain().await, "silent").await;
    site.run(&site.plain().await, "lively").await;
    site.plain().await;
    site.time.pass(Millis(999));
    assert_eq!(expired(&site).await, []);
    assert!(renew(&site, &lively).await);
    site.time.pass(Millis(1));
    assert_eq!(expired(&site).await, [claimed.clone(), running.clone()]);
    assert_eq!(site.store.expired(1).await.expect("the store answers"), [claimed.clone()]);
    // A query changes nothing, and a heartbeat is in time until the attempts are ended.
    assert_eq!(site.get(&claimed).await, claimed);
    assert!(renew(&site, &silent).await);
    assert_eq!(expired(&site).await, []);
    site.time.pass(Millis(1_000));
    // A new connection is a heartbeat too, and the worker keeps its attempts.
    join(&site, "silent").await;
    assert_eq!(expired(&site).await.len(), 1);
    assert_eq!(site.get(&running).await, running);
}

pub(super) async fn a_worker_that_left_has_no_lease(site: Site) {
    let session = join(&site, "w").await;
    let running = site.run(&site.plain().await, "w").await;
    assert!(site.store.leave(session.clone()).await.expect("the store answers"));
    assert_eq!(expired(&site).await, [running.clone()]);
    assert!(!renew(&site, &session).await);
    assert!(!site.store.leave(session).await.expect("the store answers"));
    site.store.renew_all(LEASE).await.expect("the store answers");
    assert_eq!(expired(&site).await, [running]);
    let session = join(&site, "w").await;
    assert_eq!((expired(&site).await, renew(&site, &session).await), (vec![], true));
}

pub(super) async fn renew_all_gives_busy_workers_a_fresh_lease(site: Site) {
    join(&site, "w").await;
    let idle = join(&site, "idle").await;
    let running = site.run(&site.plain().await, "w").await;
    site.time.pass(Millis(60_000));
    assert_eq!(ids(&expired(&site).await), [running.id.clone()]);
    site.store.renew_all(Millis(50)).await.expect("the store answers");
    assert_eq!(expired(&site).await, []);
    site.time.pass(Millis(50));
    assert_eq!(ids(&expired(&site).await), [running.id.clone()]);
    assert!(renew(&site, &idle).await);
}

pub(super) async fn attempt_of_a_worker_that_never_connected_expires(site: Site) {
    let claimed = site.claim(&site.one(spec()).await, "nobody").await;
    assert_eq!(expired(&site).await, [claimed]);
    let session = join(&site, "nobody").await;
    assert!(session.generation > 0 && expired(&site).await.is_empty());
}

pub(super) async fn worker_with_a_heartbeat_in_time_keeps_its_attempts(site: Site) {
    let session = join(&site, "w").await;
    let running = site.run(&site.plain().await, "w").await;
    let lost = End { provided: Provided::Silence, ..end_of(&running, Ending::Lost) };
    let end = async |lost: &End| {
        let mut ended = site.store.complete(vec![lost.clone()]).await.expect("the store answers");
        ended.pop().expect("an answer for each")
    };
    site.time.pass(LEASE);
    assert_eq!(expired(&site).await, [running.clone()]);
    // The heartbeat arrives after the expired lease was read, and before the attempts are ended.
    assert!(renew(&site, &session).await);
    assert_eq!(end(&lost).await, Ended::Stale);
    assert_eq!(site.get(&running).await, running);
    // After that, the lease cannot be renewed.
    site.time.pass(LEASE);
    assert_eq!(accepted(end(&lost).await).record.counts.losses, 1);
    assert!(!renew(&site, &session).await);
    assert!(renew(&site, &join(&site, "w").await).await);
}

pub(super) async fn started_attempt_is_not_ended_as_never_started(site: Site) {
    let claimed = site.claim(&site.plain().await, "w").await;
    let refused = End { provided: Provided::NoStart, ..end_of(&claimed, Ending::Refused) };
    site.start(&claimed).await;
    assert_eq!(site.try_end(refused.clone()).await, Ended::Stale);
    let claimed = site.claim(&site.plain().await, "w").await;
    let (job, attempt) = (claimed.id.clone(), claimed.counts.attempts);
    assert_eq!(
        accepted(site.try_end(End { job, attempt, ..refused }).await).record.counts.refusals,
        1
    );
}
