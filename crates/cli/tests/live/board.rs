//! The board, in a real browser.

use model::Millis;
use serde_json::{Value, json};
use store::{Options, Sqlite, Store as _};
use tokio_util::sync::CancellationToken;
use worker::{Attempt, Descriptor, Detection, Done, Field, FieldKind, Proposal, Worker};

use crate::browser::Browser;
use crate::site::Site;

/// If anything made markup of this, the title of the page would say so.
const EVIL: &str = r#"<img src="x" onerror="document.title='taken'"><script>alert(1)</script>"#;

/// A worker that looks for work of type `vacuum` and finds one thing each time.
struct Scout {
    stop: CancellationToken,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Scout {
    fn start(site: &Site) -> Self {
        let (stop, server) = (CancellationToken::new(), site.address().to_owned());
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let descriptor = Descriptor::new(EVIL, EVIL)
                .admin(Field::new("threshold", FieldKind::Number).default(0.3).range(0.0, 1.0))
                .worker(Field::new("polite", FieldKind::Flag).default(true).help(EVIL))
                .policy("interval", "1h");
            let worker = Worker::builder(&server)
                .name("scout")
                .slots(2)
                .software(EVIL)
                .describe("vacuum", descriptor)
                .detect("vacuum", 1, |detection: Detection| async move {
                    let proposal = Proposal::new(EVIL).label("what", EVIL);
                    detection.propose(proposal).await;
                    Ok(())
                })
                .type_("vacuum", 1, |attempt: Attempt| async move {
                    attempt.stage(0.4, EVIL, "sweeping");
                    // What is asked for is to wait for a file.
                    let path = String::from_utf8_lossy(attempt.payload()).into_owned();
                    while !path.is_empty() && !std::path::Path::new(&path).exists() {
                        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
                        if attempt.is_stopped() {
                            break;
                        }
                    }
                    Ok(Done::new())
                })
                .leave_grace(std::time::Duration::from_millis(100))
                .build()
                .expect("it is put together well");
            let runtime = runtime.expect("there is room for a runtime");
            runtime.block_on(worker.run(stopped)).expect("it works");
        });
        Self { stop, thread: Some(thread) }
    }
}

