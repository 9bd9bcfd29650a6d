//! Whoever waits for a job goes on waiting while its scheduler is away, and is told what is so.

#![expect(clippy::unwrap_used, reason = "a test that fails says where")]

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Output};

use crate::doors::n_watching;
use crate::site::Site;

fn begin(site: &Site, arguments: &[&str]) -> Child {
    site.command(arguments).spawn().unwrap()
}

/// How a command ended, and what it said.
fn end(child: Child) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

#[test]
fn who_waits_for_a_job_does_not_keep_its_scheduler_and_goes_on_when_it_is_back() {
    // Whoever had to be waited for would be waited for until this test has long failed.
    let serve = ["serve", "--set", "shutdown_grace=1h"];
    let mut site = Site::start(&serve);
    site.work("w1", &[]);
    site.work("w2", &[]);
    let script = |name: &str| {
        let go = site.path("go");
        format!("echo {name} began; while ! test -e {go}; do sleep 0.02; done; echo {name} ended")
    };
    let run = begin(&site, &["run", "--", "sh", "-c", &script("run")]);
    let submit = begin(&site, &["submit", "--wait", "--", "sh", "-c", &script("submit")]);
    site.until("both run", || {
        let jobs = site.json(&["jobs", "--state", "running"]);
        (jobs["jobs"].as_array().unwrap().len() == 2).then_some(())
    });
    let watch = begin(&site, &["watch", "1", "2"]);
    let logs = begin(&site, &["logs", "-f", "1"]);
    site.until("all are watched", || (n_watching(&site) == 4).then_some(()));
    site.terminate_scheduler();
    site.launch(&serve);
    std::fs::write(site.path("go"), "").unwrap();
    let (code, out, err) = end(run);
    assert_eq!((code, out.as_str()), (Some(0), "run began\nrun ended\n"), "{err}");
    assert!(err.contains("the scheduler is away; trying again"), "{err}");
    let (code, out, err) = end(submit);
    assert_eq!(code, Some(0), "{out} {err}");
    assert!(out.contains("succeeded on w"), "{out}");
    let (code, out, err) = end(watch);
    assert_eq!(code, Some(0), "{out} {err}");
    assert!(out.contains("job 1 succeeded") && out.contains("job 2 succeeded"), "{out}");
    let (code, out, err) = end(logs);
    assert_eq!(code, Some(0), "{err}");
    assert_eq!(out.lines().count(), 2, "{out}");
}

#[test]
fn a_job_is_not_said_to_be_undone_because_nobody_more_may_wait() {
    let mut site = Site::start(&["serve", "--set", "watches_max=1"]);
    site.work("w1", &[]);
    let mut watch = begin(&site, &["watch"]);
    site.until("it watches", || (n_watching(&site) == 1).then_some(()));
    let mut submit = begin(&site, &["submit", "--wait", "--", "true"]);
    let mut said = String::new();
    BufReader::new(submit.stderr.take().unwrap()).read_line(&mut said).unwrap();
    assert!(said.contains("`watches_max` = 1; trying again"), "{said}");
    site.wait("1", "state", "succeeded");
    watch.kill().unwrap();
    watch.wait().unwrap();
    let (code, out, _) = end(submit);
    assert_eq!(code, Some(0), "{out}");
}
