//! Replays of what happened, by HTTP, with a program that only says that it did.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use model::Millis;
use serde_json::{Value, json};
use server::{Config, Replayer, Secret, WhatIf};
use tempfile::TempDir;

use crate::site::Site;

const PATH: &str = "/v1/what-if";
/// What the program is said to know.
const POLICIES: [&str; 5] = ["balanced", "fifo", "slow", "broken", "a"];
/// Writes down how it was called, and does as the policy says.
const SCRIPT: &str = r#"#!/bin/sh
cd "$(dirname "$0")"
read store
echo "$store $*" >> called
case "$*" in
*--policy=broken*) echo "error: there is no policy" >&2; exit 2;;
*--policy=slow*) echo $$ > pid; exec sleep 600;;
esac
echo '{"runs":[{"policy":"fifo"}],"report":{"title":"T","notes":["n"],"tables":[],
"pictures":[{"name":"waits","title":"Waits","note":"","svg":"<svg/>"}],"page":"<p>"}}'
"#;

struct Stage {
    site: Site,
    dir: TempDir,
}

impl Stage {
    async fn new(timeout: Millis) -> Self {
        let dir = TempDir::new().expect("there is room for a directory");
        let program = dir.path().join("replayer");
        fs::write(&program, SCRIPT).expect("there is room");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).expect("it is ours");
        let replayer = Replayer {
            program,
            store: Secret::new("sqlite://here".to_owned()),
            policies: POLICIES.map(str::to_owned).into(),
        };
        let what_if = WhatIf { replayer: Some(replayer), timeout, ..WhatIf::default() };
        let site = Site::with(Config { what_if, ..Config::default() }).await;
        Self { site, dir }
    }

    async fn ask(&self, body: &Value) -> (u16, Value) {
        self.site.say(("POST", PATH), None, &body.to_string()).await
    }

    async fn look(&self) -> Value {
        self.site.say(("GET", PATH), None, "").await.1
    }

    /// What came of the last one, once it is over.
    async fn ended(&self, number: u64) -> Value {
        let is_over = || async {
            let last = self.look().await["last"].take();
            (last["number"] == number).then_some(last)
        };
        self.site.until("it ends", is_over).await
    }

    fn read(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.dir.path().join(name)).ok().filter(|text| text.ends_with('\n'))
    }

    /// Whether the process that is slow is there.
    async fn slow(&self) -> String {
        self.site.until("it runs", || async { self.read("pid") }).await.trim().to_owned()
    }

    async fn is_gone(&self, pid: &str) {
        let stat = format!("/proc/{pid}/stat");
        let is_gone = || async {
            let stat = fs::read_to_string(&stat).unwrap_or_default();
            (stat.is_empty() || stat.contains(") Z ")).then_some(())
        };
        self.site.until("it is killed", is_gone).await;
    }
}

#[tokio::test]
async fn what_happened_is_replayed_and_its_report_is_there_to_be_fetched() {
    let stage = Stage::new(Millis::from_secs(60)).await;
    let seen = stage.look().await;
    assert_eq!((&seen["running"], &seen["last"]), (&Value::Null, &Value::Null), "{seen}");
    assert_eq!((&seen["hours"], &seen["policies"]), (&json!(24), &json!(POLICIES)), "{seen}");
    let question = json!({ "hours": 6, "policies": ["fifo", "{\"preset\":\"aging\"}"] });
    assert_eq!(stage.ask(&question).await, (200, json!({ "number": 1 })));
    let last = stage.ended(1).await;
    assert_eq!((&last["error"], &last["report"]["title"]), (&Value::Null, &json!("T")), "{last}");
    assert_eq!(
        stage.read("called").unwrap(),
        "sqlite://here simulate --gently --json --pictures --from=- --since=6h --newest=200000 \
         --estimates=history --policy=fifo --policy={\"preset\":\"aging\"}\n",
        "the store's address is not on the command line"
    );
    let (status, head, body) = stage.site.whole(("GET", "/v1/what-if/1/waits.svg"), "").await;
    assert_eq!((status, &*body), (200, "<svg/>"), "{head}");
    for header in ["content-type: image/svg+xml", "content-disposition: attachment", "nosniff"] {
        assert!(head.contains(header), "{head}");
    }
    for (path, known) in
        [("1/report.html", true), ("1/figures.json", true), ("2/waits.svg", false), ("1/x", false)]
    {
        let path = format!("/v1/what-if/{path}");
        let expected = if known { 200 } else { 404 };
        assert_eq!(stage.site.whole(("GET", &path), "").await.0, expected, "{path}");
    }
    assert_eq!(stage.ask(&json!({ "policies": ["broken"] })).await.0, 200);
    assert_eq!(stage.ended(2).await["error"], "there is no policy");
}

