//! Kept data is read, and deleted after its retention.

use std::sync::Arc;

use model::{
    Cause, Ending, Fixed, JobId, Measured, Millis, Name, Record, Spec, State, TenantId, Timestamp,
};

use super::site::{Site, accepted, end_of, ids, new, spec, tenant, worker};
use crate::{End, Filter, LogChunk, LogPage, Old, Setting, SettingKind, Stream};

pub(super) async fn unfinished_jobs_are_looked_at_by_id(site: Site) {
    let records = site.submit(vec![new(spec()); 5]).await.jobs;
    site.cancel(&records[2]).await;
    let page = |after: Option<&Record>, max| {
        let (store, after) = (Arc::clone(&site.store), after.map(|record| record.id.clone()));
        async move { ids(&store.look(after, max).await.expect("the store answers")) }
    };
    assert_eq!(page(None, 3).await, [1, 2, 4].map(JobId::number));
    assert_eq!(page(Some(&records[1]), 9).await, [4, 5].map(JobId::number));
    assert_eq!(page(Some(&records[4]), 9).await, []);
    assert_eq!(page(None, 0).await, []);
}

pub(super) async fn unfinished_jobs_are_counted_by_type_and_state(site: Site) {
    let kinds = ["b", "a", "b", "b", "c"];
    for kind in kinds {
        site.one(Spec { kind: Name::new(kind), ..spec() }).await;
    }
    let records = site.look().await;
    site.run(&records[0], "v").await;
    site.go(&records[4], Ending::Succeeded).await;
    let tally = site.store.tally().await.expect("the store answers");
    let tally: Vec<String> = tally
        .iter()
        .map(|tally| format!("{} {} {}", tally.kind, tally.state.name(), tally.n_jobs))
        .collect();
    assert_eq!(tally, ["a queued 1", "b queued 2", "b running 1"]);
}

pub(super) async fn lists_are_filtered_and_paged(site: Site) {
    let labels =
        [("a", "1"), ("b \"x\"", "2")].map(|(key, label)| (key.to_owned(), label.to_owned()));
    let group = Some("group".to_owned());
    let specs = [
        spec(),
        Spec { labels: labels.clone().into(), ..spec() },
        Spec { tenant: TenantId::new("other"), group: group.clone(), ..spec() },
        Spec { kind: Name::new("other"), group: group.clone(), ..spec() },
        Spec {
            labels: labels[..1].iter().cloned().collect(),
            parent: Some(JobId::number(1)),
            ..spec()
        },
    ];
    for spec in specs {
        site.one(spec).await;
    }
    let records = site.look().await;
    site.go(&records[0], Ending::Succeeded).await;
    site.go(&records[3], Ending::Permanent).await;
    let running = site.run(&records[4], "v").await;
    let found = |filter: Filter| {
        let store = Arc::clone(&site.store);
        let max = if filter.max == 0 { 99 } else { filter.max };
        async move {
            let records = store.jobs(Filter { max, ..filter }).await.expect("the store answers");
            records.iter().map(|record| record.id.to_string()).collect::<Vec<_>>().join(" ")
        }
    };
    let all = Filter::default;
    assert_eq!(found(all()).await, "5 4 3 2 1");
    assert_eq!(found(Filter { max: 2, ..all() }).await, "5 4");
    let before = Some(JobId::number(4));
    assert_eq!(found(Filter { before, max: 2, ..all() }).await, "3 2");
    assert_eq!(found(Filter { tenant: Some(tenant()), ..all() }).await, "5 4 2 1");
    let states = vec![State::Queued, State::Failed];
    assert_eq!(found(Filter { states, ..all() }).await, "4 3 2");
    assert_eq!(found(Filter { states: vec![State::Running], ..all() }).await, "5");
    assert_eq!(found(Filter { kind: Some(Name::new("other")), ..all() }).await, "4");
    assert_eq!(found(Filter { labels: labels[..1].to_vec(), ..all() }).await, "5 2");
    assert_eq!(found(Filter { labels: labels.to_vec(), ..all() }).await, "2");
    assert_eq!(found(Filter { group, ..all() }).await, "4 3");
    let parent = |number| Some(JobId::number(number));
    assert_eq!(found(Filter { parent: parent(1), ..all() }).await, "5");
    assert_eq!(found(Filter { parent: parent(2), ..all() }).await, "");
    assert_eq!(found(Filter { worker: Some(worker("w")), ..all() }).await, "4 1");
    assert_eq!(found(Filter { worker: Some(worker("v")), ..all() }).await, "5");
    assert_eq!(found(Filter { cause: Some(Cause::Permanent), ..all() }).await, "4");
    assert_eq!(found(Filter { cause: Some(Cause::Poison), ..all() }).await, "");
    let newest = site.store.jobs(Filter { max: 1, ..all() }).await.expect("it answers");
    assert_eq!(newest, [running]);
}

