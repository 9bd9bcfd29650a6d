//! `maitre simulate`.

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::{maitre, refused, said};

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

/// The starts of all jobs under each baseline, as simulators found them that were written in
/// another language from the rules alone: the first bytes of the SHA-256 of `--starts`.
type Starts = [(&'static str, &'static str)];

fn assert_starts(workload: &[&str], starts: &Starts) {
    let folder = tempfile::tempdir().expect("there is room for a directory");
    let file = folder.path().join("starts.csv");
    let path = file.to_str().expect("its name is text");
    for (policy, known) in starts {
        let more = ["--policy", policy, "--starts", path];
        said(&[&["simulate"], workload, &more].concat(), "");
        let digest = Sha256::digest(std::fs::read(&file).expect("it is written"));
        let digest = u64::from_be_bytes(digest[..8].try_into().expect("it is longer"));
        assert_eq!(format!("{digest:016x}"), *known, "{workload:?} under {policy}");
    }
}

#[test]
fn every_job_of_het90_starts_when_an_independent_simulator_says() {
    let starts = [
        ("fifo", "6aff42d9e831f644"),
        ("prio", "bf1edb5f0b668db1"),
        ("sjf", "c3535225ec41f892"),
        ("sfq", "6880371e9862511f"),
        ("sfq-sjf", "3a2614c986cef2b9"),
        ("seed3", "47ddae1b648341d7"),
        ("seed4", "b5b41b10600614f7"),
    ];
    assert_starts(&[JOBS, "--fleet", SLOTS, "--weights", "1,2,5"], &starts);
}

#[test]
fn every_job_of_hetovl_starts_when_an_independent_simulator_says() {
    let starts = [
        ("fifo", "ebbe6adf570a8681"),
        ("prio", "5949d77f7b1f5293"),
        ("sjf", "aea66119726c31ce"),
        ("sfq", "381e3ea596def1ef"),
        ("sfq-sjf", "58b98b27578c1dd4"),
        ("seed3", "3d2f8485a6aeb6a0"),
        ("seed4", "801e67546c92b7fd"),
    ];
    let jobs = JOBS.replace("het90", "hetovl");
    assert_starts(&[&jobs, "--fleet", SLOTS, "--weights", "1,2,5"], &starts);
}

/// The log of KTH is not ours: it is beside the repository, or it is not.
#[test]
fn every_job_of_kth_starts_when_an_independent_simulator_says() {
    let log = "../shared/traces/kth_sp2_1996.swf.gz";
    if !crate::root().join(log).is_file() {
        println!("not checked: there is no {log} beside the repository");
        return;
    }
    let starts = [
        ("fcfs", "6a44e3f59990729a"),
        ("fifo", "cab163fe5e9e0583"),
        ("prio", "ad765a39e64dd033"),
        ("sjf", "048c1c786398b008"),
        ("seed4", "33b176466803c5a2"),
        ("easy", "dfc9215624b41389"),
        ("easy:perfect", "4ce6075742d1fda1"),
        ("easy-sjbf", "d727f3ad9ff3862d"),
        ("easy-sjbf:perfect", "62161124bc28bbd1"),
    ];
    assert_starts(&[log, "--workload", "kth-m"], &starts);
}

#[test]
fn policies_are_compared_and_the_rest_is_bounds() {
    let more = ["--compare", "sjf,aging", "--policy", "balanced", "--first", "500"];
    let told = said(&arguments(&more), "");
    for word in ["sjf", "aging", "balanced", "no policy can beat", "tenant 2", "mode on-demand"] {
        assert!(told.contains(word), "{told}");
    }
    let told = json(&more);
    for run in told["runs"].as_array().unwrap() {
        for (measured, bound, ratio) in [
            ("wait_mean_s", "mean_wait_s", "mean_wait"),
            ("slowdown", "slowdown", "slowdown"),
            ("flow_max_s", "flow_max_s", "flow_max"),
            ("wait_max_s", "wait_max_s", "wait_max"),
            ("makespan_s", "makespan_s", "makespan"),
        ] {
            let (measured, bound) = (&run[measured], &told["bounds"][bound]);
            let (measured, bound) = (measured.as_f64().unwrap(), bound.as_f64().unwrap());
            assert!(measured >= bound - 1e-6, "{ratio}: {measured} beats {bound}");
            match run["ratios"][ratio].as_f64() {
                Some(told) => assert!((told - measured / bound).abs() < 1e-6, "{ratio}"),
                None => assert!(bound.abs() < 1e-9, "{ratio} of {bound}"),
            }
        }
    }
}

