//! Jobs are listed: a page at a time, and only those that are asked for.

use serde_json::Value;

use crate::site::Site;

fn ids(list: &Value) -> Vec<u64> {
    let jobs = list["jobs"].as_array().expect("it is a list");
    jobs.iter().map(|job| job["id"].as_u64().expect("a job has an id")).collect()
}

#[test]
fn a_list_comes_in_pages_that_miss_nothing_and_repeat_nothing() {
    let site = Site::serve();
    site.said(&["submit", "--array", "7", "--tenant", "a", "--", "true"]);
    site.said(&["submit", "--tenant", "b", "--", "true"]);
    site.said(&["submit", "--array", "2", "--tenant", "a", "--", "true"]);
    let (mut seen, mut before) = (Vec::new(), 0);
    loop {
        let page =
            site.json(&["jobs", "--tenant", "a", "-n", "4", "--before", &before.to_string()]);
        assert!(ids(&page).len() <= 4);
        seen.extend(ids(&page));
        // A job that comes in between is newer than every page to come.
        site.said(&["submit", "--tenant", "a", "--", "true"]);
        before = page["next_before"].as_u64().unwrap();
        if before == 0 {
            break;
        }
    }
    assert_eq!(seen, [10, 9, 7, 6, 5, 4, 3, 2, 1]);
    let first = site.maitre(&["jobs", "--tenant", "a", "-n", "4"]);
    let told = String::from_utf8(first.stderr).unwrap();
    assert!(told.contains("more: maitre jobs --tenant a -n 4 --before 10"), "{told}");
}

#[test]
fn a_list_has_only_what_was_asked_for() {
    let site = Site::serve();
    let first = site.submit(&["--label", "team=red", "--label", "env=ci", "--", "true"]);
    let second = site.submit(&["--label", "team=red", "--parent", &first, "--", "true"]);
    let third = site.submit(&["--parent", &first, "--group", "g", "--", "true"]);
    site.said(&["cancel", &second]);
    let found = |filters: &[&str]| {
        let found = ids(&site.json(&[&["jobs"], filters].concat()));
        found.iter().map(u64::to_string).collect::<Vec<String>>()
    };
    assert_eq!(found(&["--label", "team=red"]), [second.clone(), first.clone()]);
    assert_eq!(found(&["--label", "team=red", "--label", "env=ci"]), ["1"]);
    assert_eq!(found(&["--label", "team=blue"]), [""; 0]);
    assert_eq!(found(&["--parent", &first]), [third.clone(), second.clone()]);
    assert_eq!(found(&["--parent", &first, "--state", "cancelled"]), [second]);
    assert_eq!(found(&["--parent", &third]), [""; 0]);
    assert_eq!(found(&["--group", "g"]), [third]);
    let told = site.refused(&["jobs", "--label", "team"]);
    assert!(told.contains("`--label team` is not `KEY=VALUE`"), "{told}");
    let told = site.refused(&["jobs", "--state", "sleeping"]);
    assert!(told.contains("[possible values: blocked, queued"), "{told}");
}

#[test]
fn a_list_may_be_longer_than_a_page() {
    let site = Site::serve();
    site.said(&["submit", "--array", "620", "--", "true"]);
    let listed = |n: &str| {
        let list = site.json(&["jobs", "-n", n]);
        (ids(&list), list["next_before"].as_u64().unwrap())
    };
    let newest_first = |oldest: u64| (oldest..=620).rev().collect::<Vec<u64>>();
    assert_eq!(listed("600"), (newest_first(21), 21));
    assert_eq!(listed("5000"), (newest_first(1), 0));
    assert_eq!(site.json(&["poison", "-n", "600"])["jobs"], serde_json::json!([]));
    assert!(site.json(&["activity", "-n", "600"])["entries"].is_array());
    for command in ["jobs", "poison", "activity"] {
        let told = site.refused(&[command, "-n", "0"]);
        assert!(told.contains("'--max <MAX>'") && told.contains("1.."), "{told}");
    }
}
