//! A worker that is killed leaves nothing running.

use std::process::{Child, Command, Stdio};

use proto::v1::server_message::Message as Theirs;
use proto::v1::worker_message::Message as Ours;
use rustix::process::{Pid, Signal, kill_process};

use crate::server::Server;
use crate::world::{is_alive, pids, script, until};

/// The worker as a process of its own: this test binary, started as one.
fn worker_process(server: &Server) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "deaths::a_worker_of_its_own", "--nocapture"])
        .env("MAITRE_TEST_SERVER", &server.address)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Does nothing, unless a test starts it as a worker.
#[tokio::test]
async fn a_worker_of_its_own() {
    let Ok(address) = std::env::var("MAITRE_TEST_SERVER") else { return };
    let worker = worker::Worker::builder(&address).name("w");
    let worker = worker.type_("exec", 0, crate::world::commands().exec()).build().unwrap();
    let _ = worker.run(tokio_util::sync::CancellationToken::new()).await;
}

#[tokio::test]
async fn the_children_and_grandchildren_of_a_killed_worker_are_killed() {
    let mut server = Server::start();
    let mut process = worker_process(&server);
    let mut session = server.welcomed().await;
    session.offer(1, 1, script("pwd; sleep 1000 & echo $$ $! ; wait")).await;
    let output = session.output_with(" ").await;
    let pids = pids(&output);
    assert_eq!(pids.len(), 2, "{output}");
    process.kill().unwrap();
    process.wait().unwrap();
    until("both are dead", || !pids.iter().any(|pid| is_alive(*pid))).await;
    let place = std::path::PathBuf::from(output.lines().next().unwrap());
    until("its directory is removed", || !place.exists()).await;
}

#[tokio::test]
async fn command_dies_with_its_worker_without_a_guard() {
    let mut server = Server::start();
    let mut process = worker_process(&server);
    let mut session = server.welcomed().await;
    session.offer(1, 1, script("pwd; echo $$ .; exec sleep 1000")).await;
    let output = session.output_with(" .").await;
    let pids = pids(&output);
    let is_guard = |pid: &i32| {
        let line = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap();
        line.contains("\0guard\0")
    };
    let mut guards: Vec<i32> = Vec::new();
    // The kernel lists children by the thread that started them.
    for task in std::fs::read_dir(format!("/proc/{}/task", process.id())).unwrap() {
        let list = std::fs::read_to_string(task.unwrap().path().join("children")).unwrap();
        guards.extend(crate::world::pids(&list).into_iter().filter(is_guard));
    }
    assert_eq!(guards.len(), 1);
    kill_process(Pid::from_raw(guards[0]).unwrap(), Signal::KILL).unwrap();
    until("the guard is dead", || !is_alive(guards[0])).await;
    assert!(is_alive(pids[0]));
    process.kill().unwrap();
    process.wait().unwrap();
    until("the command is dead", || !is_alive(pids[0])).await;
    // Its guard is dead too, so the test removes it.
    let place = std::path::Path::new(output.lines().next().unwrap());
    std::fs::remove_dir_all(place.ancestors().nth(2).unwrap()).unwrap();
}

#[tokio::test]
async fn a_suspended_worker_kills_its_attempts_when_it_wakes_and_reports_none() {
    let mut server = Server::start();
    let mut process = worker_process(&server);
    let session = server.session().await;
    let welcome = proto::v1::Welcome { lease_ms: 1_500, ..crate::server::welcome() };
    session.say(Theirs::Welcome(welcome)).await;
    let mut session = session;
    session.offer(1, 1, script("echo $$; exec sleep 2")).await;
    let pids = pids(&session.output_with("\n").await);
    let pid = Pid::from_raw(i32::try_from(process.id()).unwrap()).unwrap();
    kill_process(pid, Signal::STOP).unwrap();
    // The command ends meanwhile, and the lease runs out.
    until("the command is done", || !is_alive(pids[0])).await;
    kill_process(pid, Signal::CONT).unwrap();
    while let Some(message) = session.next_or_end().await {
        assert!(!matches!(message, Ours::Complete(_)), "{message:?}");
    }
    assert_eq!(server.session().await.hello.attempts, []);
    process.kill().unwrap();
    process.wait().unwrap();
}
