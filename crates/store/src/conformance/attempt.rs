//! Claims, starts, reports and ends of attempts.

use model::{
    Ask, Cause, Ending, Fixed, Measured, Millis, Name, Progress, Record, Retry, Spec, State,
};

use super::site::{Site, accepted, assert_is, end_of, new, spec, worker};
use crate::{Claim, Claimed, End, Ended, NewJob, Old, Past, Report, Revived, Start};

pub(super) async fn a_claim_needs_the_fence_that_is_there(site: Site) {
    let old = site.plain().await;
    site.store.amend(vec![old.id.clone()], crate::Amend::Priority(3)).await.expect("it changes");
    let now = site.get(&old).await;
    assert!(now.fence > old.fence);
    assert_eq!(site.try_claim(&old, "w").await, Claimed::Lost(Some(Box::new(now.clone()))));
    assert_eq!(site.get(&old).await, now);

    site.time.pass(Millis(5));
    let claim = Claim {
        job: now.id.clone(),
        fence: now.fence,
        worker: worker("w"),
        limits: Vec::new(),
        holds: Some(Ask::Named(Name::new("workspace"))),
        pool: Name::new("p"),
        why: "it is free".to_owned(),
    };
    let claimed = site.store.claim(vec![claim]).await.expect("the store answers").remove(0);
    let Claimed::Won(won) = claimed else { panic!("the claim was lost") };
    assert_is(&won, State::Claimed, None);
    assert_eq!((won.counts.attempts, won.fence), (1, now.fence + 1));
    let current = won.current.clone().expect("a worker has it");
    assert_eq!(site.get(&won).await.current.as_ref(), Some(&current));
    assert_eq!((current.worker, current.claimed), (worker("w"), site.now()));
    assert_eq!(current.pool, Name::new("p"));
    assert_eq!(current.holds, Some(Ask::Named(Name::new("workspace"))));
    assert_eq!((current.started, current.progress), (None, None));
    assert_eq!(site.get(&old).await, *won);
}

pub(super) async fn only_one_claim_of_a_job_is_won(site: Site) {
    let record = site.plain().await;
    let won = site.claim(&record, "w").await;
    assert_eq!(site.try_claim(&record, "v").await, Claimed::Lost(Some(Box::new(won.clone()))));
    assert_eq!(site.try_claim(&won, "v").await, Claimed::Lost(Some(Box::new(won.clone()))));
    let ended = site.end(&won, Ending::Succeeded).await.record;
    assert_eq!(site.try_claim(&ended, "v").await, Claimed::Lost(None));
}

pub(super) async fn a_job_on_hold_or_blocked_cannot_be_claimed(site: Site) {
    let held = NewJob { on_hold: true, ..new(spec()) };
    let held = site.submit(vec![held]).await.jobs.remove(0);
    assert!(held.on_hold);
    let blocked = site.one(super::site::after(&[&held])).await;
    for record in [&site.get(&held).await, &blocked] {
        let lost = Claimed::Lost(Some(Box::new(record.clone())));
        assert_eq!(site.try_claim(record, "w").await, lost);
    }
}

pub(super) async fn a_start_said_again_changes_nothing(site: Site) {
    let record = site.plain().await;
    let claimed = site.claim(&record, "w").await;
    site.time.pass(Millis(7));
    assert!(site.start(&claimed).await);
    let running = site.get(&record).await;
    assert_is(&running, State::Running, None);
    assert_eq!(running.fence, claimed.fence + 1);
    assert_eq!(running.current.as_ref().and_then(|current| current.started), Some(site.now()));
    site.time.pass(Millis(7));
    assert!(site.start(&claimed).await);
    assert_eq!(site.get(&record).await, running);
}

