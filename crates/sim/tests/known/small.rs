//! Workloads small enough to work out by hand.

use model::job::Needs;
use model::{Fixed, JobId, Millis, TenantId, Timestamp};
use sim::workload::Bad;
use sim::{Bounds, Fleet, Row, Workload};

use crate::bench::Bench;

/// One job a line: id, arrival, duration, tenant and slots, in milliseconds.
pub(crate) fn bench(text: &str, fleet: &str) -> Bench {
    let rows: Vec<Row> = text.lines().map(row).collect();
    Bench {
        workload: Workload::new(&rows, &[1, 3], Bad::default()).expect("the weights are fine"),
        fleet: Fleet::parse_size(fleet).expect("it is a size"),
        window: Millis::from_secs(3_600),
    }
}

fn row(line: &str) -> Row {
    let words: Vec<&str> = line.split_whitespace().collect();
    let number = |at: usize| -> i64 { words[at].parse().expect("it is a number") };
    Row {
        id: JobId::new(words[0]),
        arrival: Timestamp(number(1)),
        duration: Millis(number(2)),
        requested: None,
        tenant: TenantId::new(words[3]),
        kind: None,
        needs: Needs::new(),
        slots: u32::try_from(number(4)).expect("it is small"),
        priority: 0,
        on_demand: false,
        history_key: None,
        label: None,
    }
}

/// Jobs with when they start, by arrival.
fn starts(bench: &Bench, policy: &str) -> String {
    let starts = bench.starts(policy, None);
    let jobs = bench.workload.jobs.iter().zip(starts);
    jobs.map(|(job, start)| format!("{}@{}", job.id, start.at.0)).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_slot_is_free_at_the_moment_its_job_ends() {
    let bench = bench("1 0 10 a 1\n2 10 5 a 1\n3 11 5 a 1", "1");
    assert_eq!(starts(&bench, "fifo"), "1@0 2@10 3@15");
}

#[test]
fn those_who_arrive_together_start_by_id() {
    let bench = bench("10 0 5 a 1\n9 0 5 a 1\n8 0 5 a 1", "1");
    assert_eq!(starts(&bench, "fifo"), "10@10 9@5 8@0");
}

#[test]
fn a_job_that_takes_no_time_gives_its_slot_back_at_once() {
    let bench = bench("1 0 0 a 1\n2 0 0 a 1\n3 0 5 a 1", "1");
    assert_eq!(starts(&bench, "fifo"), "1@0 2@0 3@0");
}

#[test]
fn who_does_not_fit_is_passed_over_by_fifo_and_waited_for_by_fcfs() {
    let bench = bench("1 0 10 a 1\n2 1 10 a 2\n3 2 50 a 1", "1x2");
    assert_eq!(starts(&bench, "fifo"), "1@0 2@52 3@2");
    assert_eq!(starts(&bench, "fcfs"), "1@0 2@10 3@20");
}

#[test]
fn who_would_delay_the_first_in_line_does_not_go_ahead_of_it() {
    let bench = bench("1 0 10 a 2\n2 1 10 a 3\n3 2 9 a 1\n4 2 8 a 1", "1x3");
    assert_eq!(starts(&bench, "easy:perfect"), "1@0 2@10 3@20 4@2");
}

#[test]
fn tenants_get_weights_in_turn() {
    let bench = bench("1 0 1 a 1\n2 0 1 b 1\n3 0 1 c 1", "1");
    let weights = bench.workload.tenants.iter().map(|tenant| tenant.weight);
    assert_eq!(weights.collect::<Vec<_>>(), [1, 3, 1]);
}

#[test]
fn jobs_of_one_id_are_in_the_order_of_the_file() {
    let bench = bench("2 0 5 a 1\n1 0 7 a 1\n1 0 6 a 1", "1");
    assert_eq!(starts(&bench, "fifo"), "2@13 1@0 1@7");
}

#[test]
fn time_is_compressed_by_a_factor_or_to_a_load() {
    let mut bench = bench("1 0 30 a 1\n2 100 30 a 1", "2");
    bench.workload.compress(Fixed::whole(2));
    assert_eq!(bench.workload.last_arrival(), Timestamp(50));
    bench.workload.compress_to(Fixed::thousandths(500), 2);
    assert_eq!(bench.workload.last_arrival(), Timestamp(60));
}

#[test]
fn shares_are_measured_while_all_tenants_wait() {
    // Until 20, both have jobs waiting: `a` of weight 1 has the slot for 10, `b` of 3 for 10.
    let bench = bench("1 0 10 a 1\n2 0 10 b 1\n3 0 10 a 1\n4 0 10 b 1", "1");
    let share = bench.measures("fifo").share;
    let share = share.expect("there is contended time");
    assert_eq!(share.contended, Millis(20));
    assert_eq!((share.got, share.due), (vec![0.5, 0.5], vec![0.25, 0.75]));
    // `a` got twice its due; after 10, `b` was behind by all of its 7.5 slot-milliseconds.
    assert!((share.error - 1.0).abs() < 1e-9 && (share.lag_s - 0.0075).abs() < 1e-9);
    assert!((share.jain - 0.8).abs() < 1e-9, "{}", share.jain);
}

#[test]
fn bounds_are_reached_where_they_can_be() {
    let bench = bench("1 0 10000 a 1\n2 0 10000 a 1", "1");
    let bounds = Bounds::new(&bench.workload, &bench.fleet);
    let all = bench.measures("fifo").all;
    assert!((bounds.mean_wait_ms - 5_000.0).abs() < 1e-6 && (all.mean_ms - 5_000.0).abs() < 1e-6);
    assert!((bounds.slowdown - 1.5).abs() < 1e-9 && (all.slowdown - 1.5).abs() < 1e-9);
    assert!((bounds.wait_max_ms - 10_000.0).abs() < 1e-6);
    assert!((bounds.makespan_ms - 20_000.0).abs() < 1e-6);
}

#[test]
fn jobs_that_fit_no_worker_are_counted_and_too_many_are_refused() {
    let mut few = bench("1 0 1 a 9\n2 0 1 a 1", "2x8");
    few.fleet.sift(&mut few.workload, 1).expect("one may be bad");
    assert_eq!(few.workload.bad.told, ["job `1` fits no worker"]);
    let mut many = bench("1 0 1 a 9\n2 0 1 a 9", "2x8");
    let error = many.fleet.sift(&mut many.workload, 1).expect_err("two are bad");
    assert!(error.to_string().starts_with("the workload has 2 bad rows, more than 1"), "{error}");
    let rows: Vec<String> = (0..9).map(|id| format!("{id} 0 1 a 9")).collect();
    let mut more = bench(&rows.join("\n"), "2x8");
    let error = more.fleet.sift(&mut more.workload, 1).expect_err("all are bad");
    assert!(error.to_string().ends_with("; job `4` fits no worker; and 4 more"), "{error}");
}
