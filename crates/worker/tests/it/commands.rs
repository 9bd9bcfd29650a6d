//! The input of a command, and its effects.

use std::os::unix::fs::PermissionsExt as _;

use proto::v1;
use proto::v1::server_message::Message as Theirs;
use serde_json::json;
use worker::{Command, CommandSettings, Commands};

use crate::server::Server;
use crate::world::{
    Running, command_builder, command_spec, command_world, script, settings, until,
};

fn text(chunks: &[v1::LogChunk], stream: v1::Stream) -> String {
    let chunks = chunks.iter().filter(|chunk| chunk.stream() == stream);
    let bytes: Vec<u8> = chunks.flat_map(|chunk| chunk.bytes.clone()).collect();
    String::from_utf8(bytes).unwrap()
}

#[tokio::test]
async fn output_of_both_streams_is_passed_on_and_counted_together() {
    let (_server, _running, mut session) = command_world().await;
    session.offer(1, 1, script("echo out; echo err >&2; echo more")).await;
    let (complete, chunks) = session.run_to_end().await;
    assert_eq!((complete.ending(), complete.exit_code), (v1::Ending::Succeeded, Some(0)));
    assert_eq!(complete.result, None);
    assert_eq!(text(&chunks, v1::Stream::Out), "out\nmore\n");
    assert_eq!(text(&chunks, v1::Stream::Err), "err\n");
    let mut offset = 0;
    for chunk in &chunks {
        assert_eq!(chunk.offset, offset);
        offset += u64::try_from(chunk.bytes.len()).unwrap();
    }
}

#[tokio::test]
async fn much_output_arrives_whole() {
    let (_server, _running, mut session) = command_world().await;
    session.offer(1, 1, script("head -c 900000 /dev/zero | tr '\\0' x")).await;
    let (_, chunks) = session.run_to_end().await;
    assert_eq!(text(&chunks, v1::Stream::Out).len(), 900_000);
    assert!(chunks.iter().all(|chunk| chunk.bytes.len() <= 64 << 10));
}

#[tokio::test]
async fn a_command_sees_its_own_variables_and_few_of_the_workers() {
    let (_server, _running, mut session) = command_world().await;
    let env = json!({"argv": ["env"], "env": {"MINE": "1", "MAITRE_JOB": "fake"}});
    let spec =
        v1::Spec { tenant: "acme".to_owned(), array_index: Some(5), ..command_spec("exec", &env) };
    let (spec, resource) = (Some(Box::new(spec)), "repo".to_owned());
    session.say(Theirs::Offer(v1::Offer { job: 7, attempt: 3, spec, failures: 2, resource })).await;
    let (_, chunks) = session.run_to_end().await;
    let output = text(&chunks, v1::Stream::Out);
    let lines: Vec<&str> = output.lines().collect();
    for line in [
        "MINE=1",
        "MAITRE_JOB=7",
        "MAITRE_ATTEMPT=3",
        "MAITRE_TENANT=acme",
        "MAITRE_RESOURCE=repo",
        "MAITRE_ARRAY_INDEX=5",
    ] {
        assert!(lines.contains(&line), "{line} is not in {output}");
    }
    let known = ["PATH", "HOME", "LANG", "TZ", "TMPDIR", "USER", "MINE"];
    let names = lines.iter().filter_map(|line| line.split('=').next());
    let odd: Vec<&str> =
        names.filter(|name| !name.starts_with("MAITRE_") && !known.contains(name)).collect();
    assert!(odd.is_empty(), "cargo's variables are not passed on: {odd:?}");
}

#[tokio::test]
async fn command_has_a_private_directory_that_is_removed() {
    let (_server, _running, mut session) = command_world().await;
    session.offer(1, 1, script("pwd; stat -c %a . ..; touch left behind; ls | wc -l")).await;
    let (_, chunks) = session.run_to_end().await;
    let output = text(&chunks, v1::Stream::Out);
    let lines: Vec<&str> = output.lines().collect();
    assert_eq!(lines[1..], ["700", "700", "2"]);
    let dir = std::path::PathBuf::from(lines[0]);
    assert!(!dir.exists() && !dir.parent().unwrap().exists());
}