#[test]
fn a_table_never_breaks_a_number() {
    let more = ["--compare", "balanced,cohort", "--first", "300", "--budget", "0=1000"];
    let told = said(&arguments(&more), "");
    assert!(told.contains("× SLOWDOWN"), "how far from the bounds is told: {told}");
    // Where a number is broken, the next line has the rest of it and no policy.
    let rest = told
        .lines()
        .filter(|line| line.starts_with("   "))
        .find(|line| line.trim().chars().any(|one| one.is_ascii_digit()));
    assert_eq!(rest, None, "{told}");
}

#[test]
fn tables_fit_into_eighty_columns() {
    let names = "fifo,balanced:perfect,balanced:history,easy-named-by-a-person={}";
    let json = r#"{"preset":"balanced","guard":false}"#;
    let more = ["--compare", names, "--policy", json, "--first", "300", "--bound", "9"];
    let more = [&more[..], &["--failures", "30m:20s", "--quota", "0=8:40,1=8:"]].concat();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_maitre"));
    let command = command.args(arguments(&more)).current_dir(crate::root()).env("COLUMNS", "80");
    let output = command.output().expect("maitre runs");
    let told = String::from_utf8(output.stdout).expect("it speaks UTF-8");
    let widest = told.lines().map(|line| line.chars().count()).max();
    assert!(widest.is_some_and(|widest| (60..=80).contains(&widest)), "{told}");
    for words in ["balanced:perfect ", "MAKESPAN S", "SHARE ERR", "BELOW MIN S", "mode on-demand"] {
        assert!(told.lines().any(|line| line.contains(words)), "no {words}: {told}");
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
fn estimates_are_from_history_unless_the_name_says_otherwise() {
    let run = |more: &[&str]| json(&[more, &["--first", "1500"]].concat())["runs"][0].clone();
    let (plain, history) = (run(&["--policy", "balanced"]), run(&["--policy", "balanced:history"]));
    assert_eq!((&plain["policy"], &plain["estimates"]), (&"balanced".into(), &"history".into()));
    assert_eq!(plain["wait_mean_s"], history["wait_mean_s"]);
    let perfect = run(&["--policy", "balanced:perfect"]);
    assert_eq!(perfect["estimates"], "perfect");
    assert_ne!(plain["wait_mean_s"], perfect["wait_mean_s"]);
    assert_eq!(
        run(&["--policy", "fifo"])["estimates"],
        Value::Null,
        "a baseline has no use for it"
    );
    let told = said(&arguments(&["--compare", "fifo,balanced", "--first", "300"]), "");
    assert!(told.contains(" balanced:history ") && told.contains("Under fifo:"), "{told}");
}

#[test]
fn family_and_seed_say_which_workload_is_replayed() {
    let run = |seed: &str| {
        let arguments = ["simulate", "--family", "pareto", "--seed", seed, "--json"];
        let output = maitre(&[&arguments[..], &["--policy", "fifo"]].concat(), "");
        let noted = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(noted.contains("with weights") && noted.contains("lengths Pareto"), "{noted}");
        let told: Value = serde_json::from_slice(&output.stdout).expect("maitre prints JSON");
        assert_eq!(told["workload"]["n_jobs"], 4_000);
        told["runs"][0]["wait_mean_s"].clone()
    };
    assert_eq!(run("7"), run("7"));
    assert_ne!(run("7"), run("8"));
    let said = refused(&["simulate", "--family", "square"], "");
    assert!(said.contains("no family `square`") && said.contains("backlogged"), "{said}");
}

#[test]
fn judge_of_shares_fails_for_a_policy_that_keeps_none() {
    let arguments = ["simulate", "--judge", "shares", "--runs", "3", "--policy"];
    let output = maitre(&[&arguments[..], &["fifo"]].concat(), "");
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(told.contains("KEPT") && told.contains("fifo, seed 0, "), "{told}");
    let told = said(&[&arguments[..], &["sfq", "--json"]].concat(), "");
    let told: Value = serde_json::from_str(&told).expect("maitre prints JSON");
    let run = &told["runs"][0];
    assert_eq!((&run["n_runs"], &run["n_kept"]), (&3.into(), &3.into()), "{told}");
}

#[test]
fn frontier_has_a_replay_for_each_value_and_the_default() {
    let folder = tempfile::tempdir().expect("there is room for a directory");
    let path = folder.path().to_str().expect("its name is text");
    let more = ["--first", "900", "--frontier", "fair_slack=30s,1h", "--report", path];
    let told = said(&arguments(&more), "");
    for word in ["FAIR_SLACK_MS", "default", "30s", "1h", "Estimates from: history"] {
        assert!(told.contains(word), "no {word}: {told}");
    }
    let picture = std::fs::read_to_string(folder.path().join("frontier.svg")).expect("it is drawn");
    assert!(picture.contains("30s") && picture.contains("fair_slack_ms"));
    let said = refused(&arguments(&["--frontier", "colour=1,2"]), "");
    assert!(said.contains("colour"), "{said}");
    let said = refused(&arguments(&["--frontier", "fair_slack"]), "");
    assert!(said.contains("fair_slack=0s"), "{said}");
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
    let more = ["--policy", "balanced", "--first", "300", "--starts", "-"];
    assert_eq!(said(&arguments(&more), ""), starts);
    let refused = refused(&arguments(&[&more[..], &["--json"]].concat()), "");
    assert!(refused.contains("both to be printed"), "{refused}");
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
fn bad_rows_are_counted_and_named_up_to_a_limit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("jobs.csv");
    let rows = ["1,0,100,a,t,0,0", "2,x,100,a,t,0,0", "3,5,-4,a,t,0,0", "4,6", "5,9,10,b,t,0,1"];
    let text =
        format!("id,arrival_ms,duration_ms,tenant,type,priority,on_demand\n{}\n", rows.join("\n"));
    std::fs::write(&path, text).unwrap();
    let arguments = ["simulate", path.to_str().unwrap(), "--fleet", "2", "--policy", "fifo"];
    let output = maitre(&[&arguments[..], &["--json"]].concat(), "");
    let noted = String::from_utf8_lossy(&output.stderr);
    assert!(noted.starts_with("3 bad rows: line 3: `arrival_ms` is `x`; line 4:"), "{noted}");
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&told["workload"]["n_jobs"], &told["workload"]["n_bad"]), (&2.into(), &3.into()));
    assert_eq!(told["workload"]["bad"][2], "line 5: 2 columns instead of 7");
    assert_eq!(told["workload"]["n_bad_untold"], 0);
    let said = refused(&[&arguments[..], &["--bad-max", "2"]].concat(), "");
    assert!(said.contains("3 bad rows, more than 2") && said.contains("--bad-max N"), "{said}");
}

