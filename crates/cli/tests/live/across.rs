//! What is promised of several schedulers whatever their clocks show and wherever jobs come from.

use serde_json::{Value, json};

use crate::doors::{get, post};
use crate::shared::{database, serve};
use crate::site::Site;

/// A scheduler whose machine's clock is off by so much.
fn skewed(url: &str, skew_ms: i64) -> Site {
    Site::prepared(&["serve", "--store", url], |_, command| {
        command.env("MAITRE_FAULT_CLOCK_SKEW_MS", skew_ms.to_string());
    })
}

#[test]
fn clocks_that_are_an_hour_off_end_no_lease_and_keep_none() {
    let (database, hour) = (database(), 3_600_000);
    let mut early = skewed(database.url(), -hour);
    let mut late = skewed(database.url(), hour);
    early.work("w1", &[]);
    late.work("w2", &[]);
    // Longer than a lease, on both of them, while the other judges leases too.
    let jobs: Vec<String> = [&early, &late].map(|site| site.submit(&["--", "sleep", "2.5"])).into();
    for job in &jobs {
        let done = early.wait(job, "state", "succeeded");
        assert_eq!((&done["attempts"], &done["losses"]), (&json!(1), &json!(0)), "{done}");
    }
    let later = late.submit(&["--delay", "300ms", "--", "true"]);
    early.wait(&later, "state", "succeeded");
    // The lease of one whose scheduler died ends, by whatever clock the other goes.
    let marker = early.path("first");
    let script = format!("test -e {marker} || {{ touch {marker}; sleep 60; }}");
    let job = late.submit(&["--", "sh", "-c", &script]);
    let at = late.wait(&job, "state", "running")["worker"].clone();
    late.until("it has begun", || std::path::Path::new(&marker).exists().then_some(()));
    let (dying, other) = if at == "w1" { (&mut early, &late) } else { (&mut late, &early) };
    dying.kill_scheduler();
    dying.kill_worker(0);
    assert_eq!(other.wait(&job, "state", "succeeded")["losses"], json!(1));
}

#[test]
fn what_others_have_under_way_counts_as_used_here() {
    let database = database();
    let (one, mut two) = (serve(&database), serve(&database));
    two.work_named("w2", &["--exec", "--slots", "3", "--pool", "gpu"]);
    let held = two.submit(&["--tenant", "acme", "--slots", "2", "--", "sleep", "60"]);
    two.wait(&held, "state", "running");
    let slots = |site: &Site| {
        let tenants = site.json(&["tenants"])["tenants"].clone();
        let acme = tenants.as_array().unwrap().iter().find(|it| it["tenant"] == "acme").cloned();
        acme.map_or(Value::Null, |acme| acme["slots"].clone())
    };
    one.until("one knows what two has under way", || (slots(&one) == 2).then_some(()));
    two.said(&["cancel", &held]);
    one.until("one knows that it is over", || (slots(&one) != 2).then_some(()));
}

#[test]
fn what_happened_on_any_scheduler_can_be_replayed_on_each() {
    let database = database();
    let (one, mut two) = (serve(&database), serve(&database));
    two.work_named("w2", &["--exec", "--slots", "2"]);
    two.said(&["set", "tenant", "acme", r#"{"weight": 3}"#]);
    for tenant in ["acme", "globex", "acme"] {
        two.said(&["run", "--tenant", tenant, "--", "true"]);
    }
    let lost = two.submit(&["--attempts", "2", "--", "sh", "-c", "exit 7"]);
    two.wait(&lost, "state", "failed");
    let look = || -> Value {
        let answer = get(one.address(), "/v1/what-if");
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        serde_json::from_str(body).unwrap()
    };
    assert_eq!(look()["last"], Value::Null);
    let question = json!({ "hours": 1, "policies": ["balanced", "fifo"] }).to_string();
    let asked = post(one.address(), "/v1/what-if", &question);
    assert!(asked.starts_with("HTTP/1.1 200") && asked.contains(r#"{"number":1}"#), "{asked}");
    let last =
        one.until("it is replayed", || Some(look()["last"].take()).filter(|it| !it.is_null()));
    assert_eq!(last["error"], Value::Null, "{last}");
    let figures = get(one.address(), "/v1/what-if/1/figures.json");
    let (_, figures) = figures.split_once("\r\n\r\n").unwrap();
    let figures: Value = serde_json::from_str(figures).unwrap();
    assert_eq!(figures["workload"]["n_jobs"], 4, "{figures}");
    let policies = figures["runs"].as_array().unwrap().iter().map(|run| run["policy"].clone());
    assert_eq!(policies.collect::<Vec<_>>(), ["balanced", "fifo"]);
    // The address of the database, with whatever secret is in it, is shown to nobody.
    let page = get(one.address(), "/v1/what-if/1/report.html");
    assert!(page.starts_with("HTTP/1.1 200") && !page.contains("postgres://"), "{page}");
}

#[test]
fn an_application_submits_in_its_own_transaction_and_may_do_no_more() {
    let database = database();
    let mut site = serve(&database);
    site.work("w1", &[]);
    // Roles are the whole server's, so they are named after this database.
    let name = database.url().rsplit('/').next().unwrap();
    let name: String = name.chars().take_while(|c| *c != '?').collect();
    let (shop, reports) = (format!("shop_{name}"), format!("reports_{name}"));
    let as_one = |role: &str, sql: &str| database.say(&format!("SET ROLE {role}; {sql}"));
    database
        .say(&format!(
            "CREATE ROLE {shop}; CREATE ROLE {reports}; \
             GRANT USAGE ON SCHEMA maitre TO {shop}, {reports}; \
             GRANT EXECUTE ON FUNCTION maitre.submit TO {shop}; \
             GRANT SELECT ON maitre.completions TO {reports}; \
             CREATE TABLE public.orders (number int); GRANT ALL ON public.orders TO {shop}"
        ))
        .unwrap();
    let submit = r#"SELECT maitre.submit(tenant => 'shop', type => 'exec',
        payload => '{"argv": ["true"]}')"#;
    as_one(&shop, &format!("BEGIN; INSERT INTO public.orders VALUES (1); {submit}; ROLLBACK"))
        .unwrap();
    as_one(&shop, &format!("BEGIN; INSERT INTO public.orders VALUES (2); {submit}; COMMIT"))
        .unwrap();
    // Nobody tells the scheduler: it looks.
    let done = site.until("it ran", || {
        let jobs = site.json(&["jobs", "--tenant", "shop"])["jobs"].clone();
        (jobs[0]["state"] == "succeeded").then_some(jobs)
    });
    assert_eq!(done.as_array().unwrap().len(), 1, "what was rolled back is no job: {done}");
    let id = done[0]["id"].to_string();
    let told = format!("SELECT 1 / count(*) FROM maitre.completions WHERE id = {id}");
    as_one(&reports, &told).unwrap();
    for (role, sql) in [
        (&shop, "SELECT * FROM maitre.jobs"),
        (&shop, "SELECT * FROM maitre.completions"),
        (&shop, "DELETE FROM maitre.finished"),
        (&reports, submit),
        (&reports, "SELECT * FROM maitre.settings"),
    ] {
        let refused = as_one(role, sql).unwrap_err().to_string();
        assert!(refused.contains("permission denied"), "{role}: {sql}: {refused}");
    }
    database.say(&format!("DROP OWNED BY {shop}, {reports}; DROP ROLE {shop}, {reports}")).unwrap();
}