#[tokio::test]
async fn command_runs_in_the_jobs_directory_with_its_stdin() {
    let (_server, _running, mut session) = command_world().await;
    let payload = json!({"argv": ["sh", "-c", "pwd; cat"], "dir": "/", "stdin": "in\u{e4}"});
    session.offer(1, 1, command_spec("exec", &payload)).await;
    let (_, chunks) = session.run_to_end().await;
    assert_eq!(text(&chunks, v1::Stream::Out), "/\nin\u{e4}");
    let payload = json!({"argv": ["true"], "stdin": "x".repeat(200_000)});
    session.offer(2, 1, command_spec("exec", &payload)).await;
    assert_eq!(session.complete().await.ending(), v1::Ending::Succeeded);
    session.offer(3, 1, command_spec("exec", &json!({"argv": ["true"], "dir": "/no/such"}))).await;
    assert_eq!(session.complete().await.error, "there is no directory `/no/such`");
}

#[tokio::test]
async fn a_result_is_what_the_command_writes_to_its_file() {
    let (_server, _running, mut session) = command_world().await;
    session.offer(1, 1, script("printf '\\001ok' > $MAITRE_RESULT")).await;
    assert_eq!(session.complete().await.result.unwrap(), b"\x01ok");
    session.offer(2, 1, script("head -c 300000 /dev/zero > $MAITRE_RESULT")).await;
    let complete = session.complete().await;
    assert_eq!(complete.ending(), v1::Ending::Permanent);
    assert_eq!(complete.error, "the result has 262145 bytes of at most 262144");
    session.offer(3, 1, script("mkfifo $MAITRE_RESULT")).await;
    let complete = session.complete().await;
    assert_eq!(complete.error, "could not read its result: it is no file");
    session.offer(4, 1, script("echo not mine > $MAITRE_RESULT; exit 1")).await;
    assert_eq!(session.complete().await.result, None);
}

#[tokio::test]
async fn exit_codes_say_whether_to_try_again() {
    let (_server, _running, mut session) = command_world().await;
    let classes = [
        (1, v1::Ending::Transient),
        (75, v1::Ending::Transient),
        (65, v1::Ending::Permanent),
        (127, v1::Ending::Permanent),
    ];
    for (job, (code, ending)) in (1..).zip(classes) {
        session.offer(job, 1, script(&format!("echo lost >&2; exit {code}"))).await;
        let complete = session.complete().await;
        assert_eq!((complete.ending(), complete.exit_code), (ending, Some(code)));
        assert_eq!(complete.error, format!("exit code {code}\nlost"));
    }
    session.offer(9, 1, script("kill -SEGV $$")).await;
    let complete = session.complete().await;
    assert_eq!((complete.ending(), complete.exit_code), (v1::Ending::Transient, Some(139)));
    session.offer(10, 1, command_spec("odd", &json!({}))).await;
    assert_eq!(session.complete().await.ending(), v1::Ending::Permanent);
}

#[tokio::test]
async fn missing_program_is_a_permanent_failure() {
    let (_server, _running, mut session) = command_world().await;
    let payload = json!({"argv": ["no-such-program"], "env": {"PATH": "/usr/bin:/bin"}});
    session.offer(1, 1, command_spec("exec", &payload)).await;
    let complete = session.complete().await;
    assert_eq!((complete.ending(), complete.exit_code), (v1::Ending::Permanent, Some(127)));
    assert!(complete.error.contains("could not run `no-such-program`"), "{}", complete.error);
    session.offer(2, 1, command_spec("exec", &json!({"argv": ["/etc"]}))).await;
    assert_eq!(session.complete().await.exit_code, Some(126));
}

#[tokio::test]
async fn error_message_is_the_end_of_long_stderr() {
    let (_server, _running, mut session) = command_world().await;
    session.offer(1, 1, script("seq 100000 >&2; exit 1")).await;
    let complete = session.complete().await;
    assert!(complete.error.starts_with("exit code 1\n") && complete.error.ends_with("\n100000"));
    assert!((7_000..=8_192).contains(&complete.error.len()), "{}", complete.error.len());
}

#[tokio::test]
async fn a_named_command_takes_arguments_and_no_shell_reads_them() {
    let (_server, _running, mut session) = command_world().await;
    let payload = json!({"args": ["$HOME; rm -rf *", "b c"]});
    session.offer(1, 1, command_spec("show", &payload)).await;
    let (_, chunks) = session.run_to_end().await;
    assert_eq!(text(&chunks, v1::Stream::Out), "[$HOME; rm -rf *][b c]");
}