#[tokio::test]
async fn one_replay_at_a_time_and_it_can_be_called_off() {
    let stage = Stage::new(Millis::from_secs(60)).await;
    let slow = json!({ "policies": ["slow"] });
    assert_eq!(stage.ask(&slow).await.0, 200);
    let (status, said) = stage.ask(&slow).await;
    assert!(status == 409 && said["error"].as_str().unwrap().contains("one at a time"), "{said}");
    let pid = stage.slow().await;
    assert_eq!(stage.look().await["running"]["hours"], 24);
    let stop = || stage.site.say(("DELETE", PATH), None, "");
    assert_eq!(stop().await, (200, json!({ "was_running": true })));
    assert_eq!(stage.ended(1).await["error"], "it was called off");
    stage.is_gone(&pid).await;
    assert_eq!(stop().await, (200, json!({ "was_running": false })));
}

#[tokio::test]
async fn a_replay_that_takes_too_long_is_given_up() {
    let stage = Stage::new(Millis(1_500)).await;
    assert_eq!(stage.ask(&json!({ "policies": ["slow"] })).await.0, 200);
    let pid = stage.slow().await;
    let error = stage.ended(1).await["error"].take();
    assert!(error.as_str().unwrap().contains("`what_if_timeout` = 1.5 s"), "{error}");
    stage.is_gone(&pid).await;
}

#[tokio::test]
async fn what_is_asked_for_has_limits() {
    let stage = Stage::new(Millis::from_secs(60)).await;
    let long = "x".repeat(5_000);
    for (question, error) in [
        (json!({ "policies": [] }), "`policies` has 0 entries, of 1 to 3"),
        (json!({ "policies": ["a", "b", "c", "d"] }), "`policies` has 4 entries, of 1 to 3"),
        (json!({ "policies": [""] }), "`policies[0]` has 0 bytes, of 1 to 4096"),
        (json!({ "policies": [long] }), "`policies[0]` has 5000 bytes, of 1 to 4096"),
        (json!({ "policies": ["fifo", "b:user"] }), "`policies[1]` is `b:user`, of balanced, fifo"),
        (json!({ "policies": ["a"], "hours": 0 }), "`hours` is 0, of 1 to 168"),
        (json!({ "policies": ["a"], "hours": 169 }), "`hours` is 169, of 1 to 168"),
        (json!({ "policies": ["a"], "fleet": "/etc/passwd" }), "`fleet` is `/etc/passwd`"),
        (json!({ "policies": ["a"], "estimates": "magic" }), "`estimates` is `magic`"),
        (json!({ "policies": ["a"], "color": "red" }), "unknown field `color`"),
    ] {
        let (status, said) = stage.ask(&question).await;
        let told = said["error"].as_str().unwrap();
        assert!(status == 400 && told.contains(error), "{question}: {said}");
    }
    assert_eq!(stage.read("called"), None, "nothing was run");
}

#[tokio::test]
async fn whoever_may_read_looks_and_an_admin_asks() {
    let stage = Stage::new(Millis::from_secs(60)).await;
    let bearing = stage.site.admin_token().await;
    let admin = &bearing.secret;
    let body = r#"{"policies": ["fifo"]}"#;
    let says = |line, token| stage.site.say(line, token, body);
    assert_eq!(says(("POST", PATH), None).await.0, 401);
    assert_eq!(says(("GET", PATH), None).await.0, 401);
    let read = bearing.make("", &["read"]).await.unwrap();
    assert_eq!(says(("GET", PATH), Some(&read)).await.0, 200);
    assert_eq!(says(("POST", PATH), Some(&read)).await.0, 403);
    let own = bearing.make("acme", &["read"]).await.unwrap();
    assert_eq!(says(("GET", PATH), Some(&own)).await.0, 403, "it is about all tenants");
    assert_eq!(says(("POST", PATH), Some(admin)).await.0, 200);
}

#[tokio::test]
async fn where_nothing_is_kept_nothing_is_replayed_and_that_is_said() {
    let site = Site::start().await;
    let (_, seen) = site.say(("GET", PATH), None, "").await;
    assert!(seen["why_not"].as_str().unwrap().contains("kept in memory alone"), "{seen}");
    let (status, said) = site.say(("POST", PATH), None, r#"{"policies": ["fifo"]}"#).await;
    assert_eq!((status, &said["error"]), (409, &seen["why_not"]), "{said}");
}
