//! Who is kept off a slot on purpose is kept off it for somebody, and not for too long.

use model::policy::RARE_SPAN;
use model::tenant::{Peak, Trust};
use model::{
    Fixed, Freed, Inputs, Job, JobId, JobType, Millis, Name, Preset, Reason, Recent, Snapshot,
    Timestamp, Worker, WorkerId,
};

use super::stage::{
    assert_only, assert_says, assert_sound, attempt, found, hold, job, place, room_and_jobs,
    worker, world,
};
use crate::worlds::NOW;

const HOUR: Millis = Millis::from_secs(3_600);

fn typed(id: &str, slots: u32, types: &[&str]) -> Worker {
    Worker { types: types.iter().map(|text| Name::new(text)).collect(), ..worker(id, slots) }
}

/// One of sixteen slots can run rare work, which comes often; it is the only one that is free. Job
/// 1 is common, five seconds old, and would run for a minute.
fn rare_work() -> Snapshot {
    let mut before = world(Preset::Balanced);
    before.workers = vec![typed("full", 15, &["common"]), typed("special", 1, &["common", "rare"])];
    before.attempts = vec![attempt(9, "a", "full")];
    before.attempts[0].slots = 15;
    let since = Timestamp(NOW.0 - NOW.0 % RARE_SPAN.0);
    let recent = Some(Recent { since, amount: 10, before: 0 });
    before.types = vec![JobType { recent, ..JobType::new(Name::new("rare")) }];
    before.usual = Some(Millis::from_secs(60));
    let ready = NOW - Millis::from_secs(5);
    before.jobs = vec![Job { kind: Some(Name::new("common")), ready, ..job(1, "a") }];
    // Its lengths were known, so what is said of them counts.
    let (runs, sum) = (Fixed::whole(1_000), 10_000_000);
    before.tenants[0].account.trust = Trust { runs, sum, squares: 104_000_000_000, errors: 0 };
    before
}

#[track_caller]
fn not_guarded(before: &Snapshot, worker: &str) {
    let said = found(before, &[], &[hold(1, Reason::Guarded)]);
    let sentence = format!("job 1 is held as guarded, but nothing keeps it off worker {worker}");
    assert_says(&said, &sentence);
}

#[test]
fn the_last_slot_for_rare_work_may_be_guarded() {
    assert_sound(&found(&rare_work(), &[], &[hold(1, Reason::Guarded)]));
}

#[test]
fn a_slot_is_not_guarded_if_rare_work_does_not_come() {
    let mut before = rare_work();
    before.types[0].recent = Some(Recent::default());
    not_guarded(&before, "special");
    before.types.clear();
    not_guarded(&before, "special");
}

#[test]
fn a_slot_is_not_guarded_for_work_that_is_not_rare() {
    let mut before = rare_work();
    before.workers[0] = typed("full", 15, &["common", "rare"]);
    not_guarded(&before, "special");
}

#[test]
fn a_slot_is_guarded_less_while_another_can_run_rare_work() {
    let mut before = rare_work();
    before.workers.push(typed("also", 1, &["common", "rare"]));
    not_guarded(&before, "special");
    before.jobs[0].estimate = Some(Millis::from_secs(600));
    assert_sound(&found(&before, &[], &[hold(1, Reason::Guarded)]));
}

#[test]
fn a_slot_is_not_guarded_from_a_short_job() {
    let mut before = rare_work();
    before.jobs[0].estimate = Some(Millis::from_secs(31));
    assert_sound(&found(&before, &[], &[hold(1, Reason::Guarded)]));
    before.jobs[0].estimate = Some(Millis::from_secs(29));
    not_guarded(&before, "special");
}

#[test]
fn a_slot_is_not_guarded_if_it_spares_many_a_delay() {
    let mut before = rare_work();
    let more = (2..200).map(|id| Job { kind: Some(Name::new("common")), ..job(id, "a") });
    before.jobs.extend(more);
    let others = (2..200).map(|id| hold(id, Reason::Guarded));
    let holds: Vec<_> = [hold(1, Reason::Guarded)].into_iter().chain(others).collect();
    let sentence = "job 1 is held as guarded, but nothing keeps it off worker special";
    assert_says(&found(&before, &[], &holds), sentence);
}

#[test]
fn a_job_is_not_guarded_while_a_plain_slot_is_free() {
    let mut before = rare_work();
    before.workers.push(typed("plain", 1, &["common"]));
    not_guarded(&before, "plain");
}

#[test]
fn a_job_is_guarded_until_it_is_overdue() {
    let mut before = rare_work();
    before.attempts[0].started = NOW;
    let account = &mut before.tenants[0].account;
    let marks = vec![(NOW - Millis::from_secs(5), 0)];
    (account.served, account.queue) = (59_939, Peak { now: 60_000, before: 0, since: 0, marks });
    assert_sound(&found(&before, &[], &[hold(1, Reason::Guarded)]));
    before.tenants[0].account.served = 59_940;
    not_guarded(&before, "special");
}

