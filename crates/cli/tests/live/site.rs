//! A scheduler of its own for each test, and the commands that talk to it.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::puppet::Puppet;

/// Nothing in these tests takes longer, even on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

/// Processes that live as long as the test, and their directory.
pub(crate) struct Site {
    pub(crate) dir: TempDir,
    address: String,
    scheduler: Option<Child>,
    workers: Vec<Child>,
    puppets: Vec<Puppet>,
}

impl Site {
    /// A scheduler without workers.
    pub(crate) fn serve() -> Self {
        Self::start(&["serve"])
    }

    /// A scheduler with a worker of two slots beside it.
    pub(crate) fn dev() -> Self {
        let site = Self::start(&["dev", "--slots", "2", "--name", "w1"]);
        let workers = || site.json(&["workers"]).as_array().map_or(0, Vec::len);
        site.until("its worker is there", || (workers() == 1).then_some(()));
        site
    }

    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::prepared(arguments, |_, _| {})
    }

    /// A scheduler that `prepare` has the last word on: which program, as whom.
    pub(crate) fn prepared(arguments: &[&str], prepare: impl Fn(&Self, &mut Command)) -> Self {
        let dir = TempDir::new().expect("there is room for a directory");
        let mut site = Self {
            dir,
            address: "127.0.0.1:0".to_owned(),
            scheduler: None,
            workers: Vec::new(),
            puppets: Vec::new(),
        };
        let mut command = command();
        prepare(&site, &mut command);
        site.launch_by(command, arguments);
        site
    }

    /// Starts the scheduler, at the address that it had before if it ran before.
    pub(crate) fn launch(&mut self, arguments: &[&str]) {
        self.launch_by(command(), arguments);
    }

    fn launch_by(&mut self, mut command: Command, arguments: &[&str]) {
        let pace = ["--heartbeat", "100ms", "--lease", "1s"];
        let pace = if arguments.contains(&"--lease") { &[][..] } else { &pace };
        let mut child = command
            .args(arguments)
            .args(["--listen", &self.address])
            .args(pace)
            .arg("--data-dir")
            .arg(self.data())
            .current_dir(self.dir.path())
            .stderr(Stdio::piped())
            .spawn()
            .expect("maitre starts");
        let mut stderr = BufReader::new(child.stderr.take().expect("its errors are a pipe"));
        let mut said = String::new();
        // It may warn before.
        let line = loop {
            let before = said.len();
            let n = stderr.read_line(&mut said).expect("it speaks");
            assert!(n > 0, "it does not listen: {said}");
            if said[before..].starts_with("maitre listens on ") {
                break &said[before..];
            }
        };
        let address = line.split_whitespace().nth(3).expect("it says where");
        address.trim_end_matches(',').clone_into(&mut self.address);
        // Whoever does not read a pipe stops its writer.
        std::thread::spawn(move || std::io::copy(&mut stderr, &mut std::io::sink()));
        self.scheduler = Some(child);
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    /// Starts another worker; its place in the order of workers.
    pub(crate) fn work(&mut self, name: &str, arguments: &[&str]) -> usize {
        self.work_named(name, &[&["--exec", "--slots", "1"], arguments].concat());
        self.workers.len() - 1
    }

    /// Starts a worker inside a cgroup.
    pub(crate) fn work_inside(&mut self, name: &str, cgroup: &Path) {
        let procs = cgroup.join("cgroup.procs").display().to_string();
        let script = "echo $$ > \"$0\" && exec \"$@\"";
        let child = Command::new("sh")
            .args(["-c", script, &procs, env!("CARGO_BIN_EXE_maitre")])
            .args(["work", "--exec", "--slots", "1", "--name", name])
            .env("MAITRE_SERVER", &self.address)
            .current_dir(self.dir.path())
            .stderr(Stdio::null())
            .spawn()
            .expect("sh starts");
        self.workers.push(child);
    }

    /// Starts a worker that runs no command but those of its settings.
    pub(crate) fn work_named(&mut self, name: &str, arguments: &[&str]) {
        self.work_as(command(), name, arguments);
    }

    /// Starts a worker by a command that is prepared already.
    pub(crate) fn work_as(&mut self, mut command: Command, name: &str, arguments: &[&str]) {
        let child = command
            .args(["work", "--name", name])
            .args(arguments)
            .env("MAITRE_SERVER", &self.address)
            .current_dir(self.dir.path())
            .stderr(Stdio::null())
            .spawn()
            .expect("maitre starts");
        self.workers.push(child);
    }

    /// Starts a worker that is another program; its place in the order of workers.
    pub(crate) fn adopt(&mut self, mut command: Command) -> usize {
        command.env("MAITRE_SERVER", &self.address).current_dir(self.dir.path());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        self.workers.push(command.spawn().expect("it starts"));
        self.workers.len() - 1
    }

    /// Keeps a worker of the test's own connected for as long as the site is there.
    pub(crate) fn keep(&mut self, puppet: Puppet) {
        self.puppets.push(puppet);
    }

    /// The worker of the test's own that came last.
    pub(crate) fn puppet(&self) -> &Puppet {
        self.puppets.last().expect("the test has connected one")
    }

    /// Another copy of the program, with nothing inherited that could change what it does.
    pub(crate) fn program(path: &str) -> Command {
        quiet(Command::new(path))
    }

    pub(crate) fn kill_scheduler(&mut self) {
        let mut child = self.scheduler.take().expect("it runs");
        child.kill().expect("it can be killed");
        child.wait().expect("it is gone");
    }

    pub(crate) fn kill_worker(&mut self, at: usize) {
        self.workers[at].kill().expect("it can be killed");
        self.workers[at].wait().expect("it is gone");
    }

    /// Asks the scheduler to stop, and waits until it has.
    pub(crate) fn terminate_scheduler(&mut self) {
        self.signal_scheduler("-TERM");
        let mut child = self.scheduler.take().expect("it runs");
        assert!(child.wait().expect("it ends").success(), "it stopped cleanly");
    }

    /// The scheduler does nothing from now on, and nobody sees that it does not.
    pub(crate) fn suspend_scheduler(&self) {
        self.signal_scheduler("-STOP");
    }

    fn signal_scheduler(&self, signal: &str) {
        let pid = self.scheduler.as_ref().expect("it runs").id().to_string();
        let sent = Command::new("kill").args([signal, &pid]).status().expect("kill is there");
        assert!(sent.success());
    }

    /// Runs a command.
    pub(crate) fn maitre(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("maitre starts")
    }

    /// A command that talks to this scheduler.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = command();
        command.args(arguments).env("MAITRE_SERVER", &self.address).current_dir(self.dir.path());
        command
    }

    /// What a command said, when all went well.
    pub(crate) fn said(&self, arguments: &[&str]) -> String {
        let output = self.maitre(arguments);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "maitre {arguments:?}: {stderr}");
        String::from_utf8(output.stdout).expect("it speaks UTF-8")
    }

    /// What a command complained about, and its exit code.
    pub(crate) fn refused(&self, arguments: &[&str]) -> String {
        let output = self.maitre(arguments);
        assert_eq!(output.status.code(), Some(2), "maitre {arguments:?}");
        assert_eq!(output.stdout, b"");
        String::from_utf8(output.stderr).expect("it speaks UTF-8")
    }

    /// What a command said to machines.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        // After the command's name: a command to run may follow at the end.
        let said = self.said(&[&arguments[..1], &["--json"], &arguments[1..]].concat());
        serde_json::from_str(&said).expect("it speaks JSON")
    }

    /// Submits; the new job's id.
    pub(crate) fn submit(&self, arguments: &[&str]) -> String {
        let submitted = self.said(&[&["submit", "--json"], arguments].concat());
        let submitted: Value = serde_json::from_str(&submitted).expect("it speaks JSON");
        submitted[0]["id"].as_u64().expect("a job has an id").to_string()
    }

    pub(crate) fn job(&self, id: &str) -> Value {
        self.json(&["job", id])
    }

    /// Waits until a field of a job has this value.
    pub(crate) fn wait(&self, id: &str, field: &str, value: &str) -> Value {
        self.until(&format!("job {id} has {field} {value}"), || {
            let job = self.job(id);
            (job[field] == value).then_some(job)
        })
    }

    /// Waits until there is something; says what was waited for if it never comes.
    pub(crate) fn until<T>(&self, what: &str, look: impl FnMut() -> Option<T>) -> T {
        let jobs = || String::from_utf8_lossy(&self.maitre(&["jobs"]).stdout).into_owned();
        until(what, jobs, look)
    }

    /// A path in the site's directory.
    pub(crate) fn path(&self, name: &str) -> String {
        self.dir.path().join(name).display().to_string()
    }

    /// Lines of a file that jobs write to; none if it is not there yet.
    pub(crate) fn lines(&self, name: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.path(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        for child in self.workers.iter_mut().chain(&mut self.scheduler) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn command() -> Command {
    quiet(Command::new(Path::new(env!("CARGO_BIN_EXE_maitre"))))
}

fn quiet(mut command: Command) -> Command {
    for variable in
        ["MAITRE_CONFIG", "MAITRE_SERVER", "MAITRE_LOG", "MAITRE_TENANT", "MAITRE_TOKEN"]
    {
        command.env_remove(variable);
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Waits until there is something; says what was waited for, and what there is, if it never comes.
#[expect(clippy::disallowed_methods, reason = "a test that waits needs a clock")]
pub(crate) fn until<T>(
    what: &str,
    show: impl Fn() -> String,
    mut look: impl FnMut() -> Option<T>,
) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "never: {what}\n{}", show());
        std::thread::sleep(Duration::from_millis(20));
    }
}
