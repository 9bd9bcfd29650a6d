//! A Postgres of one's own, for tests and benchmarks: made from the installed server's programs in
//! a temporary directory, reached by a socket in it, and gone when whoever asked for it is gone.
//!
//! `MAITRE_TEST_POSTGRES_URL` names another server to use instead; then databases are made there.
//!
//! **Invariant:** whoever cannot have one is told why. Nothing is skipped.

mod programs;
mod watch;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use programs::Programs;

/// Names a server to use in place of one's own.
pub const URL: &str = "MAITRE_TEST_POSTGRES_URL";
/// Who may do everything in a cluster of ours.
const OWNER: &str = "maitre";
/// Through its socket as always; through its port only what is encrypted.
const HBA: &str = "local all all trust\nhostssl all all 127.0.0.1/32 trust\n";
/// What a server calls its socket.
const SOCKET: &str = ".s.PGSQL.5432";
/// How long a server may take to start or stop, in steps of [`STEP`].
const STEPS_MAX: usize = 3_000;
const STEP: Duration = Duration::from_millis(20);

/// Why there is no Postgres.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No programs of a server were found.
    #[error(
        "no Postgres server is installed: install the package `postgresql` (15 or later), or name \
         a server with `{URL}`"
    )]
    NotInstalled,
    /// One of its programs failed.
    #[error("could not {doing}: {cause}")]
    Failed {
        /// What was tried, as a verb phrase.
        doing: &'static str,
        /// What came of it.
        cause: String,
    },
}

impl Error {
    fn io(doing: &'static str) -> impl Fn(std::io::Error) -> Self {
        move |error| Self::Failed { doing, cause: error.to_string() }
    }
}

/// Whether what is committed has to outlive the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// No: tests are quicker without. What is committed outlives the server all the same.
    Off,
    /// Yes, as in earnest.
    On,
}

impl Sync {
    fn settings(self) -> Vec<String> {
        let is_on = match self {
            Self::Off => "off",
            Self::On => "on",
        };
        ["fsync", "full_page_writes"].map(|name| format!("{name}={is_on}")).to_vec()
    }
}

/// A running server.
#[derive(Debug)]
pub struct Cluster {
    place: Place,
}

#[derive(Debug)]
enum Place {
    /// Somebody else's.
    Named(String),
    /// Ours; other processes may use it too.
    Shared(PathBuf),
    /// Ours alone.
    Own(Box<Own>),
}

#[derive(Debug)]
struct Own {
    directory: tempfile::TempDir,
    settings: Vec<String>,
    server: Mutex<Child>,
}

/// What a server shows to those who want to know that it is the one they mean.
#[derive(Clone, Debug)]
pub struct Papers {
    /// A certificate, as PEM.
    pub certificate: String,
    /// Its key, as PEM.
    pub key: String,
}

impl Cluster {
    /// The one that all tests of a run share. The first who asks starts it.
    pub fn shared() -> Result<Self, Error> {
        if let Ok(url) = std::env::var(URL) {
            return Ok(Self::at(&url));
        }
        let (run, watched) = watch::run();
        let directory = std::env::temp_dir().join(format!("maitre-pg-{run}"));
        let doing = "share a server";
        let lock = File::create(directory.with_extension("lock")).map_err(Error::io(doing))?;
        lock.lock().map_err(Error::io(doing))?;
        if !directory.join("ready").exists() {
            std::fs::create_dir_all(&directory).map_err(Error::io(doing))?;
            let server = start_new(&directory, &Sync::Off.settings())?;
            watch::until_gone(watched, server.id(), &directory)?;
            File::create(directory.join("ready")).map_err(Error::io(doing))?;
        }
        Ok(Self { place: Place::Shared(directory) })
    }

    /// One that nobody else uses. It is stopped and removed when this is dropped, or when this
    /// process ends in whatever way.
    pub fn start(sync: Sync) -> Result<Self, Error> {
        let directory = directory()?;
        let server = start_new(directory.path(), &sync.settings())?;
        Self::own(directory, sync.settings(), server)
    }

    /// One that listens on a port too, and takes nobody there who does not encrypt. Answers the
    /// port.
    pub fn start_sealed(papers: &Papers) -> Result<(Self, u16), Error> {
        let doing = "give a server its papers";
        let directory = directory()?;
        let programs = Programs::find()?;
        let mut settings = Sync::Off.settings();
        for (name, setting, text) in [
            ("own.crt", "ssl_cert_file", &papers.certificate),
            ("own.key", "ssl_key_file", &papers.key),
            ("hba", "hba_file", &HBA.to_owned()),
        ] {
            let path = directory.path().join(name);
            std::fs::write(&path, text).map_err(Error::io(doing))?;
            programs.give(&path)?;
            let only_own = std::os::unix::fs::PermissionsExt::from_mode(0o600);
            std::fs::set_permissions(&path, only_own).map_err(Error::io(doing))?;
            settings.push(format!("{setting}={}", path.display()));
        }
        let port = free_port().map_err(Error::io(doing))?;
        let listen = ["ssl=on".to_owned(), format!("port={port}")];
        settings.extend(listen);
        settings.push("listen_addresses=127.0.0.1".to_owned());
        let server = start_new(directory.path(), &settings)?;
        Ok((Self::own(directory, settings, server)?, port))
    }

