//! A pool with a policy of its own decides as a site with that policy does.

use std::collections::BTreeMap;

use model::{Name, Policy, Preset, Snapshot};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use crate::worlds::{any_policy, any_snapshot};

/// The same world with all jobs and workers in one pool, whose policy is that of the site.
fn in_one_pool(snapshot: &Snapshot) -> Snapshot {
    let pool = Name::new("all");
    let mut world = snapshot.clone();
    world.pools.clear();
    world.jobs.iter_mut().for_each(|job| job.pool = Some(pool.clone()));
    world.types.iter_mut().for_each(|kind| kind.pool = None);
    world.workers.iter_mut().for_each(|worker| worker.pool = pool.clone());
    world.evictions.iter_mut().for_each(|eviction| eviction.pool = pool.clone());
    for tenant in &mut world.tenants {
        tenant.quotas.truncate(1);
        tenant.quotas.iter_mut().for_each(|quota| quota.pool = pool.clone());
    }
    world
}

/// The same world where the pool has the policy of the site, and the site has another one.
fn beside(world: &Snapshot, site: &Policy) -> Snapshot {
    let pools = BTreeMap::from([(Name::new("all"), world.policy.clone())]);
    let mut policy = site.clone();
    // Accounts are of the whole site: tenants come back with the longest slack of all parts.
    policy.fairness.slack = policy.fairness.slack.min(world.policy.fairness.slack);
    Snapshot { policy, pools, ..world.clone() }
}

fn the_policy_of_the_site_does_not_matter(
    snapshot: &Snapshot,
    site: &Policy,
) -> Result<(), TestCaseError> {
    let alone = in_one_pool(snapshot);
    prop_assert_eq!(decide::decide(&beside(&alone, site)), decide::decide(&alone));
    Ok(())
}

macro_rules! every_preset {
    ($($test:ident: $preset:expr;)*) => {
        proptest! {
            #![proptest_config(ProptestConfig::with_cases(400))]
            $(
                #[test]
                fn $test(snapshot in any_snapshot($preset), site in any_policy()) {
                    the_policy_of_the_site_does_not_matter(&snapshot, &site)?;
                }
            )*
        }
    };
}

every_preset! {
    a_pool_of_priority_age_decides_as_a_site: Preset::PriorityAge;
    a_pool_of_cohort_decides_as_a_site: Preset::Cohort;
    a_pool_of_simple_decides_as_a_site: Preset::Simple;
    a_pool_of_resource_aware_decides_as_a_site: Preset::ResourceAware;
    a_pool_of_fair_share_decides_as_a_site: Preset::FairShare;
    a_pool_of_aging_decides_as_a_site: Preset::Aging;
    a_pool_of_detected_decides_as_a_site: Preset::Detected;
    a_pool_of_balanced_decides_as_a_site: Preset::Balanced;
}