pub(super) async fn reports_of_a_stale_attempt_change_nothing(site: Site) {
    let record = site.plain().await;
    let first = site.run(&record, "w").await;
    site.end(&first, Ending::Lost).await;
    let second = site.claim(&record, "v").await;
    let before = site.get(&record).await;
    let progress =
        Progress { fraction: Fixed::ONE, note: "late".to_owned(), stage: "last".to_owned() };
    let job = record.id.clone();
    for (attempt, name) in [(1, "w"), (1, "v"), (2, "w"), (3, "v"), (0, "v")] {
        let worker = worker(name);
        let start = Start { job: job.clone(), attempt, worker: worker.clone() };
        assert_eq!(site.store.start(vec![start]).await.expect("it answers"), [false]);
        let progress = progress.clone();
        let report = Report { job: job.clone(), attempt, worker: worker.clone(), progress };
        assert_eq!(site.store.progress(vec![report]).await.expect("it answers"), [false]);
        let end = End { attempt, worker, ..end_of(&second, Ending::Succeeded) };
        assert_eq!(site.try_end(end).await, Ended::Stale);
        assert_eq!(site.get(&record).await, before);
    }
    let current = before.current.as_ref().expect("a worker has it").worker.clone();
    let report = Report { job, attempt: 2, worker: current, progress: progress.clone() };
    assert_eq!(site.store.progress(vec![report]).await.expect("it answers"), [true]);
    let told = site.get(&record).await;
    assert_eq!(told.current.and_then(|current| current.progress), Some(progress));
    assert_eq!(told.fence, before.fence + 1);
}

pub(super) async fn a_success_is_final_and_counted_once(site: Site) {
    let record = site.plain().await;
    let running = site.run(&record, "w").await;
    site.time.pass(Millis(100));
    let end = End {
        result: Some(b"42".to_vec()),
        exit_code: Some(0),
        error: Some("nothing".to_owned()),
        ..end_of(&running, Ending::Succeeded)
    };
    let ended = accepted(site.try_end(end.clone()).await);
    assert_is(&ended.record, State::Succeeded, None);
    assert_eq!(ended.record.finished, Some(site.now()));
    assert_eq!(ended.record.result, Some(b"42".to_vec()));
    assert_eq!((ended.record.exit_code, ended.record.error.as_ref()), (Some(0), None));
    assert_eq!((ended.charged, ended.record.cost), (Fixed::ONE, Some(Fixed::ONE)));
    assert_eq!((&ended.record.current, &ended.record.last_worker), (&None, &Some(worker("w"))));
    assert_eq!(site.get(&record).await, ended.record);
    assert_eq!(site.look().await, []);
    assert_eq!(site.try_end(end).await, Ended::Repeated);
    let usage = site.store.usage(site.now()).await.expect("it answers").remove(0);
    assert_eq!((usage.cost, usage.completed), (Fixed::ONE, 1));
}

pub(super) async fn succeeded_attempt_is_stored_with_any_data(site: Site) {
    let plain = |record: &Record| end_of(record, Ending::Succeeded);
    let said: [fn(End) -> End; 5] = [
        |end| end,
        |end| End { exit_code: Some(0), has_started: true, ..end },
        |end| End { error: Some("nothing".to_owned()), ..end },
        |end| End { result: Some(b"42".to_vec()), ..end },
        |end| End { measured: Measured { cpu_ms: Some(7), ..Measured::default() }, ..end },
    ];
    for say in said {
        let record = site.plain().await;
        accepted(site.try_end(end_of(&site.run(&record, "v").await, Ending::Transient)).await);
        site.time.pass(Millis(60_000));
        let claimed = site.claim(&record, "w").await;
        let current = claimed.current.clone().expect("it was claimed");
        site.time.pass(Millis(100));
        let end = say(plain(&claimed));
        accepted(site.try_end(end.clone()).await);
        let past = Past {
            number: 2,
            worker: worker("w"),
            claimed: current.claimed,
            started: end.has_started.then(|| site.now()),
            ended: site.now(),
            ending: Ending::Succeeded,
            error: end.error.clone(),
            exit_code: end.exit_code,
            measured: end.measured,
            why: current.why,
        };
        let pasts = site.past(&record).await;
        assert_eq!((pasts.len(), pasts[0].ending), (2, Ending::Transient));
        assert_eq!(pasts[1], past);
        assert_eq!(site.try_end(end.clone()).await, Ended::Repeated);
        assert_eq!(site.try_end(End { worker: worker("x"), ..end }).await, Ended::Stale);
    }
}

