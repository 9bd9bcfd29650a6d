//! Tenants that share slots get their shares, whatever is said of lengths.

mod history;

use decide::World;
use model::{Event, Job, JobId, Millis, Preset, TenantId};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};

use crate::worlds::any_snapshot;
use history::{History, Mutant, Said, Step};

/// Workers are in one of so many pools.
const POOLS: usize = 2;

const SLACK: Millis = Millis::from_secs(60);

fn any_length() -> impl Strategy<Value = Millis> {
    let seconds = prop_oneof![Just(1_i64), Just(10), 1..100_i64, Just(600), Just(3_600)];
    seconds.prop_map(Millis::from_secs)
}

fn any_said() -> impl Strategy<Value = Said> {
    prop_oneof![
        2 => Just(Said::Nothing),
        2 => Just(Said::Truth),
        1 => Just(Said::Millisecond),
        1 => Just(Said::TenDays),
        1 => (1..1_000_000_i64).prop_map(|length| Said::Other(Millis(length))),
    ]
}

fn any_step() -> impl Strategy<Value = Step> {
    let tenant = || 0..4_usize;
    let is_special = || proptest::bool::weighted(0.2);
    let pool = || proptest::option::weighted(0.15, 0..POOLS);
    // A flood now and then.
    let count = || prop_oneof![7 => 1..12_usize, 1 => 50..150_usize];
    prop_oneof![
        8 => (tenant(), count(), any_length(), any_said(), (is_special(), pool())).prop_map(
            |(tenant, count, length, said, (is_special, pool))| {
                Step::Submit { tenant, count, length, said, is_special, pool }
            }
        ),
        1 => (tenant(), 0..POOLS, 0..3_u32, proptest::option::of(0..4_u32))
            .prop_map(|(tenant, pool, min, max)| Step::Quota { tenant, pool, min, max }),
        1 => (tenant(), any_length())
            .prop_map(|(tenant, length)| Step::Interactive { tenant, length }),
        2 => (tenant(), any::<bool>()).prop_map(|(tenant, all)| Step::Cancel { tenant, all }),
        1 => (tenant(), 1..6_i64).prop_map(|(tenant, weight)| Step::Weigh { tenant, weight }),
        1 => (tenant(), proptest::bool::weighted(0.7))
            .prop_map(|(tenant, active)| Step::SetActive { tenant, active }),
        1 => (0..9_usize).prop_map(Step::Fail),
        1 => (0..4_usize, 1..4_u32, is_special(), 0..POOLS).prop_map(
            |(worker, slots, is_special, pool)| Step::Join { worker, slots, is_special, pool }
        ),
        1 => select(vec![0_usize, 1, 2, 3]).prop_map(Step::Leave),
        // A day is time without work: all jobs end before.
        8 => prop_oneof![8 => 1..60_000_i64, 8 => 60_000..4_000_000_i64, 1 => Just(86_400_000_i64)]
            .prop_map(|length| Step::Wait(Millis(length))),
    ]
}

/// Weights, slots of the first worker, and what happens.
fn any_history() -> impl Strategy<Value = (Vec<i64>, u32, Vec<Step>)> {
    let weights = proptest::collection::vec(1..6_i64, 2..=4);
    (weights, 1..5_u32, proptest::collection::vec(any_step(), 5..40))
}

/// Lives through a history; the error says what broke the bound.
fn live(
    (weights, slots, steps): &(Vec<i64>, u32, Vec<Step>),
    mutant: Option<Mutant>,
) -> Result<(), String> {
    let mut history = History::new(weights, SLACK, mutant);
    history.step(Step::Join { worker: 9, slots: *slots, is_special: false, pool: 0 })?;
    steps.iter().try_for_each(|step| history.step(*step))
}

proptest! {
    #![proptest_config(Config { cases: Config::default().cases.max(256), ..Config::default() })]

    /// While tenants `i` and `j` are backlogged for the same slots under the same weights, a job of
    /// `i` is placed only if
    ///
    /// > served(i) / weight(i) − served(j) / weight(j) ≤ `fair_slack` × due slots(j) / weight(j) +
    /// d
    ///
    /// where `served` is slot time since both are, and `d` is what the account of `j` was ahead of
    /// that of `i` then. At any moment the difference is at most that and one longest job of `i`
    /// for each slot, for each unit of its weight.
    ///
    /// Proof. For the same slots, `i` and `j` are due the same for their weights, so the difference
    /// of their accounts moves as the difference of their slot time does, and a job of `i` is
    /// placed only while it is within the slack. Then no more than one job of `i` is on each slot
    /// until the next one is placed.
    #[test]
    fn no_tenant_is_ahead_of_another_by_more_than_the_slack_when_its_job_is_placed(
        history in any_history()
    ) {
        let lived = live(&history, None);
        lived.map_err(TestCaseError::fail)?;
    }
}

/// Whether some history breaks the bound under the mutant.
fn is_caught(mutant: Mutant) -> bool {
    let (failure_persistence, max_shrink_iters) = (None, 0);
    let config = Config { cases: 500, failure_persistence, max_shrink_iters, ..Config::default() };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let lived = runner.run(&any_history(), |history| {
        let lived = live(&history, Some(mutant));
        lived.map_err(TestCaseError::fail)?;
        Ok(())
    });
    lived.is_err()
}

#[test]
fn a_world_that_is_written_down_after_each_decision_keeps_the_bound() {
    assert!(!is_caught(Mutant::Unchanged));
}

#[test]
fn an_account_that_is_not_settled_is_caught() {
    assert!(is_caught(Mutant::Unsettled));
}

#[test]
fn a_returning_tenant_that_keeps_what_it_was_owed_is_caught() {
    assert!(is_caught(Mutant::NoFloor));
}

