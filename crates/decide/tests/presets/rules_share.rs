//! `org-share`: off unless the policy switches it on, and only while nobody is idle.

use model::policy::Rule;
use model::{Fixed, Preset, Trait};

use crate::world::{World, decided, points};

/// Tenant `a` has 30 s of work in flight and `b` 10 s; job 1 of `a` can take the only free slot.
fn full_fleet(world: &mut World) {
    world.policy().rules.insert(Rule::OrgShare, Fixed::ONE);
    world.worker("w").slots(2);
    world.worker("x");
    world.attempt("8", "w").tenant("a").estimate_s(30);
    world.attempt("9", "x").tenant("b").estimate_s(10);
    world.job("1").tenant("a").age_s(4_000).rescored(4);
}

#[test]
fn org_share_is_off_by_default() {
    let decision = decided(Preset::ResourceAware, |world| {
        full_fleet(world);
        world.policy().rules.remove(&Rule::OrgShare);
    });
    assert_eq!(points(&decision, "1", Rule::OrgShare), "0");
    assert!(!Preset::ResourceAware.policy().rules.contains_key(&Rule::OrgShare));
    assert!(!Preset::Simple.policy().rules.contains_key(&Rule::OrgShare));
}

#[test]
fn org_share_takes_five_hundred_times_the_share_of_work_in_flight() {
    let decision = decided(Preset::ResourceAware, full_fleet);
    assert_eq!(points(&decision, "1", Rule::OrgShare), "-375");
}

#[test]
fn org_share_has_three_decimals() {
    let decision = decided(Preset::ResourceAware, |world| {
        full_fleet(world);
        world.snapshot.attempts[0].estimate = Some(model::Millis::from_secs(20));
    });
    assert_eq!(points(&decision, "1", Rule::OrgShare), "-333.333");
}

#[test]
fn org_share_says_nothing_while_a_worker_is_idle() {
    let decision = decided(Preset::ResourceAware, |world| {
        full_fleet(world);
        world.worker("idle").types(&["other"]);
        world.snapshot.jobs[0].kind = Some(model::Name::new("mine"));
    });
    assert_eq!(points(&decision, "1", Rule::OrgShare), "0");
}

#[test]
fn org_share_says_nothing_of_a_tenant_with_nothing_in_flight() {
    let decision = decided(Preset::ResourceAware, |world| {
        full_fleet(world);
        world.snapshot.jobs[0].tenant = model::TenantId::new("c");
    });
    assert_eq!(points(&decision, "1", Rule::OrgShare), "0");
}

#[test]
fn org_share_takes_the_average_length_where_none_is_predicted() {
    let decision = decided(Preset::ResourceAware, |world| {
        full_fleet(world);
        world.snapshot.attempts[1].estimate = None;
        world.cluster().avg_1h.duration_s = Some(Fixed::whole(90));
    });
    assert_eq!(points(&decision, "1", Rule::OrgShare), "-125");
}

#[test]
fn org_share_counts_prefer_local_at_half() {
    let decision = decided(Preset::ResourceAware, |world| {
        full_fleet(world);
        let attempt = &mut world.snapshot.attempts[0];
        attempt.traits = attempt.traits.with(Trait::PreferLocal);
    });
    assert_eq!(points(&decision, "1", Rule::OrgShare), "-300");
}

#[test]
fn org_share_does_not_count_evaluations() {
    let decision = decided(Preset::ResourceAware, |world| {
        full_fleet(world);
        let attempt = &mut world.snapshot.attempts[1];
        attempt.traits = attempt.traits.with(Trait::Evaluation);
    });
    assert_eq!(points(&decision, "1", Rule::OrgShare), "-500");
}

#[test]
fn org_share_sees_what_was_granted_in_this_round() {
    let decision = decided(Preset::ResourceAware, |world| {
        world.policy().rules.insert(Rule::OrgShare, Fixed::ONE);
        world.worker("w").slots(3);
        world.attempt("9", "w").tenant("b").estimate_s(30);
        world.job("1").tenant("a").age_s(900).estimate_s(90).rescored(4);
        world.job("2").tenant("a").age_s(800).estimate_s(90).rescored(4);
    });
    assert_eq!(points(&decision, "2", Rule::OrgShare), "-375");
}

#[test]
fn a_rule_counts_by_its_weight() {
    let decision = decided(Preset::ResourceAware, |world| {
        full_fleet(world);
        world.policy().rules.insert(Rule::OrgShare, Fixed::thousandths(500));
    });
    assert_eq!(points(&decision, "1", Rule::OrgShare), "-187.5");
}