impl Drop for Scout {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn page(site: &Site, rest: &str) -> String {
    format!("http://{}/{rest}", site.address())
}

/// What was complained about, but for answers that the test provoked.
fn complaints(browser: &Browser, provoked: &str) -> Vec<String> {
    let all = browser.complaints().into_iter();
    all.filter(|one| provoked.is_empty() || !one.contains(provoked)).collect()
}

#[test]
fn the_board_shows_what_waits_and_why_and_what_becomes_of_it() {
    let mut site = Site::serve();
    let browser = Browser::open();
    browser.go(&page(&site, ""));
    browser.reads("Nothing waits.");
    browser.reads("No worker is here.");
    let label = format!("note={EVIL}");
    let id = site.submit(&["--need", "gpu=a100", "--label", &label, "--", "true"]);
    browser.reads("no-worker-ever");
    browser.reads("none of 0 workers known can ever run 1 slot, type exec, gpu=a100");
    // Nobody touches the page: it sees that the worker comes, and that the job is done.
    site.work("gpu-1", &["--has", "gpu=a100"]);
    browser.reads("gpu-1 serving");
    browser.reads("Nothing waits.");
    browser.until("it is done", || {
        let row = browser.run("return document.querySelector('.chip.succeeded')?.textContent");
        (row == "succeeded").then_some(())
    });
    browser.go(&page(&site, &format!("#/jobs/{id}")));
    browser.reads(&format!("Job {id} succeeded"));
    browser.reads(&label);
    assert_eq!(browser.run("return document.title"), format!("Maitre: {id}"));
    browser.go(&page(&site, "#/jobs/99"));
    browser.reads("there is no job 99");
    assert_eq!(complaints(&browser, "status of 404"), [""; 0]);
}

#[test]
fn a_policy_is_changed_on_the_board_and_a_run_is_asked_for() {
    let site = Site::serve();
    let _scout = Scout::start(&site);
    site.until("the first run is over", || {
        let kind = site.maitre(&["types", "history", "vacuum", "--json"]);
        (kind.stdout.starts_with(b"[") && kind.stdout.len() > 4).then_some(())
    });
    let browser = Browser::open();
    browser.go(&page(&site, "#/types"));
    browser.click("main a[href='#/types/vacuum']");
    browser.reads("Jobs in process");
    assert_eq!(browser.run("return document.querySelector('h1').textContent"), EVIL);
    let made = "return document.querySelectorAll('main img, main script').length";
    assert_eq!(browser.run(made), 0, "what is said stays text");

    let interval = "input[data-field='interval']";
    browser.write(interval, "17m\n");
    browser.reads("interval is 17m now");
    let kept = |name: &str| site.json(&["types", "show", "vacuum"])["policy"][name].clone();
    assert_eq!(
        (&kept("interval")["value"], &kept("interval")["origin"]),
        (&json!("17m"), &json!("set"))
    );
    browser.write(interval, "17\n");
    browser.reads("which is no length of time");
    assert_eq!(kept("interval")["value"], "17m");
    browser.reload();
    browser.reads("Jobs in process");
    let value = |selector: &str| {
        browser.run(&format!("return document.querySelector({})?.value", json!(selector)))
    };
    assert_eq!(value(interval), "17m", "it is kept");
    browser.write("input[data-field='admin.threshold']", "0.5\n");
    browser.reads("admin.threshold is 0.5 now");
    browser.click("input[data-field='worker.polite']");
    browser.reads("worker.polite is false now");
    browser.click("button[aria-label='unset interval']");
    browser.reads("interval is 1h now");

    browser.click("button[data-do='detect']");
    browser.reads("a run is asked for");
    browser.reads("asked for succeeded");
    let runs = site.json(&["types", "history", "vacuum"]);
    assert_eq!((runs[0]["asked"].clone(), &runs[0]["status"]), (json!(true), &json!("succeeded")));
    browser.go(&page(&site, "#/activity"));
    browser.reads("set interval=17m");
    assert_eq!(complaints(&browser, "status of 400"), [""; 0]);
}

#[test]
fn progress_is_seen_on_the_board_and_schedules_are_kept_there() {
    let site = Site::serve();
    let _scout = Scout::start(&site);
    let browser = Browser::open();
    browser.go(&page(&site, "#/schedules"));
    browser.reads("Nothing recurs yet.");
    let go = site.path("go");
    for (field, text) in [("name", "sweep"), ("when", "1h"), ("type", "vacuum"), ("payload", &*go)]
    {
        browser.write(&format!("input[name='{field}']"), text);
    }
    browser.click("form button");
    browser.reads("schedule sweep is set");
    browser.click("button[aria-label='Run now sweep']");
    browser.reads("is submitted");
    browser.go(&page(&site, "#/types/vacuum"));
    browser.reads("40 % sweeping: <img");
    std::fs::write(&go, "").expect("there is room");
    browser.until("it is done", || (!browser.text().contains("sweeping")).then_some(()));
    browser.go(&page(&site, "#/schedules"));
    browser.click("button[aria-label='Pause sweep']");
    browser.reads("schedule sweep rests");
    browser.click("button[aria-label='Remove sweep']");
    browser.agree();
    browser.reads("Nothing recurs yet.");
    assert_eq!(site.json(&["schedule", "list"]), json!([]));
    assert_eq!(complaints(&browser, ""), [""; 0]);
}

#[test]
fn with_tokens_the_board_asks_for_one_and_shows_what_it_allows() {
    let site = Site::serve();
    let secret = |words: &[&str], admin: Option<&str>| {
        let mut command = site.command(&[&["token", "new"], words].concat());
        let made = command.env("MAITRE_TOKEN", admin.unwrap_or("none")).output();
        String::from_utf8(made.expect("it runs").stdout).expect("it is text").trim().to_owned()
    };
    let admin = secret(&["--scope", "admin", "--name", "root"], None);
    let reader = secret(&["--scope", "read", "--name", "guest"], Some(&admin));
    let browser = Browser::open();
    browser.go(&page(&site, ""));
    browser.reads("This scheduler wants a token");
    let token = "input[name='token']";
    browser.write(token, "maitre_wrong\n");
    browser.reads("the token is not known");
    browser.write(token, &format!("{reader}\n"));
    browser.reads("guest (may look)");
    browser.reads("Nothing waits.");
    browser.go(&page(&site, "#/schedules"));
    browser.reads("Nothing recurs yet.");
    let n_forms = "return document.querySelectorAll('form').length";
    assert_eq!(browser.run(n_forms), 0, "whoever may look changes nothing");
    assert_eq!(browser.run("return document.cookie"), "");
    browser.reload();
    browser.reads("guest (may look)");
    browser.click("button[data-do='logout']");
    browser.reads("This scheduler wants a token");
    assert_eq!(browser.run("return sessionStorage.length"), Value::from(0));
    browser.write(token, &format!("{admin}\n"));
    browser.reads("Add a schedule, or change one");
    assert_eq!(complaints(&browser, "status of 401"), [""; 0]);
}

#[test]
fn what_happened_is_replayed_on_the_board_under_other_policies() {
    let mut site = Site::serve();
    site.work_named("w1", &["--exec", "--slots", "2"]);
    site.said(&["set", "tenant", "acme", r#"{"weight": 3}"#]);
    let file = site.path("jobs.jsonl");
    let lines = ["acme", "initech"]
        .iter()
        .cycle()
        .take(12)
        .map(|tenant| json!({ "tenant": tenant, "command": ["sleep", "0.02"] }).to_string());
    std::fs::write(&file, lines.collect::<Vec<_>>().join("\n")).expect("there is room");
    site.said(&["submit", "--wait", "--file", &file]);
    let browser = Browser::open();
    browser.go(&page(&site, "#/what-if"));
    browser.reads("Nothing was replayed yet.");
    let named = "input[name='policy']";
    browser.write(named, "nothing");
    browser.click("form button");
    browser.reads("`policies[0]` is `nothing`, of balanced,");
    browser.write(named, r#"{"preset": "nothing"}"#);
    browser.click("form button");
    browser.reads(r#"No report of {"preset": "nothing"} · fifo"#);
    browser.reads("`policy.preset` is \"nothing\", not a preset");

    browser.write(named, r#"<i>={"preset": "aging"}"#);
    browser.click("form button");
    browser.reads(r#"<i>={"preset": "aging"} · fifo over the last 24 hours"#);
    browser.reads("12 jobs of 2 tenants");
    for words in ["no policy can beat", "Waits", "Queue", "Shares under <i>", "Slots under fifo"] {
        browser.reads(words);
    }
    // A picture that a browser could not show has no size.
    let drawn = "return [...document.querySelectorAll('figure img')].map((one) => \
                 one.complete && one.naturalWidth > 0 && one.src.startsWith('blob:'))";
    browser.until("the pictures are drawn", || {
        let drawn = browser.run(drawn);
        (drawn.as_array()?.len() == 6 && !drawn.to_string().contains("false")).then_some(())
    });
    let saved = browser.run("return fetch('/v1/what-if/2/report.html').then((it) => it.text())");
    let saved = saved.as_str().expect("it is text");
    assert!(saved.starts_with("<!doctype html>") && saved.contains("<svg"), "it is a whole page");
    assert_eq!(browser.run("return document.querySelectorAll('main i').length"), 0);
    assert_eq!(complaints(&browser, "400 (Bad Request)"), [""; 0]);
}

/// A minute in which `acme` and `initech` use three slots and one, and more jobs wait.
const BUSY: &str = r#"{"q": {"workers-full": 1200, "tenant-paused": 40}, "r": 4, "t": {"n": {
    "acme": {"s": 3, "d": 3000, "q": 1200}, "initech": {"s": 1, "d": 1000, "q": 40}}}}"#;

/// Stores what a scheduler counted some minutes ago, as a scheduler before this one did.
fn count_before(site: &Site, minutes_ago: impl IntoIterator<Item = i64>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("there is room for a runtime");
    let store = Sqlite::open(&site.data().join("maitre.db"), Options::default());
    let store = store.expect("no scheduler has it");
    for ago in minutes_ago {
        let at = store.now() - Millis(ago * 60_000);
        runtime.block_on(store.keep_minute(at, BUSY.to_owned())).expect("there is room");
    }
}

#[test]
fn charts_show_minutes_from_before_a_restart_and_unknown_minutes_as_gaps() {
    let mut site = Site::serve();
    site.terminate_scheduler();
    count_before(&site, (1..=3).chain(7..=10));
    site.launch(&["serve"]);
    let browser = Browser::open();
    browser.go(&page(&site, ""));
    browser.reads("Waiting jobs by reason");
    let number = |script: &str| browser.run(&format!("return {script}")).as_u64().unwrap_or(0);
    // The queue of the last hour is a line on each side of what is unknown.
    let lines = "document.querySelectorAll('.card .line polyline').length";
    assert!(number(lines) >= 2);
    for span in ["15 min", "1 h"] {
        browser.click(&format!("button[data-span='{span}']"));
        let pressed = "return document.querySelector('[aria-pressed=true]').textContent";
        browser.until("it is pressed", || (browser.run(pressed) == span).then_some(()));
        let chart = format!("svg[aria-label^='Slots of acme, last {span}']");
        browser.until(&chart, || {
            (number(&format!("document.querySelectorAll(\"{chart}\").length")) == 1).then_some(())
        });
        let parts = |class: &str| {
            number(&format!("document.querySelectorAll(\"{chart} .{class}\").length"))
        };
        assert!(parts("area") >= 2 && parts("gap") >= 2, "unknown minutes are gaps");
        assert_eq!(parts("area"), parts("due"));
    }
    for words in ["workers-full", "tenant-paused", "acme", "initech", "slots in use"] {
        browser.reads(words);
    }
    let told = "[...document.querySelectorAll('.tip title')].filter((one) => \
                one.textContent.endsWith(': 1,240 wait, tenant-paused 40, workers-full 1,200'))";
    assert!(number(&format!("{told}.length")) >= 6, "each step has its numbers in words");
    let layers = "[...document.querySelectorAll('.chart path[data-name]')]";
    let names = browser.run(&format!("return {layers}.map((one) => one.dataset.name)"));
    assert_eq!(names, json!(["tenant-paused", "workers-full"]));
    let runs = format!("{layers}[0].getAttribute('d').split('M').length - 1");
    assert!(number(&runs) >= 2, "an area on each side of what is unknown");
    // A day and a week have longer steps, each with the mean of its known minutes.
    for span in ["1 day", "7 days"] {
        browser.click(&format!("button[data-span='{span}']"));
        let label = format!("svg[aria-label^='Slots of acme, last {span}']");
        let script = format!("return document.querySelectorAll(\"{label}\").length");
        browser.until(span, || (browser.run(&script) == 1).then_some(()));
    }
    assert_eq!(complaints(&browser, ""), [""; 0]);
}

#[test]
fn charts_without_a_minute_say_when_the_first_is_stored() {
    let site = Site::serve();
    let browser = Browser::open();
    browser.go(&page(&site, ""));
    browser.reads("No minute of this span is stored. The first is stored when a minute is over.");
    let drawn = browser.run("return document.querySelectorAll('.chart').length");
    assert_eq!(drawn, 0);
}
