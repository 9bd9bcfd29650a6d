//! Decisions are sound, deterministic, and do not depend on how the world was written down.

use decide::World;
use decide::check::check;
use model::policy::Order;
use model::{Action, Hold, JobId, Policy, Preset, Reason, Snapshot};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use crate::worlds::{any_snapshot, shuffled};

/// Random worlds for each preset.
const N_CASES: u32 = 400;

type Judgement = Result<(), TestCaseError>;

/// The independent checker finds nothing.
fn is_sound(snapshot: &Snapshot) -> Judgement {
    let decision = decide::decide(snapshot);
    let violations: Vec<String> =
        check(snapshot, &decision).iter().map(ToString::to_string).collect();
    prop_assert!(violations.is_empty(), "{violations:#?}\n{decision:#?}");
    Ok(())
}

fn order_of_lists_does_not_matter(snapshot: &Snapshot, seed: u64) -> Judgement {
    prop_assert_eq!(decide::decide(snapshot), decide::decide(&shuffled(snapshot, seed)));
    Ok(())
}

fn twice_is_the_same(snapshot: &Snapshot) -> Judgement {
    prop_assert_eq!(decide::decide(snapshot), decide::decide(snapshot));
    Ok(())
}

/// A world that is written down and read again is the same world and decides the same.
fn survives_paper(snapshot: &Snapshot) -> Judgement {
    let mut written = World::from_snapshot(snapshot).snapshot();
    let again = World::from_snapshot(&written).snapshot();
    prop_assert_eq!(&written, &again);
    written.freed.clone_from(&snapshot.freed);
    prop_assert_eq!(decide::decide(snapshot), decide::decide(&written));
    Ok(())
}

/// Under rules, the bounded search finds what scoring every job finds.
fn search_is_exact(snapshot: &Snapshot) -> Judgement {
    let Some(freed) = &snapshot.freed else { return Ok(()) };
    let mut snapshot = snapshot.clone();
    // What was promised comes before what is best, and so do jobs of the worker's pool.
    snapshot.pools.clear();
    snapshot.jobs.iter_mut().for_each(|job| job.promised = None);
    let mut world = World::from_snapshot(&snapshot);
    // Moves jobs to their lines without placing any.
    world.fetch(&model::Freed { completed: 0, ..freed.clone() }, snapshot.now);
    if snapshot.policy.proactive_fetch_to_capacity {
        return Ok(());
    }
    let expected = world.best_by_scoring_all(&freed.worker);
    let found = world.fetch(&model::Freed { completed: 1, ..freed.clone() }, snapshot.now);
    let found = found.iter().find_map(|action| match action {
        Action::Place(placement) => Some(placement.job.clone()),
        Action::Preempt(_) | Action::Defer(_) => None,
    });
    prop_assert_eq!(found, expected);
    Ok(())
}

/// The policy that decides on a job.
fn policy_of<'a>(snapshot: &'a Snapshot, job: &JobId) -> &'a Policy {
    let job = snapshot.jobs.iter().find(|own| own.id == *job).expect("it waits");
    let kind = snapshot.types.iter().find(|kind| Some(&kind.name) == job.kind.as_ref());
    let pool = job.pool.as_ref().or_else(|| kind?.pool.as_ref());
    pool.and_then(|pool| snapshot.pools.get(pool)).unwrap_or(&snapshot.policy)
}

/// The last job that is placed, said to be held on purpose instead: it had a place at that very
/// moment, so the checker must say that nothing keeps it. Whether a slot was kept for a wide job
/// depends on who came first, so there are no such jobs here.
fn excuses_are_caught(snapshot: &Snapshot) -> Judgement {
    let mut snapshot = snapshot.clone();
    for policy in snapshot.pools.values_mut().chain([&mut snapshot.policy]) {
        policy.reserve = false;
    }
    snapshot.attempts.iter_mut().for_each(|attempt| attempt.stopping_for = None);
    snapshot.jobs.iter_mut().for_each(|job| job.promised = None);
    let snapshot = &snapshot;
    let mut decision = decide::decide(snapshot);
    let is_place = |action: &Action| matches!(action, Action::Place(_));
    let Some(last) = decision.actions.iter().rposition(is_place) else { return Ok(()) };
    let Action::Place(placement) = decision.actions.remove(last) else { return Ok(()) };
    // Rules do not look at guards; where jobs find workers, there are no vetoes.
    let is_ruled = policy_of(snapshot, &placement.job).order == Order::Rules;
    let reason = if is_ruled { Reason::Vetoed } else { Reason::Guarded };
    let job = placement.job;
    decision.holds.push(Hold { job: job.clone(), reason, detail: String::new() });
    let prefix = format!("job {job} is ");
    let mut violations = check(snapshot, &decision).into_iter().map(|it| it.to_string());
    let is_caught = violations.any(|said| said.starts_with(&prefix));
    prop_assert!(is_caught, "{reason:?} is believed of job {job}");
    Ok(())
}

macro_rules! every_preset {
    ($($test:ident: $preset:expr;)*) => {$(
        mod $test {
            use super::*;

            proptest! {
                #![proptest_config(ProptestConfig::with_cases(N_CASES))]

                #[test]
                fn decisions_are_sound(snapshot in any_snapshot($preset)) {
                    is_sound(&snapshot)?;
                }

                #[test]
                fn the_order_of_lists_does_not_matter(
                    snapshot in any_snapshot($preset), seed in any::<u64>()
                ) {
                    order_of_lists_does_not_matter(&snapshot, seed)?;
                    twice_is_the_same(&snapshot)?;
                }

                #[test]
                fn an_excuse_is_caught(snapshot in any_snapshot($preset)) {
                    excuses_are_caught(&snapshot)?;
                }

                #[test]
                fn a_world_survives_being_written_down(snapshot in any_snapshot($preset)) {
                    survives_paper(&snapshot)?;
                }
            }
        }
    )*};
}

every_preset! {
    priority_age: Preset::PriorityAge;
    cohort: Preset::Cohort;
    simple: Preset::Simple;
    resource_aware: Preset::ResourceAware;
    fair_share: Preset::FairShare;
    aging: Preset::Aging;
    detected: Preset::Detected;
    balanced: Preset::Balanced;
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(N_CASES))]

    #[test]
    fn the_bounded_search_finds_what_scoring_every_job_finds(
        snapshot in any_snapshot(Preset::ResourceAware)
    ) {
        search_is_exact(&snapshot)?;
    }
}
