//! Every placed job may run where it is placed, at this moment.

use model::{Freed, JobType, Millis, Name, WorkerId};

use super::stage::{assert_only, assert_says, assert_sound, found, place, room_and_jobs, worker};
use crate::worlds::NOW;

#[test]
fn a_worker_runs_its_types_only() {
    let mut before = room_and_jobs(1, 1);
    before.workers[0].types = vec![Name::new("doc")];
    assert_sound(&found(&before, &[place(1, "w")], &[]));
    before.jobs[0].kind = Some(Name::new("zip"));
    let said = found(&before, &[place(1, "w")], &[]);
    assert_only(&said, "job 1 is placed on worker w, which does not run type zip");
}

#[test]
fn one_alternative_of_each_need_is_there() {
    let mut before = room_and_jobs(1, 1);
    before.workers[0].has = [(Name::new("os"), vec![Name::new("bsd")])].into();
    let mut alternatives = vec![Name::new("linux")];
    before.jobs[0].needs = [(Name::new("os"), alternatives.clone())].into();
    let said = found(&before, &[place(1, "w")], &[]);
    assert_only(&said, "job 1 is placed on worker w, which has no value for os that the job needs");

    alternatives.push(Name::new("bsd"));
    before.jobs[0].needs = [(Name::new("os"), alternatives)].into();
    assert_sound(&found(&before, &[place(1, "w")], &[]));
}

#[test]
fn a_job_runs_in_its_own_pool_or_its_types() {
    let mut before = room_and_jobs(1, 1);
    before.jobs[0].kind = Some(Name::new("doc"));
    let east = Some(Name::new("east"));
    before.types = vec![JobType { pool: east, ..JobType::new(Name::new("doc")) }];
    let said = found(&before, &[place(1, "w")], &[]);
    assert_only(&said, "job 1 is placed on worker w, which is not in pool east");

    before.jobs[0].pool = Some(Name::new("default"));
    assert_sound(&found(&before, &[place(1, "w")], &[]));
    before.jobs[0].pool = Some(Name::new("west"));
    let said = found(&before, &[place(1, "w")], &[]);
    assert_only(&said, "job 1 is placed on worker w, which is not in pool west");
}

#[test]
fn an_unhealthy_or_draining_worker_gets_nothing() {
    let mut before = room_and_jobs(1, 1);
    before.workers[0].healthy = false;
    let said = found(&before, &[place(1, "w")], &[]);
    assert_only(&said, "job 1 is placed on worker w, which is unhealthy");

    before.workers[0].healthy = true;
    before.workers[0].draining = true;
    let said = found(&before, &[place(1, "w")], &[]);
    assert_only(&said, "job 1 is placed on worker w, which is draining");
}

#[test]
fn a_job_starts_when_it_is_ready_and_no_delay_is_left() {
    let mut before = room_and_jobs(1, 1);
    before.jobs[0].ready = NOW;
    before.jobs[0].not_before = Some(NOW);
    before.jobs[0].backoff_until = Some(NOW);
    assert_sound(&found(&before, &[place(1, "w")], &[]));

    before.jobs[0].backoff_until = Some(NOW + Millis(1));
    let said = found(&before, &[place(1, "w")], &[]);
    assert_only(
        &said,
        "job 1 is placed at 1000000000 ms, but its backoff lasts until 1000000001 ms",
    );
    before.jobs[0].not_before = Some(NOW + Millis(1));
    let said = found(&before, &[place(1, "w")], &[]);
    assert_only(
        &said,
        "job 1 is placed at 1000000000 ms, but it may not start before 1000000001 ms",
    );
    before.jobs[0].ready = NOW + Millis(1);
    let said = found(&before, &[place(1, "w")], &[]);
    assert_only(&said, "job 1 is placed at 1000000000 ms, but it becomes ready at 1000000001 ms");
}

#[test]
fn a_worker_that_asks_does_not_get_jobs_whose_backoff_is_over() {
    let mut before = room_and_jobs(1, 1);
    before.freed = Some(Freed { worker: WorkerId::new("w"), completed: 1 });
    before.jobs[0].backoff_until = Some(NOW - Millis(1));
    let said = found(&before, &[place(1, "w")], &[]);
    assert_only(
        &said,
        "job 1 is placed at 1000000000 ms, but its backoff ended at 999999999 ms and a worker \
         that asks passes over it",
    );

    before.jobs[0].backoff_until = None;
    before.policy.proactive_fetch_literal = true;
    let said = found(&before, &[place(1, "w")], &[]);
    assert_only(
        &said,
        "job 1 is placed at 1000000000 ms, but its backoff ended at 999940000 ms and a worker \
         that asks passes over it",
    );
    before.jobs[0].created = NOW;
    assert_sound(&found(&before, &[place(1, "w")], &[]));
}

#[test]
fn only_the_worker_that_asks_gets_work() {
    let mut before = room_and_jobs(1, 1);
    before.workers.push(worker("v", 1));
    before.freed = Some(Freed { worker: WorkerId::new("v"), completed: 1 });
    let said = found(&before, &[place(1, "w")], &[]);
    assert_only(&said, "job 1 is placed on worker w, but v asked for work");
}

#[test]
fn a_worker_that_asks_gets_no_more_than_it_completed() {
    let mut before = room_and_jobs(2, 2);
    before.freed = Some(Freed { worker: WorkerId::new("w"), completed: 1 });
    let said = found(&before, &[place(1, "w"), place(2, "w")], &[]);
    assert_only(&said, "worker w completed 1 jobs and gets 2");
}

#[test]
fn a_paused_tenant_starts_nothing() {
    let mut before = room_and_jobs(1, 1);
    before.tenants[0].active = false;
    let said = found(&before, &[place(1, "w")], &[]);
    assert_says(&said, "job 1 is placed, but its tenant a is paused");
}
