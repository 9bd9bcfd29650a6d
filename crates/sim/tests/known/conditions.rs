//! What a replay can be under, small enough to work out by hand.

use model::{Fixed, Millis, Policy, policy};
use sim::preset::{Options, Preset};
use sim::workload::Quota;
use sim::{
    Bounds, Conditions, Estimates, Failures, Loss, Many, Measures, Promise, Replay, Transfer,
    seating,
};

use crate::bench::Bench;
use crate::small;

const OPTIONS: Options = Options {
    estimates: Estimates::Perfect,
    seed: 0,
    window: Millis::from_secs(3_600),
    budget: None,
};

fn balanced() -> Policy {
    policy::Preset::Balanced.policy()
}

fn replay(bench: &Bench, policy: Policy, options: Options, conditions: Conditions) -> Replay {
    let mut preset = Preset::new(&bench.workload, &bench.fleet, policy, options);
    bench.replay_under(&mut preset, &conditions)
}

fn starts(replay: &Replay) -> Vec<i64> {
    replay.starts.iter().map(|start| start.at.0).collect()
}

#[test]
fn a_fast_worker_needs_less_time() {
    let mut bench = small::bench("1 0 10 a 1\n2 10 10 a 1", "1");
    bench.fleet = seating::parse("f", "worker,speed\nx,2.5\n").expect("it is well formed");
    let replay = replay(&bench, balanced(), OPTIONS, Conditions::default());
    let ends: Vec<i64> = replay.starts.iter().map(|start| start.end.0).collect();
    assert_eq!((starts(&replay), ends), (vec![0, 10], vec![4, 14]));
}

#[test]
fn no_policy_beats_the_bounds_of_a_fleet_of_several_speeds() {
    let text: Vec<String> = (0..300_i64)
        .map(|id| format!("{id} {} {} a 1", id * 40, 1_000 + (id * 7_919) % 9_000))
        .collect();
    let mut bench = small::bench(&text.join("\n"), "1");
    let fleet = "worker,slots,speed\nx,4,2.5\ny,8,1\nz,8,0.5\n";
    bench.fleet = seating::parse("f", fleet).expect("it is well formed");
    let bounds = Bounds::new(&bench.workload, &bench.fleet);
    assert!(bounds.mean_wait_ms > 0.0 && bounds.makespan_ms > 0.0);
    for name in ["fifo", "sjf", "sfq-sjf"] {
        let measures = bench.measures(name);
        let ms = |length: Millis| Fixed::thousandths(length.0).to_f64() * 1_000.0;
        assert!(measures.all.mean_ms >= bounds.mean_wait_ms, "{name}");
        assert!(measures.all.slowdown >= bounds.slowdown, "{name}");
        assert!(ms(measures.all.max) >= bounds.wait_max_ms, "{name}");
        assert!(ms(measures.makespan) >= bounds.makespan_ms, "{name}");
    }
}

#[test]
fn inputs_are_fetched_by_who_lacks_them() {
    let mut bench = small::bench("1 0 10 a 1\n2 0 10 a 1\n3 0 10 a 1", "1");
    bench.workload.labels = vec![model::Name::new("x"), model::Name::new("y")];
    for (job, label) in bench.workload.jobs.iter_mut().zip([0, 0, 1]) {
        job.label = Some(label);
    }
    let transfer = Some(Transfer { megabytes: 1, megabytes_per_s: 100, kept_max: 1 });
    let replay =
        replay(&bench, balanced(), OPTIONS, Conditions { transfer, ..Conditions::default() });
    // The first fetches for 10 ms, the second finds what it needs, the third fetches again.
    assert_eq!(starts(&replay), [0, 20, 30]);
    assert_eq!(replay.starts[2].end.0, 50);
}

#[test]
fn a_job_goes_where_its_inputs_are() {
    let mut bench = small::bench("1 0 10 a 1\n2 0 10 a 1\n3 100 10 a 1", "2");
    bench.workload.labels = vec![model::Name::new("x"), model::Name::new("y")];
    for (job, label) in bench.workload.jobs.iter_mut().zip([0, 1, 1]) {
        job.label = Some(label);
    }
    let transfer = Some(Transfer { megabytes: 1, megabytes_per_s: 100, kept_max: 1 });
    let replay =
        replay(&bench, balanced(), OPTIONS, Conditions { transfer, ..Conditions::default() });
    assert_eq!(replay.starts[2].worker, replay.starts[1].worker);
    assert_eq!(replay.starts[2].end.0, 110);
}

