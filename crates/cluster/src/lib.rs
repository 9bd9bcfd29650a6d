//! A Postgres of one's own, for tests and benchmarks: made from the installed server's programs in
//! a temporary directory, reached by a socket in it, and gone when whoever asked for it is gone.
//!
//! `MAITRE_TEST_POSTGRES_URL` names another server for all who share one; then databases are made
//! there, by a user who may do everything, and removed again. Who stops a server or has it listen
//! on a port still gets one of its own.
//!
//! **Invariant:** whoever cannot have one is told why. Nothing is skipped.

mod database;
mod programs;
mod watch;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

pub use database::Database;
use database::{Named, say, with_database};
use programs::{PROGRAMS, Programs};

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
        "no Postgres server is installed: there is no `initdb` in {}, nor in `PATH`; install the \
         package `postgresql` (15 or later; nothing of it has to run), or name the directory of \
         its programs with `{PROGRAMS}`; a server that `{URL}` names does not replace them: some \
         tests stop theirs, and all speak to it by `psql`",
        programs::places()
    )]
    NotInstalled,
    /// Somebody else's server does not do what it is asked to.
    #[error(
        "could not make a database on the server that `{URL}` names: {cause}; it looks like \
         `postgres://user:password@host/postgres`, is 15 or later, and its user is a superuser; \
         without it, tests start a server of their own"
    )]
    Named {
        /// What came of it.
        cause: String,
    },
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
        // Who gives it no value names none.
        if let Some(url) = std::env::var(URL).ok().filter(|url| !url.is_empty()) {
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
        let url = self.url(&name);
        let Place::Named(base) = &self.place else {
            say("make a database", &self.url("postgres"), &sql)?;
            return Ok(Database { url, named: None });
        };
        say("make a database", base, &sql).map_err(|error| match error {
            Error::Failed { cause, .. } => Error::Named { cause },
            Error::NotInstalled | Error::Named { .. } => error,
        })?;
        Ok(Database { url, named: Some(Named { base: base.clone(), name }) })
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
}

/// Whether there is what tests need.
pub fn is_there() -> bool {
    Programs::find().is_ok()
}

fn not_ours(doing: &'static str) -> Error {
    Error::Failed { doing, cause: "others use this server too".to_owned() }
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
    fn whoever_has_no_server_is_told_all_that_is_needed() {
        let told = Error::NotInstalled.to_string();
        for word in ["`initdb`", "/usr/lib/postgresql", "`postgresql` (15", PROGRAMS, URL] {
            assert!(told.contains(word), "{told}");
        }
        let nowhere = Cluster::at("postgres://me:hush@127.0.0.1:1/mine");
        let told = nowhere.database().unwrap_err().to_string();
        for word in ["refused", URL, "superuser", "of their own"] {
            assert!(told.contains(word) && !told.contains("hush"), "{told}");
        }
    }

    #[test]
    fn a_database_on_somebody_elses_server_is_removed_again() {
        let theirs = Cluster::start(Sync::Off).unwrap();
        let named = Cluster::at(&theirs.url("postgres"));
        let database = named.database().unwrap();
        let (base, name) = (theirs.url("postgres"), database.url().rsplit('/').next().unwrap());
        let is_there =
            format!("SELECT 1 / (SELECT count(*) FROM pg_database WHERE datname = '{name}')");
        say("look", &base, &is_there).unwrap();
        drop(database);
        for _ in 0..STEPS_MAX {
            if say("look", &base, &is_there).is_err() {
                return;
            }
            std::thread::sleep(STEP);
        }
        panic!("it is still there");
    }

    #[test]
    fn a_server_is_shared_and_databases_are_not() {
        let (one, two) = (Cluster::shared().unwrap(), Cluster::shared().unwrap());
        assert_eq!(one.url("a"), two.url("a"));
        assert_ne!(one.database().unwrap().url(), two.database().unwrap().url());
    }
}