fn piece(record: &Record, offset: u64, text: &str) -> LogChunk {
    LogChunk {
        job: record.id.clone(),
        attempt: record.counts.attempts,
        stream: Stream::Out,
        offset,
        at: Timestamp(0),
        bytes: text.to_owned().into(),
    }
}

fn page(record: &Record) -> LogPage {
    LogPage { job: record.id.clone(), attempt: None, after: None, max: 99 }
}

pub(super) async fn output_is_kept_once_and_up_to_a_limit(site: Site) {
    let running = site.run(&site.plain().await, "w").await;
    let long = "x".repeat(60);
    let chunks = vec![
        piece(&running, 0, "one "),
        piece(&running, 0, "one "),
        LogChunk { stream: Stream::Err, ..piece(&running, 4, "two ") },
        piece(&running, 6, "o three"),
        piece(&running, 40, &long),
        piece(&running, 41, &long),
        piece(&running, u64::MAX, "x"),
        LogChunk { attempt: 2, ..piece(&running, 0, "later") },
    ];
    let kept = site.store.log(chunks).await.expect("the store answers");
    assert_eq!(kept, [true, true, true, true, true, false, false, false]);
    let logs = site.store.logs(page(&running)).await.expect("the store answers");
    let texts: Vec<(u64, &[u8])> = logs.iter().map(|one| (one.offset, &one.bytes[..])).collect();
    let expected: [(u64, &[u8]); 4] =
        [(0, b"one "), (4, b"two "), (8, b"three"), (40, long.as_bytes())];
    assert_eq!(texts, expected);
    assert_eq!((logs[1].stream, logs[1].at), (Stream::Err, site.now()));
    assert_eq!(site.get(&running).await, running);
    // An attempt that ended writes no more output, and its earlier output stays.
    site.end(&running, Ending::Transient).await;
    let late = site.store.log(vec![piece(&running, 13, "late")]).await.expect("it answers");
    assert_eq!(late, [false]);
    assert_eq!(site.store.logs(page(&running)).await.expect("it answers"), logs);
}

pub(super) async fn output_is_read_a_page_at_a_time(site: Site) {
    let record = site.plain().await;
    for _ in 0..2 {
        let running = site.run(&record, "w").await;
        let chunks = [0, 2, 4].map(|offset| piece(&running, offset, "ab")).to_vec();
        site.store.log(chunks).await.expect("the store answers");
        site.end(&running, Ending::Lost).await;
    }
    let found = |attempt, after, max| {
        let (store, page) =
            (Arc::clone(&site.store), LogPage { attempt, after, max, ..page(&record) });
        async move {
            let logs = store.logs(page).await.expect("the store answers");
            logs.iter().map(|piece| (piece.attempt, piece.offset)).collect::<Vec<_>>()
        }
    };
    assert_eq!(found(None, None, 4).await, [(1, 0), (1, 2), (1, 4), (2, 0)]);
    assert_eq!(found(None, Some((1, 4)), 9).await, [(2, 0), (2, 2), (2, 4)]);
    assert_eq!(found(Some(2), None, 1).await, [(2, 0)]);
    assert_eq!(found(Some(1), Some((1, 0)), 9).await, [(1, 2), (1, 4)]);
    assert_eq!(found(Some(3), None, 9).await, []);
}

pub(super) async fn settings_are_set_and_removed(site: Site) {
    let setting = |kind, name: &str, document: Option<&str>| Setting {
        kind,
        name: name.to_owned(),
        document: document.map(str::to_owned),
    };
    let all = SettingKind::ALL.map(|kind| setting(kind, "b", Some("{}"))).to_vec();
    site.store.set(all.clone()).await.expect("the store answers");
    assert_eq!(site.store.settings().await.expect("the store answers"), all);
    let changes = vec![
        setting(SettingKind::Policy, "b", Some("[]")),
        setting(SettingKind::Policy, "a", Some("1")),
        setting(SettingKind::Worker, "b", None),
        setting(SettingKind::Worker, "unknown", None),
    ];
    site.store.set(changes.clone()).await.expect("the store answers");
    let mut expected = vec![changes[1].clone(), changes[0].clone()];
    let others = [SettingKind::Policy, SettingKind::Worker];
    expected.extend(all.into_iter().filter(|setting| !others.contains(&setting.kind)));
    assert_eq!(site.store.settings().await.expect("the store answers"), expected);
}