    fn own(
        directory: tempfile::TempDir,
        settings: Vec<String>,
        server: Child,
    ) -> Result<Self, Error> {
        watch::until_gone(std::process::id(), server.id(), directory.path())?;
        let own = Own { directory, settings, server: Mutex::new(server) };
        Ok(Self { place: Place::Own(Box::new(own)) })
    }

    /// Somebody else's server. Databases that are made there are removed again.
    pub fn at(url: &str) -> Self {
        Self { place: Place::Named(url.to_owned()) }
    }

    /// Makes an empty database of a name that no other has.
    pub fn database(&self) -> Result<Database, Error> {
        self.database_as("TEMPLATE template0")
    }

    /// Makes an empty database that is set up like this.
    pub fn database_as(&self, set_up: &str) -> Result<Database, Error> {
        static N_MADE: AtomicU32 = AtomicU32::new(0);
        let n = N_MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("maitre_own_{}_{n}", std::process::id());
        let sql = format!("CREATE DATABASE {name} {set_up}");
        self.say("make a database", &sql)?;
        let is_kept = !matches!(self.place, Place::Named(_));
        let drop = (!is_kept).then(|| format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"));
        Ok(Database { url: self.url(&name), base: self.url("postgres"), drop })
    }

    /// The server goes as it does when its machine loses power: at once, and without a word.
    pub fn crash(&self) -> Result<(), Error> {
        let Place::Own(own) = &self.place else { return Err(not_ours("stop it")) };
        stop(own)
    }

    /// The server comes back after a crash.
    pub fn resume(&self) -> Result<(), Error> {
        let Place::Own(own) = &self.place else { return Err(not_ours("start it")) };
        let server = serve(&Programs::find()?, own.directory.path(), &own.settings)?;
        watch::until_gone(std::process::id(), server.id(), own.directory.path())?;
        *own.server.lock().unwrap_or_else(PoisonError::into_inner) = server;
        Ok(())
    }

    /// Where it listens.
    pub fn socket(&self) -> Result<PathBuf, Error> {
        match &self.place {
            Place::Named(_) => Err(not_ours("find its socket")),
            Place::Shared(directory) => Ok(directory.join(SOCKET)),
            Place::Own(own) => Ok(own.directory.path().join(SOCKET)),
        }
    }

    /// How a database of this name is reached.
    pub fn url(&self, database: &str) -> String {
        let directory = match &self.place {
            Place::Named(url) => return with_database(url, database),
            Place::Shared(directory) => directory,
            Place::Own(own) => own.directory.path(),
        };
        let host = directory.display().to_string().replace('/', "%2F");
        format!("postgres://{OWNER}@{host}/{database}")
    }

    fn say(&self, doing: &'static str, sql: &str) -> Result<(), Error> {
        say(doing, &self.url("postgres"), sql)
    }
}

/// An empty database. One on somebody else's server is removed when this is dropped.
#[derive(Debug)]
pub struct Database {
    url: String,
    base: String,
    drop: Option<String>,
}

impl Database {
    /// How it is reached.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Says something to it that has no answer.
    pub fn say(&self, sql: &str) -> Result<(), Error> {
        say("say something to the database", &self.url, sql)
    }

    /// Copies a schema into a file, as an operator would.
    pub fn dump(&self, schema: &str, file: &Path) -> Result<(), Error> {
        let mut dump = Command::new(Programs::find()?.path("pg_dump"));
        dump.args(["-Fc", "-n", schema, "-f"]).arg(file).arg(&self.url);
        programs::run("copy a database", &mut dump)
    }

