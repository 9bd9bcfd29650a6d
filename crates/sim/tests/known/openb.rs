//! GPUs of several models, and jobs that need one of some of them.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use flate2::read::GzDecoder;
use model::{Millis, policy};
use sim::preset::{Options, Preset};
use sim::read::{self, Reading};
use sim::{Conditions, Estimates, Workload, seating};

use crate::bench::{Bench, shared};

fn rows(path: &Path) -> Vec<BTreeMap<String, String>> {
    let mut text = String::new();
    let file = File::open(path).expect("it is there");
    GzDecoder::new(file).read_to_string(&mut text).expect("it is packed");
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    reader.deserialize().map(|row| row.expect("it has a header and rows")).collect()
}

/// What each node has: GPUs of a model, or only processors; and as many slots as GPUs.
fn nodes(path: &Path) -> Vec<(String, String, String)> {
    let node = |row: BTreeMap<String, String>| match row["model"].as_str() {
        "" => (row["sn"].clone(), "1".to_owned(), "cpu".to_owned()),
        model => (row["sn"].clone(), row["gpu"].clone(), format!("gpu+{model}")),
    };
    rows(path).into_iter().map(node).collect()
}

fn workload(path: &Path) -> Workload {
    let options = read::Options { reading: Reading::Plain, weights: Vec::new(), bad_max: 0 };
    read::workload(path, &options).expect("the trace is well formed")
}

#[test]
fn every_job_of_openb_fits_a_node_and_runs_on_one_that_it_named() {
    let jobs = shared("openb_gpu_2023.csv.gz");
    let (Some(jobs), Some(list)) = (jobs, shared("openb_gpu_2023_nodes.csv.gz")) else { return };
    let nodes = nodes(&list);
    let lines = nodes.iter().map(|(id, slots, has)| format!("{id},{slots},{has}\n"));
    let table = format!("node,slots,has\n{}", lines.collect::<String>());
    let mut bench = Bench {
        workload: workload(&jobs),
        fleet: seating::parse("nodes", &table).expect("it is well formed"),
        window: Millis::from_secs(3_600),
    };
    bench.fleet.sift(&mut bench.workload, 0).expect("every job fits a node");
    assert_eq!((bench.workload.jobs.len(), bench.fleet.workers.len()), (8_151, 1_523));

    let options =
        Options { estimates: Estimates::Perfect, seed: 0, window: bench.window, budget: None };
    let balanced = policy::Preset::Balanced.policy();
    let mut balanced = Preset::new(&bench.workload, &bench.fleet, balanced, options);
    let starts = [
        bench.replay_under(&mut balanced, &Conditions::default()).starts,
        bench.starts("fifo", None),
    ];
    let required: BTreeMap<String, String> =
        rows(&jobs).into_iter().map(|row| (row["id"].clone(), row["requires"].clone())).collect();
    let has: BTreeMap<&str, Vec<&str>> =
        nodes.iter().map(|(id, _, has)| (id.as_str(), has.split('+').collect())).collect();
    for (job, start) in starts.iter().flat_map(|starts| bench.workload.jobs.iter().zip(starts)) {
        let node = bench.fleet.workers[start.worker].id.to_string();
        let requires = &required[&job.id.to_string()];
        let is_met = |term: &str| term.split('|').any(|word| has[node.as_str()].contains(&word));
        assert!(requires.split('&').all(is_met), "`{requires}` on {node}");
    }
}
