//! A private Postgres for tests and benchmarks. It is made with the programs of the installed
//! server in a temporary directory, listens on a socket there, and is removed when its user ends.
//!
//! `MAITRE_TEST_POSTGRES_URL` names an external server for all shared uses. Databases are then made
//! there by a superuser, and removed again. A test that stops its server or uses a port still gets
//! a private one.
//!
//! **Invariant:** a missing server is an error with its cause. No test is skipped.

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

/// Names an external server.
pub const URL: &str = "MAITRE_TEST_POSTGRES_URL";
/// The superuser of a private cluster.
const OWNER: &str = "maitre";
/// The socket accepts all connections, and the port only encrypted ones.
const HBA: &str = "local all all trust\nhostssl all all 127.0.0.1/32 trust\n";
/// The name of a server's socket.
const SOCKET: &str = ".s.PGSQL.5432";
/// The timeout for a start or a stop, in steps of [`STEP`].
const STEPS_MAX: usize = 3_000;
const STEP: Duration = Duration::from_millis(20);

/// The reason why there is no Postgres.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No server programs were found.
    #[error(
        "no Postgres server is installed: there is no `initdb` in {}, nor in `PATH`; install the \
         package `postgresql` (15 or later; nothing of it has to run), or name the directory of \
         its programs with `{PROGRAMS}`; a server that `{URL}` names does not replace them: some \
         tests stop theirs, and all speak to it by `psql`",
        programs::places()
    )]
    NotInstalled,
    /// The external server failed.
    #[error(
        "could not make a database on the server that `{URL}` names: {cause}; it looks like \
         `postgres://user:password@host/postgres`, is 15 or later, and its user is a superuser; \
         without it, tests start a server of their own"
    )]
    Named {
        /// The error.
        cause: String,
    },
    /// A program of the server failed.
    #[error("could not {doing}: {cause}")]
    Failed {
        /// The operation, as a verb phrase.
        doing: &'static str,
        /// The error.
        cause: String,
    },
}

impl Error {
    fn io(doing: &'static str) -> impl Fn(std::io::Error) -> Self {
        move |error| Self::Failed { doing, cause: error.to_string() }
    }
}

/// Whether commits survive a crash of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// No, because tests are faster without. Commits survive a crash of the server anyway.
    Off,
    /// Yes, as in production.
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
    /// An external server.
    Named(String),
    /// A private server that other processes may use too.
    Shared(PathBuf),
    /// A private server for this process alone.
    Own(Box<Own>),
}

#[derive(Debug)]
struct Own {
    directory: tempfile::TempDir,
    settings: Vec<String>,
    server: Mutex<Child>,
}

/// The certificate of a server.
#[derive(Clone, Debug)]
pub struct Papers {
    /// A certificate, as PEM.
    pub certificate: String,
    /// Its key, as PEM.
    pub key: String,
}

impl Cluster {
    /// The server that all tests of a run share. The first caller starts it.
    pub fn shared() -> Result<Self, Error> {
        // An empty value counts as unset.
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

    /// A server for this process alone. It is stopped and removed by a drop, or when the process
    /// ends in any way.
    pub fn start(sync: Sync) -> Result<Self, Error> {
        let directory = directory()?;
        let server = start_new(directory.path(), &sync.settings())?;
        Self::own(directory, sync.settings(), server)
    }

    /// A server that also listens on a port, and accepts only encrypted connections there. Returns
    /// the port.
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

    /// An external server. Databases that are made there are removed again.
    pub fn at(url: &str) -> Self {
        Self { place: Place::Named(url.to_owned()) }
    }

    /// Makes an empty database with a unique name.
    pub fn database(&self) -> Result<Database, Error> {
        self.database_as("TEMPLATE template0")
    }

    /// Makes an empty database with these options.
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

    /// Stops the server at once, as a loss of power does.
    pub fn crash(&self) -> Result<(), Error> {
        let Place::Own(own) = &self.place else { return Err(not_ours("stop it")) };
        stop(own)
    }

    /// Starts the server after a crash.
    pub fn resume(&self) -> Result<(), Error> {
        let Place::Own(own) = &self.place else { return Err(not_ours("start it")) };
        let server = serve(&Programs::find()?, own.directory.path(), &own.settings)?;
        watch::until_gone(std::process::id(), server.id(), own.directory.path())?;
        *own.server.lock().unwrap_or_else(PoisonError::into_inner) = server;
        Ok(())
    }

    /// The directory of its socket.
    pub fn socket(&self) -> Result<PathBuf, Error> {
        match &self.place {
            Place::Named(_) => Err(not_ours("find its socket")),
            Place::Shared(directory) => Ok(directory.join(SOCKET)),
            Place::Own(own) => Ok(own.directory.path().join(SOCKET)),
        }
    }

    /// The URL of a database with this name.
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

/// Whether a server is installed.
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
    // The last value of a setting counts.
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
        // The watching process does the rest.
        drop(stop(self));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crashed_server_keeps_its_commits() {
        let cluster = Cluster::start(Sync::Off).unwrap();
        let database = cluster.database().unwrap();
        database.say("CREATE TABLE kept (a int); INSERT INTO kept VALUES (1)").unwrap();
        cluster.crash().unwrap();
        assert!(database.say("SELECT 1").is_err());
        cluster.resume().unwrap();
        database.say("SELECT 1 / (SELECT count(*) FROM kept)").unwrap();
    }

    #[test]
    fn missing_server_error_names_the_remedy() {
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
    fn database_on_an_external_server_is_removed() {
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