    /// Takes in what such a file holds.
    pub fn restore(&self, file: &Path) -> Result<(), Error> {
        let mut restore = Command::new(Programs::find()?.path("pg_restore"));
        restore.args(["--exit-on-error", "-d", &self.url]).arg(file);
        programs::run("restore a database", &mut restore)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if let Some(sql) = &self.drop {
            // Whoever runs that server can remove it too.
            drop(say("remove a database", &self.base, sql));
        }
    }
}

/// Whether there is a server that tests can use.
pub fn is_there() -> bool {
    std::env::var_os(URL).is_some() || Programs::find().is_ok()
}

fn not_ours(doing: &'static str) -> Error {
    Error::Failed { doing, cause: "others use this server too".to_owned() }
}

fn say(doing: &'static str, url: &str, sql: &str) -> Result<(), Error> {
    let mut psql = Command::new(Programs::find()?.path("psql"));
    programs::run(doing, psql.args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", url, "-c", sql]))
}

/// Another database on the same server.
fn with_database(url: &str, database: &str) -> String {
    let (base, question) = url.split_once('?').map_or((url, ""), |(base, rest)| (base, rest));
    let scheme = base.find("://").map_or(0, |at| at + 3);
    let end = base[scheme..].find('/').map_or(base.len(), |at| scheme + at);
    let question = if question.is_empty() { String::new() } else { format!("?{question}") };
    format!("{}/{database}{question}", &base[..end])
}

fn directory() -> Result<tempfile::TempDir, Error> {
    let directory = tempfile::Builder::new().prefix("maitre-pg-").tempdir();
    directory.map_err(Error::io("make a directory"))
}

fn free_port() -> std::io::Result<u16> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

fn start_new(directory: &Path, settings: &[String]) -> Result<Child, Error> {
    let programs = Programs::find()?;
    programs.give(directory)?;
    let mut initdb = programs.command("initdb");
    initdb.args(["-A", "trust", "-U", OWNER, "-E", "UTF8", "--locale=C", "--no-sync"]);
    initdb.arg("--data-checksums").arg("-D").arg(directory.join("data"));
    programs::run("make a cluster", &mut initdb)?;
    serve(&programs, directory, settings)
}

fn serve(programs: &Programs, directory: &Path, own: &[String]) -> Result<Child, Error> {
    let doing = "start a server";
    let data = directory.join("data");
    let log = File::create(directory.join("log")).map_err(Error::io(doing))?;
    let settings = ["listen_addresses=", "max_connections=200", "max_wal_size=4GB"];
    let mut postgres = programs.command("postgres");
    postgres.arg("-D").arg(&data).arg("-k").arg(directory);
    // What is said last holds.
    for setting in settings.into_iter().chain(own.iter().map(String::as_str)) {
        postgres.args(["-c", setting]);
    }
    postgres.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    let mut server = postgres.spawn().map_err(Error::io(doing))?;
    for _ in 0..STEPS_MAX {
        let state = std::fs::read_to_string(data.join("postmaster.pid")).unwrap_or_default();
        let is_this = state.lines().next() == Some(server.id().to_string().as_str());
        if is_this && state.lines().nth(7).is_some_and(|line| line.trim() == "ready") {
            return Ok(server);
        }
        if server.try_wait().is_ok_and(|status| status.is_some()) {
            break;
        }
        std::thread::sleep(STEP);
    }
    let cause = std::fs::read_to_string(directory.join("log")).unwrap_or_default();
    Err(Error::Failed { doing, cause })
}

fn stop(own: &Own) -> Result<(), Error> {
    let mut server = own.server.lock().unwrap_or_else(PoisonError::into_inner);
    let mut kill = Command::new("kill");
    programs::run("stop a server", kill.args(["-QUIT", &server.id().to_string()]))?;
    server.wait().map_err(Error::io("stop a server"))?;
    Ok(())
}

impl Drop for Own {
    fn drop(&mut self) {
        // Whoever watches it does what is left to do.
        drop(stop(self));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_takes_the_place_of_the_one_in_the_url() {
        for (url, expected) in [
            ("postgres://h/a", "postgres://h/b"),
            ("postgres://u:p@h:5/a?sslmode=require", "postgres://u:p@h:5/b?sslmode=require"),
            ("postgresql://h", "postgresql://h/b"),
        ] {
            assert_eq!(with_database(url, "b"), expected);
        }
    }

    #[test]
    fn a_server_that_crashed_comes_back_with_what_was_committed() {
        let cluster = Cluster::start(Sync::Off).unwrap();
        let database = cluster.database().unwrap();
        database.say("CREATE TABLE kept (a int); INSERT INTO kept VALUES (1)").unwrap();
        cluster.crash().unwrap();
        assert!(database.say("SELECT 1").is_err());
        cluster.resume().unwrap();
        database.say("SELECT 1 / (SELECT count(*) FROM kept)").unwrap();
    }

    #[test]
    fn a_server_is_shared_and_databases_are_not() {
        let (one, two) = (Cluster::shared().unwrap(), Cluster::shared().unwrap());
        assert_eq!(one.url("a"), two.url("a"));
        assert_ne!(one.database().unwrap().url(), two.database().unwrap().url());
    }
}
