//! `maitre simulate`.

use serde_json::Value;

use crate::{refused, said};

const JOBS: &str = "crates/sim/traces/het90_jobs.csv.gz";
const SLOTS: &str = "crates/sim/traces/het_slots.csv";

fn arguments<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let start = ["simulate", JOBS, "--fleet", SLOTS, "--weights", "1,2,5"];
    start.into_iter().chain(more.iter().copied()).collect()
}

fn json(more: &[&str]) -> Value {
    let said = said(&[arguments(more), vec!["--json"]].concat(), "");
    serde_json::from_str(&said).expect("maitre prints JSON")
}

#[test]
fn a_baseline_has_its_known_answer() {
    let told = json(&["--policy", "fifo"]);
    let run = &told["runs"][0];
    assert_eq!(told["workload"]["n_jobs"], 18_709);
    assert_eq!(run["policy"], "fifo");
    assert_eq!(format!("{:.2}", run["wait_mean_s"].as_f64().unwrap()), "58.80");
    assert_eq!(format!("{:.0}", run["wait_p99_s"].as_f64().unwrap()), "319");
}

#[test]
fn policies_are_compared_and_the_rest_is_bounds() {
    let more = ["--compare", "sjf,aging", "--policy", "balanced", "--first", "500"];
    let told = said(&arguments(&more), "");
    for word in ["sjf", "aging", "balanced", "no policy can beat", "tenant 2", "mode on-demand"] {
        assert!(told.contains(word), "{told}");
    }
}

#[test]
fn starts_are_written_by_job_id() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("starts.csv");
    let path = file.to_str().unwrap();
    json(&["--policy", "balanced", "--first", "300", "--starts", path]);
    let starts = std::fs::read_to_string(&file).unwrap();
    let ids: Vec<u64> =
        starts.lines().map(|line| line.split(',').next().unwrap().parse().unwrap()).collect();
    assert_eq!(ids, (0..300).collect::<Vec<u64>>());
    assert!(starts.starts_with("0,118\n"), "{starts}");
}

#[test]
fn wrong_input_is_refused_with_a_way_out() {
    let said = refused(&["simulate", JOBS], "");
    assert!(said.contains("there is no fleet") && said.contains("--fleet 64"), "{said}");
    let said = refused(&arguments(&["--policy", "fastest"]), "");
    assert!(said.contains("fastest"), "{said}");
    let said = refused(&arguments(&["--policy", "easy:perfect"]), "");
    assert!(said.contains("one wide worker"), "{said}");
    let said = refused(&arguments(&["--estimates", "guess"]), "");
    assert!(said.contains("wrong:4"), "{said}");
    let said = refused(&["simulate", "README.md", "--fleet", "64"], "");
    assert!(said.contains("neither `.swf` nor `.csv`"), "{said}");
}
