//! A browser that does what a test says, by the protocol `WebDriver`: the few words of it that are
//! needed here.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::site;

/// What a reference to an element is called.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";
/// Nothing of the machine's own, nobody else asked, and it runs where there is no screen.
const ARGUMENTS: [&str; 10] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1280,1400",
];

/// A browser with one window.
pub(crate) struct Browser {
    driver: Child,
    address: String,
    session: String,
    _profile: TempDir,
}

impl Browser {
    pub(crate) fn open() -> Self {
        let mut driver = Command::new("chromedriver")
            .arg("--port=0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("`chromium` and `chromium-driver` are installed; `cargo xtask ci` does that");
        let mut lines = BufReader::new(driver.stdout.take().expect("its output is a pipe"));
        let port = loop {
            let mut line = String::new();
            assert!(lines.read_line(&mut line).expect("it speaks") > 0, "it did not start");
            if let Some((_, port)) = line.split_once("successfully on port ") {
                break port.trim().trim_end_matches('.').to_owned();
            }
        };
        std::thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
        let profile = TempDir::new().expect("there is room for a directory");
        let arguments = ARGUMENTS.map(str::to_owned).into_iter();
        let own = format!("--user-data-dir={}", profile.path().display());
        let arguments: Vec<String> = arguments.chain([own]).collect();
        let (address, session) = (format!("127.0.0.1:{port}"), String::new());
        let mut browser = Self { driver, address, session, _profile: profile };
        let made = browser.ask(
            ("POST", "/session"),
            &json!({ "capabilities": { "alwaysMatch": {
                "goog:chromeOptions": { "args": arguments },
                "goog:loggingPrefs": { "browser": "ALL" },
                "unhandledPromptBehavior": "ignore",
            } } }),
        );
        let session = made["sessionId"].as_str().expect("it opens a window");
        session.clone_into(&mut browser.session);
        browser
    }

    pub(crate) fn go(&self, url: &str) {
        self.say("url", &json!({ "url": url }));
    }

    pub(crate) fn reload(&self) {
        self.say("refresh", &json!({}));
    }

    /// What a script returns.
    pub(crate) fn run(&self, script: &str) -> Value {
        self.say("execute/sync", &json!({ "script": script, "args": [] }))
    }

    /// What is to be read on the page, in one line.
    pub(crate) fn text(&self) -> String {
        let text = self.run("return document.body.innerText");
        text.as_str().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// Waits until this is to be read.
    pub(crate) fn reads(&self, words: &str) {
        self.until(words, || self.text().contains(words).then_some(()));
    }

    pub(crate) fn until<T>(&self, what: &str, look: impl FnMut() -> Option<T>) -> T {
        site::until(what, || self.text(), look)
    }

    pub(crate) fn click(&self, selector: &str) {
        let element = self.find(selector);
        self.say(&format!("element/{element}/click"), &json!({}));
    }

    /// Writes into a field what was not there before.
    pub(crate) fn write(&self, selector: &str, text: &str) {
        let element = self.find(selector);
        self.say(&format!("element/{element}/click"), &json!({}));
        self.run(&format!("document.querySelector({}).select()", json!(selector)));
        self.say(&format!("element/{element}/value"), &json!({ "text": text }));
    }

    /// Agrees to what the page asks.
    pub(crate) fn agree(&self) {
        self.say("alert/accept", &json!({}));
    }

    /// What the browser complained about since it was last asked.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let log = self.say("se/log", &json!({ "type": "browser" }));
        let entries = log.as_array().expect("it is a list").iter();
        let text = |entry: &Value| entry["message"].as_str().unwrap_or_default().to_owned();
        entries.filter(|entry| entry["level"] != "INFO").map(text).collect()
    }

    fn find(&self, selector: &str) -> String {
        self.until(selector, || {
            let script = format!("return document.querySelector({})", json!(selector));
            Some(self.run(&script)[ELEMENT].as_str()?.to_owned())
        })
    }

    fn say(&self, words: &str, body: &Value) -> Value {
        self.ask(("POST", &format!("/session/{}/{words}", self.session)), body)
    }

    fn ask(&self, (method, path): (&str, &str), body: &Value) -> Value {
        let body = body.to_string();
        let mut stream = TcpStream::connect(&self.address).expect("the driver listens");
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n",
            self.address,
            body.len()
        );
        stream.write_all(head.as_bytes()).expect("it listens");
        stream.write_all(body.as_bytes()).expect("it listens");
        let (is_well, body) = answer(BufReader::new(stream));
        assert!(is_well, "{method} {path}: {body}");
        let mut answer: Value = serde_json::from_str(&body).expect("it is JSON");
        answer["value"].take()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // A test that failed may have left it in any state.
        if !std::thread::panicking() {
            self.ask(("DELETE", &format!("/session/{}", self.session)), &json!({}));
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

/// Whether all went well, and what was said. The driver keeps connections open.
fn answer(mut stream: BufReader<TcpStream>) -> (bool, String) {
    let (mut is_well, mut n_bytes) = (false, 0);
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).expect("it answers");
        let line = line.trim_end().to_ascii_lowercase();
        is_well |= line.starts_with("http/1.1 200");
        if let Some(length) = line.strip_prefix("content-length:") {
            n_bytes = length.trim().parse().expect("it is a length");
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; n_bytes];
    stream.read_exact(&mut body).expect("it answers");
    (is_well, String::from_utf8(body).expect("it is text"))
}