#[test]
fn a_log_that_is_older_than_utf_8_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.swf");
    let row = "1 0 -1 10 1 -1 -1 1 10 -1 1 1 1 1 1 -1 -1 -1\n";
    let text = [b"; Installation: Link\xf6ping\n".as_slice(), row.as_bytes()].concat();
    std::fs::write(&path, text).unwrap();
    let arguments = ["simulate", path.to_str().unwrap(), "--fleet", "1", "--policy", "fifo"];
    let output = maitre(&[&arguments[..], &["--json"]].concat(), "");
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    let told = &told["workload"];
    assert_eq!((&told["n_jobs"], &told["n_bad"]), (&1.into(), &0.into()));
}

#[test]
fn that_there_are_too_many_tenants_for_a_table_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("jobs.csv");
    let told = |n_tenants: usize| {
        let rows = (0..n_tenants).map(|id| format!("0,1,t{id},x,1,0,batch,-1,,,-1,{id}"));
        let header = "arrival_s,duration_s,tenant,type,slots,priority,mode,estimate_s,requires,\
                      locality,orig_wait_s,id";
        let rows: Vec<String> = std::iter::once(header.to_owned()).chain(rows).collect();
        std::fs::write(&path, rows.join("\n")).unwrap();
        said(&["simulate", path.to_str().unwrap(), "--fleet", "1"], "")
    };
    let few = told(12);
    assert!(few.contains("tenant t11") && !few.contains("not shown"), "{few}");
    let many = told(13);
    assert!(
        many.ends_with("\n13 tenants are not shown one by one; `--json` has them.\n"),
        "{many}"
    );
    assert!(many.contains("type x") && !many.contains("tenant t1"), "{many}");
}