#[test]
fn a_guard_is_not_told_as_a_reservation() {
    let said = found(&rare_work(), &[], &[hold(1, Reason::Reserved)]);
    assert_only(&said, "job 1 is held as reserved, but nothing keeps it off worker special");
}

/// One of two slots is free and the other frees in a minute. Job 2 wants both, job 1 wants one.
fn wide_job() -> Snapshot {
    let mut before = world(Preset::Balanced);
    before.workers = vec![worker("w", 2)];
    before.attempts = vec![attempt(9, "a", "w")];
    before.attempts[0].estimate = Some(Millis::from_secs(120));
    before.jobs = vec![job(1, "a"), Job { slots: 2, ..job(2, "a") }];
    before
}

/// What is wrong if job 1 is said to be reserved, and what else waits has no room.
fn reserved(before: &Snapshot) -> Vec<decide::check::Violation> {
    let others = before
        .jobs
        .iter()
        .skip(1)
        .map(|other| model::Hold { job: other.id.clone(), ..hold(0, Reason::WorkersFull) });
    let holds: Vec<_> = [hold(1, Reason::Reserved)].into_iter().chain(others).collect();
    found(before, &[], &holds)
}

const NOT_RESERVED: &str = "job 1 is held as reserved, but nothing keeps it off worker w";

#[test]
fn slots_may_be_reserved_for_a_wide_job() {
    assert_sound(&reserved(&wide_job()));
    let mut before = wide_job();
    before.attempts[0].estimate = None;
    assert_sound(&reserved(&before));
}

#[test]
fn nothing_is_reserved_if_no_wide_job_waits() {
    let mut before = wide_job();
    before.jobs.pop();
    assert_only(&reserved(&before), NOT_RESERVED);
    before = wide_job();
    before.jobs[1].slots = 1;
    assert_says(&reserved(&before), NOT_RESERVED);
}

#[test]
fn nothing_is_reserved_for_a_wide_job_that_cannot_start_anyway() {
    let mut before = wide_job();
    before.jobs[1].tenant = model::TenantId::new("b");
    before.tenants[1].active = false;
    assert_says(&reserved(&before), NOT_RESERVED);
    before = wide_job();
    before.jobs[1].slots = 3;
    assert_says(&reserved(&before), NOT_RESERVED);
}

#[test]
fn slots_are_reserved_beside_an_attempt_for_so_long_only() {
    let started = |before: &mut Snapshot, ago: Millis, estimate: Option<Millis>| {
        before.attempts[0].started = NOW - ago;
        before.attempts[0].estimate = estimate;
    };
    let mut before = wide_job();
    started(&mut before, Millis(HOUR.0 - 1), None);
    assert_sound(&reserved(&before));
    started(&mut before, HOUR, None);
    assert_only(&reserved(&before), NOT_RESERVED);

    before.policy.reserve_wait_max = Millis(HOUR.0 + 1);
    assert_sound(&reserved(&before));
    // One that outran its prediction is expected to take twice as long, whatever is set.
    started(&mut before, Millis(60_001), Some(Millis(60_000)));
    before.jobs[0].estimate = Some(Millis(60_000));
    assert_sound(&reserved(&before));
    before.jobs[0].estimate = Some(Millis(59_999));
    assert_only(&reserved(&before), NOT_RESERVED);
}

#[test]
fn a_placed_job_with_a_limit_is_waited_for() {
    let mut before = wide_job();
    before.policy.reserve_wait_max = Millis::ZERO;
    before.attempts.clear();
    before.jobs.push(job(3, "a"));
    let holds = [hold(1, Reason::Reserved), hold(2, Reason::WorkersFull)];
    let said = found(&before, &[place(3, "w")], &holds);
    assert_only(&said, NOT_RESERVED);
    before.jobs[2].limit = Some(Millis(1));
    assert_sound(&found(&before, &[place(3, "w")], &holds));
}

#[test]
fn a_job_that_is_done_in_time_is_not_kept_from_reserved_slots() {
    let mut before = wide_job();
    before.jobs[0].estimate = Some(Millis(60_001));
    assert_sound(&reserved(&before));
    before.jobs[0].estimate = Some(Millis(60_000));
    assert_only(&reserved(&before), NOT_RESERVED);
}

#[test]
fn a_job_is_not_kept_from_what_the_wide_one_leaves() {
    let mut before = wide_job();
    before.workers[0].slots = 3;
    before.attempts[0].slots = 2;
    assert_only(&reserved(&before), NOT_RESERVED);
}

