//! A pool may have a policy of its own.

use model::{Name, Preset};

use crate::world::{decided, jobs_placed};

#[test]
fn each_pool_goes_by_its_own_policy_and_the_rest_by_that_of_the_site() {
    let decision = decided(Preset::Balanced, |world| {
        world.snapshot.pools.insert(Name::new("gpu"), Preset::PriorityAge.policy());
        for pool in ["gpu", "cpu"] {
            world.worker(pool).pool(pool);
            // Eight steps count a third of its length; under the other policy they decide.
            world.job(&format!("{pool}-long")).pool(pool).estimate_s(900).priority(8);
            world.job(&format!("{pool}-short")).pool(pool).estimate_s(1);
        }
    });
    assert_eq!(jobs_placed(&decision), ["gpu-long", "cpu-short"]);
}

#[test]
fn a_worker_of_a_pool_with_a_policy_of_its_own_asks_for_jobs_of_the_pool() {
    let decision = decided(Preset::Balanced, |world| {
        world.snapshot.pools.insert(Name::new("ci"), Preset::FairShare.policy());
        world.worker("ci-1").pool("ci");
        world.worker("other");
        world.job("1").pool("ci");
        world.job("2").pool("ci");
        world.job("3");
    });
    assert_eq!(jobs_placed(&decision), ["1", "3"]);
}
