//! Stores that are copied and put back by the means of their database.

use std::path::PathBuf;

use serde_json::json;

use crate::shared::{database, serve};
use crate::site::Site;

#[test]
fn a_copy_by_pg_dump_is_whole_and_goes_on_in_an_empty_database() {
    let (first, second) = (database(), database());
    let mut one = serve(&first);
    one.work("w1", &[]);
    let done = one.submit(&["--wait", "--", "echo", "kept"]);
    let running = one.submit(&["--", "sleep", "60"]);
    one.wait(&running, "state", "running");
    let waiting = one.submit(&["--label", "kept=yes", "--", "true"]);
    one.said(&["set", "tenant", "acme", r#"{"jobs_max": 3}"#]);
    // Schedulers work on meanwhile; what comes afterwards is not in the copy.
    let copy = PathBuf::from(one.path("monday.dump"));
    first.dump("maitre", &copy).unwrap();
    let after = one.submit(&["--", "true"]);
    one.kill_scheduler();
    one.kill_worker(0);
    second.restore(&copy).unwrap();
    let mut two = Site::start(&["serve", "--store", second.url()]);
    let checked = two.said(&["store", "check", "--store", second.url()]);
    assert!(checked.contains("; everything agrees"), "{checked}");
    assert_eq!(two.said(&["logs", &done]), "kept\n");
    assert_eq!(two.json(&["settings"])[0]["document"]["jobs_max"], json!(3));
    assert_eq!(two.maitre(&["job", &after]).status.code(), Some(2), "it came after the copy");
    two.said(&["cancel", &running]);
    two.work("w2", &[]);
    two.wait(&waiting, "state", "succeeded");
    two.wait(&running, "state", "cancelled");
    // What applications may do by SQL is restored too.
    second.say("SELECT maitre.submit(tenant => 'a', type => 'exec', payload => '{}')").unwrap();
    second.say("SELECT 1 / count(*) FROM maitre.completions WHERE state = 'succeeded'").unwrap();
}
