//! The first minutes: a job goes through, its output is seen, a waiting job says why.

use serde_json::json;

use crate::site::Site;

#[test]
fn a_command_runs_and_its_output_and_exit_code_come_back() {
    let site = Site::dev();
    let output = site.maitre(&["run", "--", "sh", "-c", "echo out; echo err >&2; exit 7"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "out\nout\nout\n");
    assert!(String::from_utf8_lossy(&output.stderr).contains("err\n"));
    assert_eq!(output.status.code(), Some(7));
    assert_eq!(site.said(&["run", "--", "echo", "hello"]), "hello\n");
}

#[test]
fn a_job_that_waits_says_why_and_who_goes_first() {
    let site = Site::dev();
    let first = site.submit(&["--slots", "2", "--", "sleep", "30"]);
    site.wait(&first, "state", "running");
    let second = site.submit(&["--", "true"]);
    let why = site.json(&["why", &second]);
    assert_eq!((&why["reason"], &why["ahead"]), (&json!("workers-full"), &json!(0)));
    let third = site.submit(&["--need", "gpu=a100", "--", "true"]);
    assert_eq!(site.json(&["why", &third])["reason"], "no-worker-ever");
    let told = site.said(&["why", &third]);
    assert!(told.contains("gpu=a100"), "{told}");
    site.said(&["cancel", &first]);
    site.wait(&second, "state", "succeeded");
    assert_eq!(site.job(&first)["state"], "cancelled");
    let told = site.said(&["why", &second]);
    assert!(told.contains("placed on `w1`: score"), "{told}");
}

#[test]
fn what_a_job_writes_is_kept_and_can_be_followed() {
    let site = Site::dev();
    let id = site.submit(&["--", "sh", "-c", "for i in 1 2 3; do echo $i; done"]);
    assert_eq!(site.said(&["logs", "-f", &id]), "1\n2\n3\n");
    assert_eq!(site.said(&["logs", &id]), "1\n2\n3\n");
}

#[test]
fn a_command_knows_its_job_and_leaves_a_result() {
    let site = Site::dev();
    let script = "echo $MAITRE_JOB $MAITRE_ATTEMPT $MAITRE_TENANT $NAME; cat; \
                  echo done > $MAITRE_RESULT";
    let id = site.submit(&[
        "--tenant", "a", "--env", "NAME=x", "--stdin", "given", "--wait", "--", "sh", "-c", script,
    ]);
    assert_eq!(site.said(&["logs", &id]), format!("{id} 1 a x\ngiven"));
    assert_eq!(site.job(&id)["result"], "done\n");
}

#[test]
fn wrong_input_is_refused_with_the_field_and_changes_nothing() {
    let site = Site::dev();
    let cases: [(&[&str], &str); 6] = [
        (&["submit", "--priority", "2000", "--", "true"], "`jobs[0].priority` is 2000"),
        (&["submit", "--slots", "1000000", "--", "true"], "`jobs[0].slots` is 1000000"),
        (&["submit", "--after", "99", "--", "true"], "`jobs[0].after` has 99"),
        (&["submit", "--need", "gpu", "--", "true"], "`--need gpu` is not `KEY=VALUE`"),
        (&["submit"], "there is nothing to run"),
        (&["job", "99"], "there is no job 99"),
    ];
    for (arguments, expected) in cases {
        let told = site.refused(arguments);
        assert!(told.contains(expected), "{arguments:?}: {told}");
    }
    assert_eq!(site.json(&["jobs"])["jobs"], serde_json::json!([]));
}

#[test]
fn without_a_scheduler_there_is_a_way_out() {
    let mut site = Site::serve();
    site.terminate_scheduler();
    let told = site.refused(&["jobs"]);
    assert!(told.contains("no scheduler answers") && told.contains("hint: start one"), "{told}");
}
