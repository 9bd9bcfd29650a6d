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
fn what_a_preset_believes_is_part_of_its_name() {
    let named = json(&["--compare", "balanced:none,balanced:wrong:4", "--first", "1500"]);
    for (run, source) in named["runs"].as_array().unwrap().iter().zip(["none", "wrong:4"]) {
        let asked = json(&["--policy", "balanced", "--estimates", source, "--first", "1500"]);
        assert_eq!(run["wait_mean_s"], asked["runs"][0]["wait_mean_s"], "{source}");
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
fn a_report_is_one_page_that_needs_no_network_and_its_pictures() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new");
    let more = ["--compare", "fifo,balanced", "--first", "900", "--bound", "60"];
    said(&arguments(&[&more[..], &["--report", path.to_str().unwrap()]].concat()), "");
    let page = std::fs::read_to_string(path.join("report.html")).unwrap();
    for word in ["Waits", "Queue", "Shares under fifo", "Slots under balanced", "violations"] {
        assert!(page.contains(word), "no {word}");
    }
    // Nothing is fetched; the only address is the name of a vocabulary.
    let addresses = page.matches("http").count();
    assert_eq!(addresses, page.matches("xmlns=\"http://www.w3.org/2000/svg\"").count());
    for picture in ["waits", "queue", "shares-1", "shares-2", "slots-1", "slots-2"] {
        let svg = std::fs::read_to_string(path.join(format!("{picture}.svg"))).unwrap();
        assert!(svg.starts_with("<svg") && page.contains(svg.lines().last().unwrap()));
    }
}

#[test]
fn conditions_go_together_and_are_told() {
    let told = json(&[
        "--policy",
        r#"taking={"preset": "cohort", "preemption": {"enabled": true}}"#,
        "--policy",
        "balanced",
        "--first",
        "1500",
        "--quota",
        "1=8:40,2=16:",
        "--budget",
        "all=1000000",
        "--failures",
        "30m:20s",
        "--schedulers",
        "4",
        "--view-age",
        "100ms",
        "--bound",
        "10",
    ]);
    assert_eq!(told["runs"][0]["policy"], "taking");
    for run in told["runs"].as_array().unwrap() {
        assert_eq!(run["n_jobs"], 1_500);
        assert!(run["failed"]["n_attempts"].as_u64().unwrap() > 0);
        assert!(run["n_conflicts"].as_u64().unwrap() > 0);
        assert_eq!(run["bound"]["wait_max_s"], 10.0);
    }
}

#[test]
fn a_workload_is_made_up_from_a_recipe() {
    let arguments = ["simulate", "--generate", "examples/workload.toml", "--json"];
    let arguments = [&arguments[..], &["--fleet", "examples/fleet.toml", "--policy", "sjf"]];
    let one: Value = serde_json::from_str(&said(&arguments.concat(), "")).unwrap();
    let two: Value = serde_json::from_str(&said(&arguments.concat(), "")).unwrap();
    assert_eq!(one["runs"][0]["wait_mean_s"], two["runs"][0]["wait_mean_s"]);
    assert_eq!(one["workload"]["n_jobs"], 20_000);
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
    for (flag, value, hint) in [
        ("--quota", "1=5", "acme=8:32"),
        ("--quota", "9=1:2", "no tenant `9`"),
        ("--budget", "1=x", "slot-seconds"),
        ("--failures", "often", "6h:5m"),
    ] {
        let said = refused(&arguments(&[flag, value]), "");
        assert!(said.contains(hint), "{said}");
    }
    let said = refused(&["simulate", "--fleet", "64"], "");
    assert!(said.contains("there is no workload"), "{said}");
    let said = refused(&["simulate", "README.md", "--fleet", "64"], "");
    assert!(said.contains("neither `.swf` nor `.csv`"), "{said}");
}