pub(super) async fn a_success_that_came_too_late_is_remembered_in_the_next_life(site: Site) {
    let record = site.plain().await;
    let running = site.run(&record, "w").await;
    site.cancel(&record).await;
    let ended = accepted(site.try_end(end_of(&running, Ending::Succeeded)).await);
    assert_is(&ended.record, State::Cancelled, Some(Cause::Asked));
    let pasts = site.past(&record).await;
    assert_eq!((pasts.len(), pasts[0].ending), (1, Ending::Succeeded));
    let revived = site.store.revive(vec![record.id.clone()]).await.expect("it answers");
    assert!(matches!(revived[..], [Revived::Done(_)]));
    assert_eq!(site.past(&record).await, pasts);
    site.go(&record, Ending::Succeeded).await;
    let both = site.past(&record).await;
    assert_eq!((both.len(), both[1].number), (2, 2));
}

pub(super) async fn end_stores_a_start_that_was_not_reported(site: Site) {
    for (was_told, has_started) in [(false, false), (false, true), (true, true), (true, false)] {
        let record = site.plain().await;
        let claimed = site.claim(&record, "w").await;
        let claimed_at = site.now();
        if was_told {
            assert!(site.start(&claimed).await);
        }
        site.time.pass(Millis(50));
        // An attempt that ran is charged, even if its job was cancelled.
        let end = End { has_started, ..end_of(&claimed, Ending::Cancelled) };
        let ended = accepted(site.try_end(end).await);
        let is_charged = was_told || has_started;
        assert_eq!(ended.charged, if is_charged { Fixed::ONE } else { Fixed::ZERO });
        let past = site.past(&record).await.remove(0);
        let started = if was_told { Some(claimed_at) } else { has_started.then(|| site.now()) };
        assert_eq!(past.started, started);
    }
}

pub(super) async fn the_same_end_again_is_repeated_and_another_is_stale(site: Site) {
    let record = site.plain().await;
    let first = site.run(&record, "w").await;
    let end = end_of(&first, Ending::Transient);
    accepted(site.try_end(end.clone()).await);
    let second = site.run(&record, "w").await;
    for _ in 0..2 {
        assert_eq!(site.try_end(end.clone()).await, Ended::Repeated);
        let other = End { ending: Ending::Succeeded, ..end.clone() };
        assert_eq!(site.try_end(other).await, Ended::Stale);
        let other = End { worker: worker("v"), ..end.clone() };
        assert_eq!(site.try_end(other).await, Ended::Stale);
    }
    assert_eq!(site.get(&record).await, second);
}

pub(super) async fn a_failure_waits_longer_each_time_and_keeps_its_age(site: Site) {
    let retry = Retry { attempts_max: 3, backoff: Millis(100), backoff_max: Millis(1_000) };
    let record = site.one(Spec { retry, ..spec() }).await;
    for (failures, wait) in [(1, 100), (2, 200)] {
        let running = site.run(&record, "w").await;
        site.time.pass(Millis(10));
        let end = End {
            error: Some(format!("failure {failures}")),
            exit_code: Some(failures),
            ..end_of(&running, Ending::Transient)
        };
        let ended = accepted(site.try_end(end).await);
        assert_is(&ended.record, State::Queued, None);
        assert_eq!(ended.record.ready, record.ready);
        assert_eq!(ended.record.backoff_until, Some(site.now() + Millis(wait)));
        assert_eq!(ended.record.counts.failures, failures.unsigned_abs());
        assert_eq!(ended.record.error, Some(format!("failure {failures}")));
        assert_eq!(ended.record.fence, running.fence + 1);
        assert_eq!(site.get(&record).await, ended.record);
    }
    let ended = site.go(&record, Ending::Timeout).await;
    assert_is(&ended.record, State::Failed, Some(Cause::Exhausted));
    let pasts = site.past(&record).await;
    let endings: Vec<(u32, Ending)> = pasts.iter().map(|past| (past.number, past.ending)).collect();
    let expected = [(1, Ending::Transient), (2, Ending::Transient), (3, Ending::Timeout)];
    assert_eq!(endings, expected);
    assert_eq!(pasts[0].why, "w is free");
    assert_eq!(pasts[1].error.as_deref(), Some("failure 2"));
}

