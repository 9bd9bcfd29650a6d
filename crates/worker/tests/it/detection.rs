//! A worker detects on request, and reports its proposals.

use proto::v1;
use proto::v1::server_message::Message as Theirs;
use proto::v1::worker_message::Message as Ours;
use worker::{Attempt, Descriptor, Detection, Done, Failure, Field, FieldKind, Proposal};

use crate::server::{Server, Session};
use crate::world::{Running, builder, spec};

fn descriptor() -> Descriptor {
    Descriptor::new("Sweeper", "sweeps")
        .admin(Field::new("size_min", FieldKind::Whole).default(10))
        .policy("interval", "1h")
}

/// Proposes as many jobs as the configuration says.
async fn look(detection: Detection) -> Result<(), Failure> {
    let n = detection.configuration().admin["size_min"].as_i64().unwrap_or(0);
    for at in 0..n {
        let proposal = Proposal::new(&format!("file {at}")).payload(vec![0; 10]).summary("a file");
        detection.propose(proposal).await;
    }
    detection.saw(n.unsigned_abs(), 1);
    if n == 7 { Err(Failure::transient("seven is too many")) } else { Ok(()) }
}

/// Waits until it should stop.
async fn wait(detection: Detection) -> Result<(), Failure> {
    detection.stopped().await;
    Ok(())
}

fn detect(run: &str, kind: &str) -> Theirs {
    Theirs::Detect(v1::Detect {
        run: run.to_owned(),
        r#type: kind.to_owned(),
        proposals_max: 1_000,
        timeout_ms: 600_000,
        last_success_ms: Some(17),
    })
}

fn configured(kind: &str, admin: &str) -> Theirs {
    let (r#type, admin, worker) = (kind.to_owned(), admin.to_owned(), "{}".to_owned());
    Theirs::Configured(v1::Configured { r#type, admin, worker })
}

/// The proposals of a run, by key, and its end.
async fn found(session: &mut Session, run: &str) -> (Vec<v1::Proposal>, v1::Detected) {
    let mut all = Vec::new();
    loop {
        match session.next().await {
            Ours::Proposals(page) if page.run == run => {
                assert!(page.proposals.len() <= 100, "pages are short");
                all.extend(page.proposals);
            }
            Ours::Detected(detected) if detected.run == run => return (all, detected),
            _ => {}
        }
    }
}

#[tokio::test]
async fn hello_lists_detected_types_and_descriptors_follow_on_request() {
    let mut server = Server::start();
    let worker = builder(&server).detect("sweep", 2, look).describe("sweep", descriptor());
    let _running = Running::start(worker);
    let mut session = server.welcomed().await;
    let kind = &session.hello.types[0];
    assert_eq!((kind.name.as_str(), kind.detect_max, kind.detects_only), ("sweep", 2, true));
    assert_eq!(kind.display_name, "Sweeper");
    session.say(Theirs::Describe(v1::Describe { r#type: "sweep".to_owned() })).await;
    let Ours::Described(described) = session.next().await else { panic!("it answers") };
    assert_eq!(Descriptor::parse(&described.json), Ok(descriptor()));
}

#[tokio::test]
async fn proposals_are_sent_in_pages_before_the_end() {
    let mut server = Server::start();
    let _running = Running::start(builder(&server).detect("sweep", 1, look));
    let mut session = server.welcomed().await;
    session
        .say_all(vec![configured("sweep", r#"{"size_min": 250}"#), detect("r/1", "sweep")])
        .await;
    let (all, detected) = found(&mut session, "r/1").await;
    assert_eq!((all.len(), detected.end()), (250, v1::DetectionEnd::Complete));
    assert_eq!((detected.seen, detected.skipped), (250, 1));
    let spec = all[249].spec.as_ref().unwrap();
    assert_eq!((spec.r#type.as_str(), spec.dedupe_key.as_str()), ("sweep", "file 249"));
    session.say_all(vec![configured("sweep", r#"{"size_min": 7}"#), detect("r/2", "sweep")]).await;
    let (all, detected) = found(&mut session, "r/2").await;
    assert_eq!((all.len(), detected.end()), (7, v1::DetectionEnd::Failed));
    assert_eq!(detected.error, "seven is too many");
}

#[tokio::test]
async fn worker_refuses_detections_without_room_and_stops_on_request() {
    let mut server = Server::start();
    let _running = Running::start(builder(&server).detect("sweep", 1, wait));
    let mut session = server.welcomed().await;
    session.say_all(vec![detect("r/1", "sweep"), detect("r/2", "sweep"), detect("r/3", "x")]).await;
    assert_eq!(found(&mut session, "r/2").await.1.end(), v1::DetectionEnd::AtCapacity);
    assert_eq!(found(&mut session, "r/3").await.1.end(), v1::DetectionEnd::Failed);
    session.heartbeat_with(|heartbeat| heartbeat.detections_used == 1).await;
    let stop = v1::StopDetection { run: "r/1".to_owned(), reason: String::new() };
    session.say(Theirs::StopDetection(stop)).await;
    assert_eq!(found(&mut session, "r/1").await.1.end(), v1::DetectionEnd::Stopped);
    session.heartbeat_with(|heartbeat| heartbeat.detections_used == 0).await;
}

#[tokio::test]
async fn a_detection_ends_with_its_connection() {
    let mut server = Server::start();
    let _running = Running::start(builder(&server).detect("sweep", 1, wait));
    let session = server.welcomed().await;
    session.say(detect("r/1", "sweep")).await;
    session.refuse(tonic::Status::unavailable("away")).await;
    drop(session);
    let mut session = server.welcomed().await;
    session.heartbeat_with(|heartbeat| heartbeat.detections_used == 0).await;
    session.say(detect("r/2", "sweep")).await;
    session.heartbeat_with(|heartbeat| heartbeat.detections_used == 1).await;
}

#[tokio::test]
async fn attempt_has_the_configuration_and_context_sent_before_it() {
    let handler = |attempt: Attempt| async move {
        let (config, context) = (attempt.configuration(), attempt.context());
        Ok(Done::with_result(format!("{} {} {}", config.admin, context.version, context.value)))
    };
    let mut server = Server::start();
    let _running = Running::start(builder(&server).type_("a", 0, handler));
    let mut session = server.welcomed().await;
    let context = v1::Context { version: 3, json: r#"{"n":1}"#.to_owned() };
    session.say_all(vec![configured("a", r#"{"x":2}"#), Theirs::Context(context)]).await;
    session.offer(1, 1, spec("a")).await;
    let complete = session.complete().await;
    assert_eq!(complete.result.unwrap(), br#"{"x":2} 3 {"n":1}"#);
}