#[tokio::test]
async fn wrong_payload_is_a_permanent_failure_that_names_the_field() {
    let (_server, _running, mut session) = command_world().await;
    let wrong = [
        ("exec", json!({"argv": ["a", 1]}), "`payload.argv[1]` is wrong: "),
        ("exec", json!({"argv": []}), "`payload.argv` has no program in it"),
        ("exec", json!({"argv": ["a"], "cwd": "/"}), "unknown field `cwd`"),
        ("show", json!({"argv": ["a"]}), "unknown field `argv`"),
        ("show", json!({"args": "a"}), "`payload.args` is wrong: "),
    ];
    for (job, (kind, payload, expected)) in (1..).zip(wrong) {
        session.offer(job, 1, command_spec(kind, &payload)).await;
        let complete = session.complete().await;
        assert_eq!(complete.ending(), v1::Ending::Permanent);
        assert!(complete.error.contains(expected), "{}", complete.error);
    }
}

#[tokio::test]
async fn usage_of_a_command_includes_its_children() {
    let (_server, _running, mut session) = command_world().await;
    // A child that computes for a while, and one that holds about 40 MB long enough for a sample.
    let busy = "sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done'";
    let large = "head -c 40000000 /dev/zero | (sleep 1; tail -c 1 | wc -c)";
    session.offer(1, 1, script(&format!("{busy}; {large}"))).await;
    let complete = session.complete().await;
    let measured = complete.measured.unwrap();
    assert!(measured.cpu_ms.unwrap() >= 50, "{measured:?}");
    assert!(measured.ram_peak_mb.unwrap() >= 1, "{measured:?}");
    assert!(measured.disk_bytes.is_some() && !measured.out_of_memory, "{measured:?}");
}

#[tokio::test]
async fn limits_hold_for_commands() {
    let limits = worker::child::Limits {
        file_bytes: Some(10_000),
        open_files: Some(32),
        ..Default::default()
    };
    let commands = Commands::start(CommandSettings { limits, ..settings() }).unwrap();
    let mut server = Server::start();
    let _running = Running::start(command_builder(&server, &commands));
    let mut session = server.welcomed().await;
    session.offer(1, 1, script("ulimit -n; head -c 20000 /dev/zero > file")).await;
    let (complete, chunks) = session.run_to_end().await;
    assert_eq!(text(&chunks, v1::Stream::Out), "32\n");
    assert_eq!(complete.ending(), v1::Ending::Transient);
}

#[tokio::test]
async fn commands_also_run_without_a_child_in_between() {
    let commands = Commands::start(CommandSettings { child: None, ..settings() }).unwrap();
    let mut server = Server::start();
    let _running = Running::start(command_builder(&server, &commands));
    let mut session = server.welcomed().await;
    session.offer(1, 1, script("echo direct")).await;
    let (complete, chunks) = session.run_to_end().await;
    assert_eq!(text(&chunks, v1::Stream::Out), "direct\n");
    assert_eq!(complete.ending(), v1::Ending::Succeeded);
    session.offer(2, 1, command_spec("exec", &json!({"argv": ["no-such-program"]}))).await;
    assert_eq!(session.complete().await.ending(), v1::Ending::Permanent);
}

#[tokio::test]
async fn the_directory_of_all_attempts_is_private_and_goes_with_the_worker() {
    let temp = std::env::temp_dir().join(format!("maitre-test-{}", std::process::id()));
    std::fs::create_dir_all(&temp).unwrap();
    let entries = || std::fs::read_dir(&temp).unwrap().map(|entry| entry.unwrap());
    let commands =
        Commands::start(CommandSettings { temp_dir: temp.clone(), ..settings() }).unwrap();
    let base = entries().next().unwrap();
    assert_eq!(base.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    let handler = commands.named(Command { argv: vec!["true".to_owned()], ..Command::default() });
    drop(commands);
    assert_eq!(entries().count(), 1, "a handler still needs it");
    drop(handler);
    until("it is removed", || entries().count() == 0).await;
    std::fs::remove_dir(&temp).unwrap();
}