pub(super) async fn every_ending_is_counted_charged_and_remembered_as_it_should(site: Site) {
    for ending in Ending::ALL {
        for is_started in [false, true] {
            let record = site.one(Spec { cost: Fixed::whole(2), ..spec() }).await;
            let mut record = site.claim(&record, "w").await;
            if is_started {
                site.start(&record).await;
                record = site.get(&record).await;
            }
            let runs_before = site.store.runs(record.created, 99).await.expect("it answers").len();
            let ended = site.end(&record, ending).await;
            let runs = site.store.runs(record.created, 99).await.expect("it answers").len();
            let (state, is_charged, is_run) = match ending {
                Ending::Succeeded => (State::Succeeded, true, true),
                Ending::Transient | Ending::Timeout => (State::Queued, true, true),
                Ending::Permanent => (State::Failed, true, true),
                Ending::Lost | Ending::Refused | Ending::Preempted => (State::Queued, false, false),
                Ending::Cancelled => (State::Cancelled, is_started, false),
                Ending::Stale => (State::Queued, is_started, false),
            };
            assert_eq!(ended.record.state, state, "{ending:?}");
            assert_eq!(ended.run.is_some(), is_run, "{ending:?}");
            let charged = if is_charged { Fixed::whole(2) } else { Fixed::ZERO };
            assert_eq!(ended.charged, charged, "{ending:?} {is_started}");
            assert_eq!(runs - runs_before, usize::from(is_run), "{ending:?}");
            assert_eq!(ended.record.counts, record.counts.after(ending));
            site.cancel(&record).await;
            site.time.pass(Millis(1_000));
            site.store.forget(Old::from_before(site.now(), 99)).await.expect("it forgets");
        }
    }
}

pub(super) async fn job_whose_workers_die_is_parked(site: Site) {
    let record = site.plain().await;
    let back = site.go(&record, Ending::Lost).await.record;
    assert_is(&back, State::Queued, None);
    assert_eq!((back.backoff_until, back.counts.losses), (None, 1));
    let refused = site.go(&record, Ending::Refused).await.record;
    assert_eq!(refused.backoff_until, Some(site.now() + Millis(50)));
    let parked = site.go(&record, Ending::Lost).await.record;
    assert_is(&parked, State::Failed, Some(Cause::Poison));
}

pub(super) async fn costs_of_attempts_add_up(site: Site) {
    let record = site.plain().await;
    assert_eq!(record.cost, None);
    assert_eq!(site.go(&record, Ending::Preempted).await.record.cost, None);
    assert_eq!(site.go(&record, Ending::Transient).await.record.cost, Some(Fixed::ONE));
    let running = site.run(&record, "w").await;
    let measured = Measured { ram_peak_mb: Some(1), ..Measured::default() };
    let cost = Some(Fixed::thousandths(2_500));
    let end = End { measured, cost, ..end_of(&running, Ending::Succeeded) };
    let ended = accepted(site.try_end(end).await);
    assert_eq!((Some(ended.charged), ended.record.cost), (cost, Some(Fixed::thousandths(3_500))));
    let usage = site.store.usage(record.created).await.expect("it answers").remove(0);
    assert_eq!((usage.cost, usage.completed), (Fixed::thousandths(3_500), 1));
    let pasts = site.past(&record).await;
    assert_eq!(pasts[2].measured, measured);
}

pub(super) async fn requests_in_one_list_take_effect_in_order(site: Site) {
    let record = site.plain().await;
    let claim = |name: &str, fence| Claim {
        job: record.id.clone(),
        fence,
        worker: worker(name),
        limits: Vec::new(),
        holds: None,
        pool: Name::new("p"),
        why: String::new(),
    };
    let claims = vec![claim("a", record.fence), claim("b", record.fence), claim("c", 99)];
    let claimed = site.store.claim(claims).await.expect("the store answers");
    let Claimed::Won(won) = &claimed[0] else { panic!("the first claim was lost") };
    assert_eq!(claimed[1..], vec![Claimed::Lost(Some(Box::new(Record::clone(won)))); 2]);
    let end = end_of(won, Ending::Succeeded);
    let ends = vec![end.clone(), end.clone(), End { ending: Ending::Lost, ..end }];
    let ended = site.store.complete(ends).await.expect("the store answers");
    assert!(matches!(ended[0], Ended::Accepted { .. }));
    assert_eq!(ended[1..], [Ended::Repeated, Ended::Stale]);
}
