//! A store keeps nothing of jobs that no client will ask about.

use model::{Ending, Fixed, Measured, Millis, Record, Spec, State};

use super::site::{Site, accepted, after, assert_is, end_of, new, spec, submission};
use crate::{End, Ended, Filter, Idempotency, LogChunk, Stream, Submission};

pub(super) async fn job_without_traces_is_deleted_at_its_end(site: Site) {
    let record = site.plain().await;
    let running = site.run(&record, "w").await;
    let end = End {
        exit_code: Some(0),
        measured: Measured { cpu_ms: Some(7), ..Measured::default() },
        forget: true,
        ..end_of(&running, Ending::Succeeded)
    };
    let ended = accepted(site.try_end(end.clone()).await);
    assert_is(&ended.record, State::Succeeded, None);
    assert_eq!((ended.charged, ended.run.is_some()), (Fixed::ONE, true));
    assert_eq!(site.store.job(record.id.clone()).await.expect("it answers"), None);
    assert_eq!(site.store.jobs(Filter::default()).await.expect("it answers"), []);
    assert_eq!(site.past(&record).await, []);
    assert_eq!(site.try_end(end).await, Ended::Stale, "the job is deleted");
    let usage = site.store.usage(site.now()).await.expect("it answers").remove(0);
    assert_eq!((usage.cost, usage.completed), (Fixed::ONE, 1));
    let plain = End { forget: true, ..end_of(&site.running().await, Ending::Succeeded) };
    accepted(site.try_end(plain.clone()).await);
    assert_eq!(site.store.job(plain.job).await.expect("it answers"), None);
}

pub(super) async fn job_with_traces_is_not_deleted_at_its_end(site: Site) {
    let forgettable = |record: &Record| End { forget: true, ..end_of(record, Ending::Succeeded) };
    let said = site.running().await;
    let said = End { result: Some(b"42".to_vec()), ..forgettable(&said) };
    let failed = End { ending: Ending::Permanent, ..forgettable(&site.running().await) };
    let printed = site.running().await;
    let chunk = LogChunk {
        job: printed.id.clone(),
        attempt: 1,
        stream: Stream::Out,
        offset: 0,
        at: site.now(),
        bytes: b"done"[..].into(),
    };
    site.store.log(vec![chunk]).await.expect("it answers");
    let waited_for = site.running().await;
    site.one(after(&[&waited_for])).await;
    let awaited = site.one(Spec { on_demand: true, ..spec() }).await;
    let awaited = site.run(&awaited, "w").await;
    let grouped = site.one(Spec { group: Some("g".to_owned()), ..spec() }).await;
    let grouped = site.run(&grouped, "w").await;
    let keyed = Spec { dedupe_key: Some("k".to_owned()), ..spec() };
    let keyed = site.run(&site.one(keyed).await, "w").await;
    let idempotency = Some(Idempotency { key: "again".to_owned(), body: [1; 32] });
    let again = Submission { idempotency, ..submission(vec![new(spec())]) };
    let first = site.store.submit(again.clone()).await.expect("it answers").expect("room");
    let first = site.run(&first.jobs[0], "w").await;
    let tried = site.running().await;
    accepted(site.try_end(end_of(&tried, Ending::Refused)).await);
    site.time.pass(Millis(1_000));
    let tried = site.run(&site.get(&tried).await, "w").await;
    let records = [printed, waited_for, awaited, grouped, keyed, first, tried];
    let ends = [said, failed].into_iter().chain(records.iter().map(forgettable));
    for end in ends {
        let job = end.job.clone();
        accepted(site.try_end(end.clone()).await);
        assert!(site.store.job(job).await.expect("it answers").is_some(), "{end:?}");
        assert_eq!(site.try_end(end).await, Ended::Repeated);
    }
    let repeated = site.store.submit(again).await.expect("it answers").expect("room");
    assert_eq!((repeated.jobs.len(), repeated.is_new), (1, vec![false]));
}
