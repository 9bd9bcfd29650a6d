use super::*;

fn at(minute: i64) -> Timestamp {
    Timestamp(minute * MINUTE.0)
}

/// A minute in which each tenant has so many slots and waiting jobs.
fn minute(tenants: &[(&str, u64, u64)], other: Option<u64>) -> Document {
    let entry = |slots: u64, queued: u64| {
        let reasons = BTreeMap::from([("workers-full".to_owned(), queued)]);
        Entry { slots, queued, running: slots, due: Some(1_500), reasons }
    };
    let named =
        tenants.iter().map(|(name, slots, queued)| ((*name).to_owned(), entry(*slots, *queued)));
    let other = other.map(|slots| entry(slots, 0));
    let n_queued = tenants.iter().map(|(_, _, queued)| queued).sum();
    Document {
        reasons: BTreeMap::from([("workers-full".to_owned(), n_queued)]),
        running: tenants.iter().map(|(_, slots, _)| slots).sum(),
        started: 1,
        tenants: List { named: named.collect(), other },
        ..Document::default()
    }
}

fn steps(step: i64, n_steps: usize, by: By) -> Steps {
    Steps::new(at(0), Millis(step * MINUTE.0), n_steps, by)
}

#[test]
fn a_minute_that_no_scheduler_stored_is_unknown() {
    let mut steps = steps(1, 3, By::Tenant);
    steps.add(at(0), vec![minute(&[("a", 2, 3)], None)], None);
    steps.add(at(2), vec![Document::default()], None);
    steps.add(at(3), vec![minute(&[("late", 1, 1)], None)], None);
    let total = steps.total();
    assert_eq!(total.queued, [Some(3_000), None, Some(0)]);
    assert_eq!((total.started, total.oldest_ms), (vec![Some(1), None, Some(0)], vec![None; 3]));
    let (named, other) = steps.series();
    assert_eq!((named.len(), other), (1, None));
    assert_eq!(named[0].slots, [Some(2_000), None, Some(0)]);
    assert_eq!(named[0].due, [Some(1_500), None, None]);
}

#[test]
fn a_step_has_means_of_its_known_minutes_and_sums_of_what_happened() {
    let mut steps = steps(10, 1, By::Reason);
    for (minute_at, n_queued) in [(1, 4), (2, 5), (9, 6)] {
        steps.add(at(minute_at), vec![minute(&[("a", 1, n_queued)], None)], None);
    }
    let total = steps.total();
    assert_eq!((total.queued, total.started), (vec![Some(5_000)], vec![Some(3)]));
    let (named, _) = steps.series();
    assert_eq!((named[0].name.as_str(), &named[0].queued), ("workers-full", &vec![Some(5_000)]));
}

#[test]
fn slots_and_dues_of_a_step_are_means_of_the_same_minutes() {
    let mut steps = steps(10, 1, By::Tenant);
    for (minute_at, due) in [(0, Some(6_000)), (1, None), (2, Some(3_000))] {
        let mut counted = minute(&[("a", 4, 0)], None);
        counted.tenants.named.get_mut("a").expect("it is listed").due = due;
        steps.add(at(minute_at), vec![counted], None);
    }
    let (named, _) = steps.series();
    assert_eq!((&named[0].slots, &named[0].due), (&vec![Some(4_000)], &vec![Some(3_000)]));
    assert_eq!(named[0].competes, [Some(666)]);
}

#[test]
fn a_name_that_a_full_list_leaves_out_is_unknown_and_not_zero() {
    let mut steps = steps(2, 1, By::Tenant);
    steps.add(at(0), vec![minute(&[("a", 4, 0), ("b", 2, 0)], Some(7))], None);
    steps.add(at(1), vec![minute(&[("a", 6, 0)], Some(9))], None);
    let (named, other) = steps.series();
    assert_eq!((&named[0].slots, &named[1].slots), (&vec![Some(5_000)], &vec![Some(2_000)]));
    assert_eq!(other.expect("there are more").slots, [Some(8_000)]);
}

#[test]
fn schedulers_add_up_and_one_without_a_part_counts_no_queue_beside_them() {
    let watcher = || Document { is_watcher: true, ..minute(&[("a", 1, 9)], None) };
    let mut steps = steps(1, 2, By::Tenant);
    let parts = vec![minute(&[("a", 2, 3)], None), watcher(), minute(&[("a", 4, 5)], None)];
    steps.add(at(0), parts, None);
    steps.add(at(1), vec![watcher(), watcher()], None);
    let total = steps.total();
    assert_eq!(total.queued, [Some(8_000), Some(9_000)]);
    assert_eq!(total.running, [Some(7_000), Some(2_000)]);
    let (named, _) = steps.series();
    assert_eq!(named[0].queued, [Some(8_000), Some(9_000)]);
}

#[test]
fn one_tenant_has_its_counts_alone() {
    let mut steps = steps(1, 3, By::Tenant);
    steps.add(at(0), vec![minute(&[("a", 2, 3), ("b", 1, 1)], Some(5))], Some("b"));
    steps.add(at(1), vec![minute(&[("a", 2, 3)], Some(5))], Some("b"));
    steps.add(at(2), vec![minute(&[("a", 2, 3)], None)], Some("b"));
    let total = steps.total();
    assert_eq!(total.queued, [Some(1_000), None, Some(0)]);
    let (named, other) = steps.series();
    assert_eq!((named.len(), named[0].name.as_str(), other), (1, "b", None));
    assert_eq!(named[0].slots, [Some(1_000), None, Some(0)]);
}
