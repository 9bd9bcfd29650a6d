use std::fmt::{Debug, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::oneshot;
use tracing::field::{Field, Visit};
use tracing::{Event, Metadata, Subscriber, span};

use super::*;

/// Longer than any test runs. Time is paused.
const LONG: Duration = Duration::from_hours(1);

/// The fields of each event, in a line.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<String>>);

struct Line<'a>(&'a mut String);

impl Visit for Line<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, "{field}={value:?} ").unwrap();
    }
}

impl Subscriber for Log {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut Line(&mut self.0.lock().unwrap()));
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

/// A flag that is set when its task is dropped.
struct Dropped(Arc<AtomicBool>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// A task with a bug.
#[expect(clippy::unused_async, reason = "a task")]
async fn news() {
    panic!("no {}", "news");
}

#[tokio::test]
async fn a_task_that_ends_before_shutdown_is_logged_and_stops_the_server() {
    let log = Log::default();
    let _logged = tracing::subscriber::set_default(log.clone());
    let mut tasks = Tasks::default();
    tasks.spawn("stays", std::future::pending::<()>());
    tasks.spawn("tokens", async {});
    let error = tasks.failed().await;
    assert_eq!(
        error.to_string(),
        "could not keep running: the task `tokens` ended before shutdown"
    );
    let logged = log.0.lock().unwrap().clone();
    assert!(logged.contains("message=task ended task=\"tokens\""), "{logged}");
}

#[tokio::test]
async fn a_panic_is_logged_and_stops_the_server_with_its_message() {
    let log = Log::default();
    let _logged = tracing::subscriber::set_default(log.clone());
    let mut tasks = Tasks::default();
    tasks.spawn("stays", std::future::pending::<()>());
    tasks.spawn("news", news());
    let error = tasks.failed().await.to_string();
    assert_eq!(error, "could not keep running: the task `news` panicked: no news");
    let logged = log.0.lock().unwrap().clone();
    assert!(logged.contains("task=\"news\"") && logged.contains(&error), "{logged}");
}

#[tokio::test(start_paused = true)]
async fn during_shutdown_a_task_may_end_and_a_late_task_is_aborted() {
    let mut tasks = Tasks::default();
    let (stop, stopped) = oneshot::channel::<()>();
    tasks.spawn("prompt", async { drop(stopped.await) });
    let is_dropped = Arc::new(AtomicBool::new(false));
    let dropped = Dropped(Arc::clone(&is_dropped));
    tasks.spawn("late", async {
        let _dropped = dropped;
        std::future::pending::<()>().await;
    });
    drop(stop);
    assert!(tasks.stop("prompt", LONG).await.is_none());
    assert!(!is_dropped.load(Ordering::SeqCst), "only the named task is stopped");
    assert!(tasks.stop("late", LONG).await.is_none());
    tokio::task::yield_now().await;
    assert!(is_dropped.load(Ordering::SeqCst));
}

#[tokio::test(start_paused = true)]
async fn shutdown_tells_of_a_task_that_fails_meanwhile() {
    let mut tasks = Tasks::default();
    tasks.spawn("waits", tokio::time::sleep(LONG / 2));
    tasks.spawn("fails", news());
    let error = tasks.stop("waits", LONG).await.unwrap();
    assert!(matches!(&error, Error::TaskPanicked { name: "fails", .. }), "{error}");
    assert!(tasks.stop("waits", LONG).await.is_none(), "it ended");
}

#[tokio::test(start_paused = true)]
async fn shutdown_waits_for_short_tasks() {
    let (tracker, is_done) = (Tracker::default(), Arc::new(AtomicBool::new(false)));
    let done = Arc::clone(&is_done);
    drop(tracker.spawn("request", async move {
        tokio::time::sleep(LONG / 2).await;
        done.store(true, Ordering::SeqCst);
    }));
    drop(tracker.spawn("panics", async { panic!("by a test") }));
    drop(tracker.spawn_blocking(|| ()));
    tracker.stop(LONG).await;
    assert!(is_done.load(Ordering::SeqCst));
    assert_eq!(*tracker.n_running.borrow(), 0, "a task that panicked does not count");
    drop(tracker.spawn("hangs", std::future::pending::<()>()));
    tracker.stop(LONG).await;
    assert_eq!(*tracker.n_running.borrow(), 1);
}