pub(super) async fn one_of_many_concurrent_replacements_wins(site: Site) {
    let replace = async |was: Option<&str>, document: Option<&str>| {
        let (kind, name) = (SettingKind::Context, String::new());
        let setting = Setting { kind, name, document: document.map(str::to_owned) };
        let replaced = site.store.replace(was.map(str::to_owned), setting).await;
        replaced.expect("the store answers")
    };
    assert!(replace(None, None).await, "nothing is there, as was seen");
    assert!(!replace(Some("1"), Some("2")).await);
    assert!(replace(None, Some("1")).await);
    assert!(!replace(None, Some("2")).await && !replace(None, None).await);
    assert!(!replace(Some("0"), None).await);
    // Many callers at once: each reads the number and adds one, until its replacement succeeds.
    let add = async || loop {
        let settings = site.store.settings().await.expect("the store answers");
        let was = settings[0].document.as_deref().expect("it is there");
        let next = was.parse::<u64>().expect("it is a number") + 1;
        if replace(Some(was), Some(&next.to_string())).await {
            return next;
        }
    };
    let (a, b, c, d) = tokio::join!(add(), add(), add(), add());
    let mut numbers = [a, b, c, d];
    numbers.sort_unstable();
    assert_eq!(numbers, [2, 3, 4, 5], "each is one's own");
    assert!(replace(Some("5"), None).await);
    assert_eq!(site.store.settings().await.expect("the store answers"), []);
}

pub(super) async fn usage_is_summed_to_the_minute(site: Site) {
    let start = site.now();
    for (name, cost) in [("b", 1), ("10", 2), ("9", 3), ("b", 4)] {
        let cost = Fixed::whole(cost);
        let record = site.one(Spec { tenant: TenantId::new(name), cost, ..spec() }).await;
        site.go(&record, Ending::Succeeded).await;
        site.time.pass(Millis(60_000));
    }
    let used = |since| {
        let store = Arc::clone(&site.store);
        async move {
            let usage = store.usage(since).await.expect("the store answers");
            let used = usage.iter().map(|one| format!("{} {}", one.tenant, one.cost));
            used.collect::<Vec<String>>().join(", ")
        }
    };
    assert_eq!(used(start).await, "9 3, 10 2, b 5");
    assert_eq!(used(start + Millis(60_000)).await, "9 3, 10 2, b 4");
    assert_eq!(used(start + Millis(180_000)).await, "b 4");
    assert_eq!(used(site.now()).await, "");
    // The cost of deleted jobs may still count.
    let old = Old { charged_before: start + Millis(120_000), ..Old::from_before(site.now(), 99) };
    assert!(site.store.forget(old).await.expect("it forgets") > 0);
    assert_eq!(used(start).await, "9 3, b 4");
}

pub(super) async fn runs_are_newest_first_and_say_what_happened(site: Site) {
    let record = site.one(Spec { history_key: "key".to_owned(), ..spec() }).await;
    site.one(super::site::after(&[&record])).await;
    site.time.pass(Millis(20));
    let claimed = site.claim(&record, "w").await;
    site.time.pass(Millis(5));
    site.start(&claimed).await;
    site.time.pass(Millis(30));
    let measured =
        Measured { ram_peak_mb: Some(512), cpu_ms: Some(0), disk_bytes: None, out_of_memory: true };
    let fetched = Some((3, 900));
    let end = End { measured, fetched, ..end_of(&claimed, Ending::Transient) };
    accepted(site.try_end(end).await);
    let first = site.now();
    site.time.pass(Millis(1));
    site.go(&record, Ending::Succeeded).await;
    let runs = site.store.runs(first, 9).await.expect("the store answers");
    assert_eq!(
        runs.iter().map(|run| run.ending).collect::<Vec<_>>(),
        [Ending::Succeeded, Ending::Transient]
    );
    let run = &runs[1];
    assert_eq!((&run.tenant, &run.kind, &*run.history_key), (&tenant(), &spec().kind, "key"));
    assert_eq!((run.at, run.wait, run.duration), (first, Millis(20), Millis(35)));
    assert_eq!((run.measured, run.fetched, run.n_dependents), (measured, fetched, 1));
    assert_eq!(site.store.runs(first, 1).await.expect("it answers"), runs[..1]);
    assert_eq!(site.store.runs(site.now(), 9).await.expect("it answers"), runs[..1]);
}