#[test]
fn a_tenant_never_has_more_than_its_quota() {
    let mut bench = small::bench("1 0 10 a 1\n2 0 10 a 1\n3 0 10 a 1", "3");
    bench.workload.tenants[0].quota = Quota { min: 0, max: Some(1) };
    let replay = replay(&bench, balanced(), OPTIONS, Conditions::default());
    assert_eq!(starts(&replay), [0, 10, 20]);
}

#[test]
fn a_budget_that_is_used_up_is_there_again_after_the_window() {
    let mut bench = small::bench("1 0 10000 a 1\n2 0 10000 a 1", "2");
    bench.workload.tenants[0].budget = Some(Fixed::whole(10));
    let own = replay(&bench, balanced(), OPTIONS, Conditions::default());
    // The first ended at 10 s, and is forgiven an hour later, at the next look.
    assert_eq!(starts(&own), [0, 3_610_000]);
    bench.workload.tenants[0].budget = None;
    let all = Options { budget: Some(Fixed::whole(10)), ..OPTIONS };
    assert_eq!(starts(&replay(&bench, balanced(), all, Conditions::default())), starts(&own));
}

/// Tenant `a` has both slots; `b` is due one.
fn preempting(bench: &mut Bench) -> Policy {
    bench.workload.tenants[1].quota = Quota { min: 1, max: None };
    bench.workload.jobs[2].priority = 5;
    let mut policy = policy::Preset::Cohort.policy();
    policy.preemption.enabled = true;
    policy.preemption.delay = Millis::from_secs(20);
    policy
}

#[test]
fn a_tenant_below_its_minimum_gets_a_slot_after_the_delay() {
    let text = "1 0 100000 a 1\n2 0 100000 a 1\n3 1000 50000 b 1\n4 30000 1000 b 1";
    let mut bench = small::bench(text, "2");
    let policy = preempting(&mut bench);
    let replay = replay(&bench, policy, OPTIONS, Conditions::default());
    // At 30 s something happens, and it has waited for more than 20 s.
    assert_eq!(replay.starts[2].at.0, 30_000);
    assert_eq!(replay.lost.len(), 1);
    let lost = replay.lost[0];
    assert_eq!((lost.loss, lost.start.at.0, lost.start.end.0), (Loss::Preempted, 0, 30_000));
    // The victim runs again, whole.
    let again = replay.starts[lost.job];
    assert_eq!(again.end.since(again.at), Millis(100_000));
    let measures = Measures::new(&bench.workload, &bench.fleet, &replay);
    assert_eq!((measures.preempted.n_attempts, measures.failed.n_attempts), (1, 0));
    assert!((measures.preempted.slot_s - 30.0).abs() < 1e-9);
    assert!((measures.preempted.part - 30.0 / 281.0).abs() < 1e-9);
    // `b` was below its minimum from when its first job came until that started.
    assert_eq!(measures.below_min[0].longest, Millis(29_000));
    assert_eq!(measures.below_min[0].total, Millis(29_000));
}

#[test]
fn what_a_worker_ran_when_it_failed_runs_again() {
    let bench = small::bench("1 0 10000 a 1\n2 0 10000 a 1\n3 0 10000 b 1\n4 9000 5000 b 1", "2");
    let failures = Failures { lasts: Millis(20_000), repair: Millis(1_000), seed: 1 };
    let under = Conditions { failures: Some(failures), ..Conditions::default() };
    let one = replay(&bench, balanced(), OPTIONS, under);
    assert!(!one.lost.is_empty(), "workers that last 20 s fail within the run");
    assert!(one.lost.iter().all(|lost| lost.loss == Loss::Failed));
    assert_eq!(one, replay(&bench, balanced(), OPTIONS, under));
    for baseline in ["fifo", "seed3", "seed4", "sfq", "sjf"] {
        let scheduler = sim::Baseline::from_name(baseline).expect("it is known").scheduler(
            &bench.workload,
            &bench.fleet,
            bench.window,
        );
        let mut scheduler = scheduler.expect("it is for such a fleet");
        assert!(!bench.replay_under(&mut *scheduler, &under).lost.is_empty(), "{baseline}");
    }
}