#[test]
fn an_estimate_that_is_trusted_for_ever_is_caught() {
    assert!(is_caught(Mutant::TrustsForEver));
}

/// How the first tenant submits its long jobs beside one that always has short ones that wait.
#[derive(Clone, Copy, Debug)]
enum Habit {
    /// Another job once none waits.
    OneThatWaits,
    /// As many jobs that wait or run as there are slots.
    OneForEachSlot,
    /// All that wait are cancelled and submitted again each second.
    Cancels,
}

/// What both tenants are served in so many seconds, in slot-seconds.
fn beside(habit: Habit, weight: i64, slots: u32, length_s: i64) -> Result<Vec<i64>, String> {
    let mut history = History::new(&[1, weight], SLACK, None);
    let submit = |tenant, count, seconds| {
        let (length, said) = (Millis::from_secs(seconds), Said::Nothing);
        Step::Submit { tenant, count, length, said, is_special: false, pool: None }
    };
    history.step(Step::Join { worker: 0, slots, is_special: false, pool: 0 })?;
    history.step(submit(1, 5_000, 1))?;
    let n_slots = usize::try_from(slots).expect("few");
    for _ in 0..SPAN_S {
        let (n_waiting, n_running) = history.count(0);
        match habit {
            Habit::OneThatWaits if n_waiting == 0 => history.step(submit(0, 1, length_s))?,
            Habit::OneForEachSlot if n_waiting + n_running < n_slots => {
                history.step(submit(0, n_slots - n_waiting - n_running, length_s))?;
            }
            Habit::OneThatWaits | Habit::OneForEachSlot => {}
            Habit::Cancels => {
                history.step(Step::Cancel { tenant: 0, all: true })?;
                history.step(submit(0, n_slots, length_s))?;
            }
        }
        history.step(Step::Wait(Millis::from_secs(1)))?;
    }
    Ok((0..2).map(|at| history.served(at) / 1_000).collect())
}

/// Enough for many long jobs.
const SPAN_S: i64 = 1_000;

proptest! {
    #![proptest_config(Config::with_cases(16))]

    /// No way to submit jobs gets a tenant more than its share from one that is always backlogged,
    /// but for one longest job on each slot.
    #[test]
    fn no_habit_gets_a_tenant_more_than_its_share(
        habit in select(vec![Habit::OneThatWaits, Habit::OneForEachSlot, Habit::Cancels]),
        weight in 1..4_i64,
        slots in 1..5_u32,
        length_s in 1..60_i64,
    ) {
        let served = beside(habit, weight, slots, length_s).map_err(TestCaseError::fail)?;
        let slots = i64::from(slots);
        let most = SPAN_S * slots / (1 + weight) + length_s * slots + slots;
        prop_assert!(served[0] <= most, "{served:?}, at most {most}");
    }
}

/// What happens to a tenant that waits while another has all slots, goes, comes back after so long
/// and then has short jobs.
fn come_back(weight: i64, slots: u32, away_s: i64) -> Result<(), String> {
    let mut history = History::new(&[1, weight], SLACK, None);
    let submit = |tenant, count, seconds| {
        let (length, said) = (Millis::from_secs(seconds), Said::Nothing);
        Step::Submit { tenant, count, length, said, is_special: false, pool: None }
    };
    history.step(Step::Join { worker: 0, slots, is_special: false, pool: 0 })?;
    history.step(submit(1, 2_000, 600))?;
    history.step(submit(0, 1, 1))?;
    // Another has all slots until now, and the first is owed its share of ten minutes.
    history.step(Step::Wait(Millis::from_secs(599)))?;
    history.step(Step::Cancel { tenant: 0, all: true })?;
    history.step(Step::Wait(Millis::from_secs(away_s)))?;
    history.step(submit(0, 4_000, 1))?;
    let before = [history.served(0), history.served(1)];
    let slots = i64::from(slots);
    // The slack of a share of all slots, and the jobs that run.
    let most = 1_000 * (60 * slots / (1 + weight) + 2 * slots);
    for _ in 0..700 {
        history.step(Step::Wait(Millis::from_secs(1)))?;
        let [own, other] = [0, 1].map(|at| history.served(at) - before[at]);
        let ahead = own - other / weight;
        if ahead > most {
            return Err(format!("{ahead} ahead since it came back, at most {most}"));
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(Config::with_cases(16))]

    /// Time without work is not paid out, nor is what was owed before it, but for the slack.
    #[test]
    fn a_tenant_that_comes_back_gets_its_due_from_then_on(
        weight in 1..4_i64,
        slots in 1..5_u32,
        away_s in 1..1_200_i64,
    ) {
        let lived = come_back(weight, slots, away_s);
        lived.map_err(TestCaseError::fail)?;
    }

    #[test]
    fn the_order_in_which_tenants_come_back_does_not_matter(
        snapshot in any_snapshot(Preset::Balanced),
        who in proptest::collection::vec(0..7_u64, 1..10),
    ) {
        let queued = |(at, tenant): (u64, &u64)| {
            // Those of the snapshot are 3, 10, 17 and 24, if ids are numbers.
            let tenant = TenantId::number(3 + 7 * tenant);
            let job = Job::new(JobId::number(1_000 + at), tenant, snapshot.now);
            Event::Queued(Box::new(job))
        };
        let events: Vec<Event> = (0..).zip(&who).map(queued).collect();
        let lived = |events: &mut dyn Iterator<Item = &Event>| {
            let mut world = World::from_snapshot(&snapshot);
            world.decide(snapshot.now);
            events.for_each(|event| world.apply(event.clone()));
            world.decide(snapshot.now);
            world.snapshot()
        };
        prop_assert_eq!(lived(&mut events.iter()), lived(&mut events.iter().rev()));
    }
}