#[test]
fn room_that_victims_make_may_be_reserved_under_every_policy() {
    let mut before = wide_job();
    before.policy = Preset::Aging.policy();
    before.attempts[0].stopping_for = Some(JobId::number(2));
    let holds = [hold(1, Reason::Reserved), hold(2, Reason::Preempting)];
    assert_sound(&found(&before, &[], &holds));
    before.workers[0].slots = 3;
    assert_only(&found(&before, &[], &holds), NOT_RESERVED);
}

/// Job 1 under a preset that adds rules up, on one worker with room.
fn ruled(preset: Preset) -> Snapshot {
    let mut before = room_and_jobs(1, 1);
    before.policy = preset.policy();
    before
}

const NOT_VETOED: &str = "job 1 is held as vetoed, but nothing keeps it off worker w";

#[test]
fn a_job_of_unknown_inputs_may_be_vetoed_for_a_few_rounds() {
    let mut before = ruled(Preset::Simple);
    before.jobs[0].rescore_count = 3;
    assert_sound(&found(&before, &[], &[hold(1, Reason::Vetoed)]));
    before.jobs[0].rescore_count = 4;
    assert_only(&found(&before, &[], &[hold(1, Reason::Vetoed)]), NOT_VETOED);
}

#[test]
fn a_job_of_known_inputs_is_not_vetoed() {
    let mut before = ruled(Preset::Simple);
    let inputs = Inputs { missing_paths: None, missing_bytes: Some(1 << 40) };
    before.jobs[0].inputs = [(WorkerId::new("w"), inputs)].into();
    assert_only(&found(&before, &[], &[hold(1, Reason::Vetoed)]), NOT_VETOED);
}

#[test]
fn a_job_may_be_below_zero_on_a_worker_that_is_overloaded() {
    let mut before = ruled(Preset::ResourceAware);
    before.jobs[0].ready = NOW;
    before.workers[0].metrics.cpu_pct = Some(Fixed::whole(90));
    assert_sound(&found(&before, &[], &[hold(1, Reason::BelowZero)]));
    before.workers[0].metrics.cpu_pct = Some(Fixed::whole(89));
    let said = found(&before, &[], &[hold(1, Reason::BelowZero)]);
    assert_only(&said, "job 1 is held as below-zero, but nothing keeps it off worker w");
}

#[test]
fn a_job_that_has_waited_long_is_not_below_zero() {
    let mut before = ruled(Preset::ResourceAware);
    before.workers[0].metrics.cpu_pct = Some(Fixed::whole(90));
    before.jobs[0].ready = NOW - Millis::from_secs(900);
    assert_sound(&found(&before, &[], &[hold(1, Reason::BelowZero)]));
    before.jobs[0].ready = NOW - Millis::from_secs(1_000);
    let said = found(&before, &[], &[hold(1, Reason::BelowZero)]);
    assert_only(&said, "job 1 is held as below-zero, but nothing keeps it off worker w");
}

#[test]
fn nobody_is_kept_on_purpose_from_a_worker_that_did_not_ask() {
    let mut before = ruled(Preset::Simple);
    before.workers.push(worker("full", 1));
    before.attempts = vec![attempt(9, "a", "full")];
    before.freed = Some(Freed { worker: WorkerId::new("full"), completed: 1 });
    let said = found(&before, &[], &[hold(1, Reason::Vetoed)]);
    assert_only(&said, "job 1 is held as vetoed, but on no worker");
    assert_sound(&found(&before, &[], &[hold(1, Reason::Outranked)]));
}

#[test]
fn a_policy_that_keeps_no_slots_holds_nobody_for_that() {
    let mut before = room_and_jobs(1, 1);
    before.jobs[0].ready = Timestamp(NOW.0);
    for reason in [Reason::Guarded, Reason::Reserved, Reason::Vetoed, Reason::BelowZero] {
        let said = found(&before, &[], &[hold(1, reason)]);
        let name = reason.name();
        assert_says(&said, &format!("job 1 is held as {name}, which this policy does not do"));
    }
}

#[test]
fn what_a_policy_does_on_purpose_comes_in_its_turn() {
    let mut before = rare_work();
    before.tenants[0].jobs_max = Some(0);
    let said = found(&before, &[], &[hold(1, Reason::Guarded)]);
    assert_only(&said, "job 1 is held as guarded, but the first reason is tenant-at-jobs-max");
    before.tenants[0].active = false;
    let said = found(&before, &[], &[hold(1, Reason::Guarded)]);
    assert_only(&said, "job 1 is held as guarded, but the first reason is tenant-paused");

    let mut before = ruled(Preset::Simple);
    before.tenants[0].jobs_max = Some(0);
    let said = found(&before, &[], &[hold(1, Reason::Vetoed)]);
    assert_only(&said, "job 1 is held as vetoed, but the first reason is tenant-at-jobs-max");
}