#[test]
fn of_two_schedulers_that_want_one_job_one_looks_again() {
    // Both see two jobs after 5 ms, and each takes the one that is better for its slot. The third
    // is taken by the first whose slot frees; the other hears of it too late, and asks in vain.
    let bench = small::bench("1 0 10 a 1\n2 0 12 a 1\n3 6 10 a 1", "2");
    let mut many = Many::new(&bench.workload, &bench.fleet, &balanced(), OPTIONS, (2, Millis(5)));
    let replay = bench.replay_under(&mut many, &Conditions::default());
    assert_eq!(starts(&replay), [5, 5, 15]);
    assert_ne!(replay.starts[0].worker, replay.starts[1].worker);
    assert_eq!(replay.n_conflicts, 1);
}

#[test]
fn what_one_scheduler_leaves_to_another_that_may_not_take_it_it_takes_itself() {
    // Each scheduler may run one job of `a` at a time. The second job fits both slots of the
    // first, which has run its part: the second has to take it.
    let mut bench = small::bench("1 0 50 a 1\n2 0 50 a 1\n3 0 50 a 1", "2");
    bench.workload.tenants[0].quota = Quota { min: 0, max: Some(2) };
    bench.fleet = sim::Fleet::of_size(2, 2);
    let mut many = Many::new(&bench.workload, &bench.fleet, &balanced(), OPTIONS, (2, Millis(5)));
    let replay = bench.replay_under(&mut many, &Conditions::default());
    let mut workers: Vec<usize> = replay.starts.iter().map(|start| start.worker).collect();
    workers.truncate(2);
    workers.sort_unstable();
    assert_eq!(workers, [0, 1]);
    assert!(starts(&replay)[1] <= 5 + 12, "it is left to the other no longer than news take");
    assert!(starts(&replay)[2] >= 55, "two at a time");
}

/// Slots of the fleet that `a` holds, and those of them that are `b`'s own.
const HELD: (u32, u32) = (512, 32);
/// `b` comes in bursts, so far apart.
const BURSTS_MS: i64 = 7_200_000;

/// For ten hours `a` asks for a little more than the fleet, by jobs of an hour. Once all slots are
/// taken, `b` comes again and again with twice as many jobs as it has slots of its own.
fn held(priority: i32) -> Bench {
    let long = (0..6_000_i64).map(|id| format!("{id} {} 3600000 a 1", id * 6_000));
    let burst = |n: i64| {
        let jobs = 0..2 * i64::from(HELD.1);
        jobs.map(move |id| format!("b{n}-{id} {} 300000 b 1", n * BURSTS_MS + 1_500))
    };
    let text: Vec<String> = long.chain((1..5).flat_map(burst)).collect();
    let mut bench = small::bench(&text.join("\n"), &HELD.0.to_string());
    bench.workload.tenants[1].quota = Quota { min: HELD.1, max: None };
    for job in bench.workload.jobs.iter_mut().filter(|job| job.tenant == 1) {
        job.priority = priority;
    }
    bench
}

fn balanced_that_preempts() -> Policy {
    let mut policy = balanced();
    assert!(!policy.preemption.enabled, "nobody loses work who did not ask for this");
    policy.preemption.enabled = true;
    policy
}

/// Moments at which something happens, in order.
fn moments(bench: &Bench, replay: &Replay) -> Vec<i64> {
    let arrivals = bench.workload.jobs.iter().map(|job| job.arrival.0);
    let mut moments: Vec<i64> =
        arrivals.chain(replay.attempts().map(|(_, start)| start.end.0)).collect();
    moments.sort_unstable();
    moments
}

#[test]
fn a_tenant_reaches_its_minimum_after_the_delay_and_little_is_lost() {
    let bench = held(5);
    let policy = balanced_that_preempts();
    let delay = policy.preemption.delay;
    let replay = replay(&bench, policy, OPTIONS, Conditions::default());
    let measures = Measures::new(&bench.workload, &bench.fleet, &replay);
    let moments = moments(&bench, &replay);
    let own = usize::try_from(HELD.1).expect("it is small");
    for burst in (1..5).map(|n| n * BURSTS_MS + 1_500) {
        let jobs = bench.workload.jobs.iter().zip(&replay.starts);
        let jobs = jobs.filter(|(job, _)| job.tenant == 1 && job.arrival.0 == burst);
        let mut starts: Vec<i64> = jobs.map(|(_, start)| start.at.0).collect();
        starts.sort_unstable();
        let due = burst + delay.0;
        let event = moments.iter().copied().find(|moment| *moment >= due);
        let event = event.expect("something happens later");
        assert!(starts[own - 1] <= event, "{} after {burst}, not {event}", starts[own - 1]);
        // Without preemption it would have had to wait for longer: jobs of `a` end too seldom.
        assert!(starts[own - 1] >= due, "{} is before {due}", starts[own - 1]);
    }
    // Half of what it is owed comes from victims at least; the rest from jobs that end.
    assert!(measures.preempted.n_attempts > 4 * own / 2, "{:?}", measures.preempted);
    assert!(measures.preempted.part <= 0.01, "{:?}", measures.preempted);
    // After the last arrival nobody is below a minimum any more.
    let last = bench.workload.last_arrival().0;
    let pauses = moments.windows(2).filter(|two| two[1] <= last).map(|two| two[1] - two[0]);
    let pause = pauses.max().expect("much happens");
    let [below] = measures.below_min[..] else { panic!("one tenant has a minimum") };
    assert!(below.longest.0 <= delay.0 + pause, "{below:?}, pause {pause}");
}