pub(super) async fn old_jobs_are_deleted_in_steps(site: Site) {
    let mut records = Vec::new();
    for _ in 0..4 {
        let running = site.run(&site.plain().await, "w").await;
        site.store.log(vec![piece(&running, 0, "text")]).await.expect("the store answers");
        site.end(&running, Ending::Succeeded).await;
        records.push(running);
        site.time.pass(Millis(10));
    }
    let waiting = site.plain().await;
    let cut = site.now() - Millis(10);
    let mut forgotten = Vec::new();
    for _ in 0..3 {
        forgotten.push(site.store.forget(Old::from_before(cut, 2)).await.expect("it forgets"));
    }
    assert_eq!(forgotten, [2, 1, 0]);
    for (record, is_there) in records.iter().zip([false, false, false, true]) {
        let job = site.store.job(record.id.clone()).await.expect("the store answers");
        let attempts = site.past(record).await;
        let logs = site.store.logs(page(record)).await.expect("the store answers");
        assert_eq!([job.is_some(), !attempts.is_empty(), !logs.is_empty()], [is_there; 3]);
    }
    let runs = site.store.runs(Timestamp(0), 99).await.expect("the store answers");
    assert_eq!(runs.iter().map(|run| run.at).collect::<Vec<_>>(), [cut]);
    assert_eq!(site.get(&waiting).await, waiting);
}

pub(super) async fn histories_are_trimmed(site: Site) {
    let start = site.now();
    for key in ["a", "b"] {
        for _ in 0..7 {
            let record = site.one(Spec { history_key: key.to_owned(), ..spec() }).await;
            site.go(&record, Ending::Succeeded).await;
            site.time.pass(Millis(1));
        }
    }
    site.store.forget(Old::from_before(start, 99)).await.expect("it forgets");
    let runs = site.store.runs(start, 99).await.expect("the store answers");
    let kept: Vec<(&str, Millis)> =
        runs.iter().map(|run| (&*run.history_key, run.at.since(start))).collect();
    let newest = |key, last: i64| (0..5).map(move |n| (key, Millis(last - n)));
    assert_eq!(kept, newest("b", 13).chain(newest("a", 6)).collect::<Vec<_>>());
}

pub(super) async fn attempts_of_several_jobs_come_each_to_its_own(site: Site) {
    let records = site.submit(vec![new(spec()); 3]).await.jobs;
    for ending in [Ending::Lost, Ending::Preempted, Ending::Succeeded] {
        site.go(&site.get(&records[2]).await, ending).await;
    }
    site.go(&records[0], Ending::Permanent).await;
    let ids = [3, 99, 1, 2, 3].map(JobId::number).to_vec();
    let pasts = site.store.attempts(ids).await.expect("the store answers");
    let endings = pasts.iter().map(|past| past.iter().map(|one| one.ending).collect::<Vec<_>>());
    let third = vec![Ending::Lost, Ending::Preempted, Ending::Succeeded];
    let expected = [third.clone(), vec![], vec![Ending::Permanent], vec![], third];
    assert!(endings.eq(expected), "{pasts:?}");
}

pub(super) async fn ids_that_are_no_numbers_name_nothing(site: Site) {
    let record = site.plain().await;
    for id in ["", "01", "-1", "one", "18446744073709551615"].map(JobId::new) {
        assert_eq!(site.store.job(id.clone()).await.expect("it answers"), None);
        let odd = Record { id: id.clone(), ..record.clone() };
        assert_eq!(site.try_claim(&odd, "w").await, crate::Claimed::Lost(None));
        assert_eq!(site.cancel(&odd).await, crate::Cancelled::Unknown);
        assert_eq!(site.store.logs(page(&odd)).await.expect("it answers"), []);
        assert_eq!(site.past(&odd).await, []);
    }
    assert_eq!(site.look().await, [record]);
}