#[test]
fn bad_rows_beyond_the_first_are_counted_for_people_and_machines() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("jobs.csv");
    let header = "arrival_s,duration_s,tenant,type,slots,priority,mode,estimate_s,requires,\
                  locality,orig_wait_s,id";
    let mut rows = vec!["0,1,a,t,1,0,batch,-1,V100|A100,,-1,good".to_owned()];
    rows.extend((0..8).map(|id| format!("0,1,a,t,0,0,batch,-1,,,-1,{id}")));
    std::fs::write(&path, format!("{header}\n{}\n", rows.join("\n"))).unwrap();
    let fleet = folder.path().join("fleet.csv");
    std::fs::write(&fleet, "worker,has\nw1,A100\n").unwrap();
    let arguments = ["simulate", path.to_str().unwrap(), "--fleet", fleet.to_str().unwrap()];
    let output = maitre(&[&arguments[..], &["--json"]].concat(), "");
    let noted = String::from_utf8_lossy(&output.stderr);
    assert!(noted.starts_with("8 bad rows: line 3: `slots` is `0`; line 4:"), "{noted}");
    assert!(noted.ends_with("line 7: `slots` is `0`; and 3 more\n"), "{noted}");
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    let told = &told["workload"];
    assert_eq!((&told["n_jobs"], &told["n_bad"]), (&1.into(), &8.into()));
    assert_eq!(told["bad"].as_array().map(Vec::len), Some(5));
    assert_eq!(told["n_bad_untold"], 3);
}

#[test]
fn wrong_input_is_refused_with_a_way_out() {
    let said = refused(&["simulate", JOBS], "");
    assert!(said.contains("there is no fleet") && said.contains("--fleet 64"), "{said}");
    let said = refused(&arguments(&["--policy", "fastest"]), "");
    assert!(said.contains("fastest"), "{said}");
    assert!(said.contains("baselines are fifo"), "{said}");
    // Before anything is read, let alone replayed.
    let said = refused(&["simulate", "nowhere.csv", "--compare", "fifo,fastest"], "");
    assert!(said.contains("fastest"), "{said}");
    let heavy = r#"{"preset":"aging","rules":{"length":1000}}"#;
    let said = refused(&arguments(&["--policy", heavy, "--json"]), "");
    let problem = "error: `policy.rules.length` is 1000, not a number from 0 to 100\n";
    assert_eq!(said, problem, "field, value and limit");
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
    for (more, word) in [
        (&["--fleet", "0"][..], "`--fleet` is `0`"),
        (&["--workload", "kth-m"], "a way to read a log in SWF"),
        (&["--fleet", "4x0"], "at least 1"),
        (&["--fleet", "2000", "--policy", "match-sjf"], "at most 1024 slots"),
        (&["--fleet", "8", "--policy", "fcfs"], "`fcfs` is for one wide worker"),
        (&["--fleet", "8", "--policy", "easy"], "`easy` needs a requested time of each job"),
    ] {
        let said = refused(&[&["simulate", JOBS], more].concat(), "");
        assert!(said.contains(word), "{said}");
    }
    let said = refused(&["simulate", "--fleet", "64"], "");
    assert!(said.contains("there is no workload"), "{said}");
    let said = refused(&["simulate", "README.md", "--fleet", "64"], "");
    assert!(said.contains("neither `.swf` nor `.csv`"), "{said}");
}