#[test]
fn nobody_is_a_victim_of_who_is_not_more_important() {
    let bench = held(0);
    let delay = balanced().preemption.delay;
    let replay = replay(&bench, balanced_that_preempts(), OPTIONS, Conditions::default());
    let measures = Measures::new(&bench.workload, &bench.fleet, &replay);
    assert_eq!(measures.preempted.n_attempts, 0);
    let [below] = measures.below_min[..] else { panic!("one tenant has a minimum") };
    assert!(below.longest.0 > 2 * delay.0, "it has to wait for ends: {below:?}");
}

#[test]
fn schedulers_with_fresh_views_are_as_good_as_one() {
    let bench = small::bench("1 0 10 a 1\n2 3 10 b 1\n3 4 10 a 1\n4 5 10 b 1", "2");
    let one = replay(&bench, balanced(), OPTIONS, Conditions::default());
    let mut many =
        Many::new(&bench.workload, &bench.fleet, &balanced(), OPTIONS, (2, Millis::ZERO));
    assert_eq!(starts(&bench.replay_under(&mut many, &Conditions::default())), starts(&one));
}

#[test]
fn waits_beyond_a_bound_are_counted() {
    let bench = small::bench("1 0 10 a 1\n2 0 10 a 1\n3 0 10 a 1", "1");
    let replay = replay(&bench, balanced(), OPTIONS, Conditions::default());
    let broken = |bound| Promise::new(&bench.workload, &replay, Millis(bound)).n_violations;
    assert_eq!([9, 10, 20].map(broken), [2, 1, 0]);
}

#[test]
fn jobs_that_outlast_every_worker_are_given_up() {
    let bench = small::bench("1 0 10000000 a 1", "2");
    let failures = Some(Failures { lasts: Millis(1_000), repair: Millis(10), seed: 1 });
    let mut preset = Preset::new(&bench.workload, &bench.fleet, balanced(), OPTIONS);
    let under = Conditions { failures, ..Conditions::default() };
    let ended = sim::replay(&bench.workload, &bench.fleet, &mut preset, &under, &mut |_| {});
    let error = ended.expect_err("it never ends").to_string();
    assert!(error.contains("do workers last long enough?"), "{error}");
}

#[test]
fn a_wide_job_that_comes_among_others_starts() {
    // Three of four slots are busy at any time, each for two hours; one job wants all four.
    let others = (1..400).map(|id| format!("{id} {} 7200000 a 1", id * 2_400_000));
    let rows: Vec<String> = others.collect();
    let bench = small::bench(&format!("0 20000000 1000 a 4\n{}", rows.join("\n")), "1x4");
    let replay = replay(&bench, balanced(), OPTIONS, Conditions::default());
    let wide = bench.workload.jobs.iter().position(|job| job.slots == 4).expect("it is there");
    let waited = replay.starts[wide].at.since(bench.workload.jobs[wide].arrival);
    assert!(waited < Millis::from_secs(2 * 24 * 3_600), "{waited:?}");
}

#[test]
fn a_broken_promise_is_told() {
    let rows: Vec<String> = (1..400).map(|id| format!("{id} {} 10000 a 1", id * 5)).collect();
    let bench = small::bench(&format!("0 0 10000 a 1\n{}", rows.join("\n")), "1");
    let mut replay = replay(&bench, balanced(), OPTIONS, Conditions::default());
    let bound = Millis::from_secs(4_000);
    let kept = |replay: &Replay| Promise::new(&bench.workload, replay, bound).n_violations;
    assert_eq!(kept(&replay), 0);
    // The first job starts at once; then it is made to seem as if it had waited for half a day.
    let first = &mut replay.starts[0];
    (first.at.0, first.end.0) = (first.at.0 + 50_000_000, first.end.0 + 50_000_000);
    assert_eq!(kept(&replay), 1);
}
