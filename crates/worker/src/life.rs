//! The life of an attempt, from its offer to its completion.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt as _;
use model::maxima::{RESULT_BYTES_MAX, TEXT_BYTES_MAX};
use model::{Ending, Retry, Spec};
use proto::v1;
use proto::v1::worker_message::Message;
use tokio::time::Instant;

use crate::attempt::{Given, Key, Ticket, cut};
use crate::handler::{DROPPED, panicked};
use crate::lock::lock;
use crate::shared::Shared;
use crate::stop::StopReason;
use crate::{Attempt, Done, Failure, FailureKind, Handler, Outcome};

/// Accepts or refuses an offer. `false` if the server does not read answers.
pub(crate) fn offered(shared: &Arc<Shared>, offer: v1::Offer) -> bool {
    let key = Key { job: offer.job, attempt: offer.attempt };
    // In this order: an attempt that ends meanwhile is in the outbox before it leaves the roster.
    // So an attempt that is in neither was never here.
    if let Some(ticket) = shared.roster.find(key) {
        // A repeated offer. If the attempt is stopped as stale, the worker does not have it any
        // more.
        return match ticket.stops.reason() {
            Some(reason) if reason.is_silent() => refuse(shared, key, "it is being stopped"),
            _ => accept(shared, key),
        };
    }
    if shared.outbox.repeat(key) {
        return true;
    }
    match start(shared, key, offer) {
        Ok(()) => accept(shared, key),
        Err(reason) => refuse(shared, key, &reason),
    }
}

fn accept(shared: &Shared, key: Key) -> bool {
    shared.outbox.answer(Message::Accept(v1::Accept { attempt: Some(key.into()) }))
}

fn refuse(shared: &Shared, key: Key, reason: &str) -> bool {
    tracing::info!(job = key.job, attempt = key.attempt, reason, "attempt refused");
    let (attempt, reason) = (Some(key.into()), reason.to_owned());
    shared.outbox.answer(Message::Refuse(v1::Refuse { attempt, reason }))
}

fn start(shared: &Arc<Shared>, key: Key, offer: v1::Offer) -> Result<(), String> {
    let wire = *offer.spec.unwrap_or_default();
    let Some(kind) = shared.settings.types.get(&wire.r#type) else {
        return Err(format!("unknown type `{}`", wire.r#type));
    };
    if shared.lease.is_over(Instant::now()) || !shared.outbox.has_completion_room() {
        return Err("at capacity".to_owned());
    }
    let array_index = wire.array_index;
    let spec = match wire.checked(Retry::DEFAULT) {
        Ok(spec) => Spec { array_index, ..spec },
        Err(invalid) => {
            // A different worker could not read it either.
            let failure = Failure::permanent(format!("this worker does not read it: {invalid}"));
            shared.outbox.complete(key, completion(key, None, Err(failure)));
            return Ok(());
        }
    };
    let room = shared.roster.admit(&spec.kind, spec.slots, kind.execute_max)?;
    let limits = shared.limits();
    let kind_name = spec.kind.to_string();
    let given = Given {
        key,
        spec,
        failures: offer.failures,
        resource: (!offer.resource.is_empty()).then_some(offer.resource),
        configuration: shared.known.configuration(&kind_name),
        context: shared.known.context(),
        result_bytes_max: limits.result_bytes_max,
        log_bytes_max: limits.log_bytes_max,
    };
    let ticket = Ticket::new(given, Arc::clone(&shared.outbox), Arc::clone(&shared.speeds));
    let ticket = Arc::new(ticket);
    shared.roster.insert(Arc::clone(&ticket));
    tracing::debug!(job = key.job, attempt = key.attempt, "attempt started");
    let attempt = Attempt::new(Arc::clone(&ticket), room);
    let reporter = Reporter { shared: Arc::clone(shared), ticket: Arc::clone(&ticket) };
    let task = shared.handlers.spawn(run(reporter, attempt, Arc::clone(&kind.handler)));
    ticket.runs_as(task.abort_handle());
    if let Some((at, _)) = ticket.due() {
        shared.roster.look_at(key, at);
    }
    Ok(())
}

/// Reports the end of an attempt, even if its task is dropped.
struct Reporter {
    shared: Arc<Shared>,
    ticket: Arc<Ticket>,
}

impl Drop for Reporter {
    fn drop(&mut self) {
        finish(&self.shared, &self.ticket, Err(Failure::transient(DROPPED)));
    }
}

async fn run(reporter: Reporter, attempt: Attempt, handler: Arc<dyn Handler>) {
    let running = async move {
        // A handler may drop its attempt early. The slots are in use until it returns.
        let _taken = attempt.clone();
        handler.run(attempt).await
    };
    let outcome = AssertUnwindSafe(running).catch_unwind().await;
    let outcome = outcome.unwrap_or_else(|panic| Err(Failure::transient(panicked(&*panic))));
    finish(&reporter.shared, &reporter.ticket, outcome);
}

/// Reports the end of an attempt once, unless its lease is over.
pub(crate) fn finish(shared: &Shared, ticket: &Ticket, outcome: Outcome) {
    if !ticket.end() {
        return;
    }
    if shared.lease.is_over(Instant::now()) {
        // After a suspension of the process, the timer may be late. The worker must not report
        // then.
        shared.fence();
    }
    let used = match &outcome {
        Ok(done) => done.measured,
        Err(failure) => failure.measured,
    };
    if let Some(bytes) = used.disk_bytes {
        shared.speeds.disk(bytes, ticket.started.elapsed());
    }
    let reason = ticket.stops.reason();
    if reason.is_some_and(StopReason::is_silent) {
        shared.outbox.forget(ticket.key);
    } else {
        let outcome = outcome.and_then(|done| checked(done, ticket.result_bytes_max));
        let stopped = reason.map(|reason| (reason, ticket.stops.text()));
        let mut complete = completion(ticket.key, stopped, outcome);
        let fetched = *lock(&ticket.fetched);
        complete.fetched_paths = fetched.map(|(paths, _)| paths);
        complete.fetched_bytes = fetched.map(|(_, bytes)| bytes);
        shared.outbox.complete(ticket.key, complete);
    }
    shared.roster.remove(ticket.key);
}

/// A result over the limit is a permanent failure.
fn checked(done: Done, result_bytes_max: usize) -> Outcome {
    let bytes_max = result_bytes_max.min(RESULT_BYTES_MAX);
    match done.result.as_ref().map(Vec::len) {
        Some(bytes) if bytes > bytes_max => Err(Failure {
            exit_code: done.exit_code,
            measured: done.measured,
            cost: done.cost,
            ..Failure::permanent(format!("the result has {bytes} bytes of at most {bytes_max}"))
        }),
        _ => Ok(done),
    }
}

/// A success counts even if the attempt should stop. Otherwise the stop reason sets the ending.
pub(crate) fn completion(
    key: Key,
    stopped: Option<(StopReason, String)>,
    outcome: Outcome,
) -> v1::Complete {
    let attempt = Some(key.into());
    match outcome {
        Ok(done) => v1::Complete {
            attempt,
            ending: v1::Ending::from(Ending::Succeeded).into(),
            result: done.result,
            exit_code: done.exit_code,
            measured: Some(done.measured.into()),
            cost: done.cost,
            ..v1::Complete::default()
        },
        Err(failure) => {
            let (ending, error) = match stopped {
                None => (failed(failure.kind), failure.text),
                Some((reason, text)) => (ending(reason), told(reason, text, &failure.text)),
            };
            v1::Complete {
                attempt,
                ending: v1::Ending::from(ending).into(),
                error: clean(&error),
                exit_code: failure.exit_code,
                measured: Some(failure.measured.into()),
                cost: failure.cost,
                ..v1::Complete::default()
            }
        }
    }
}

/// The completion of an attempt that the server expects here, and that the worker does not have.
pub(crate) fn lost(key: Key, error: &str) -> v1::Complete {
    v1::Complete {
        attempt: Some(key.into()),
        ending: v1::Ending::from(Ending::Lost).into(),
        error: error.to_owned(),
        ..v1::Complete::default()
    }
}

const fn failed(kind: FailureKind) -> Ending {
    match kind {
        FailureKind::Transient => Ending::Transient,
        FailureKind::Permanent => Ending::Permanent,
        FailureKind::Timeout => Ending::Timeout,
    }
}

/// A worker that leaves gives its jobs back, which uses up no try.
const fn ending(reason: StopReason) -> Ending {
    match reason {
        StopReason::Cancelled => Ending::Cancelled,
        StopReason::Preempted => Ending::Preempted,
        StopReason::Timeout => Ending::Timeout,
        StopReason::Leaving => Ending::Refused,
        StopReason::Stale | StopReason::LeaseOver => Ending::Lost,
    }
}

/// The last output of an attempt that timed out may show where its time went.
fn told(reason: StopReason, text: String, said: &str) -> String {
    if reason == StopReason::Timeout && !said.is_empty() { format!("{text}\n{said}") } else { text }
}

/// Text without control characters, except line breaks and tabs.
fn clean(text: &str) -> String {
    let is_odd = |c: char| c.is_control() && c != '\n' && c != '\t';
    cut(&text.replace(is_odd, " "), TEXT_BYTES_MAX).to_owned()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use model::{Name, TenantId};
    use tokio::time::sleep;

    use super::*;
    use crate::watch::{PATIENCE, watch};

    const SECOND: Duration = Duration::from_secs(1);
    const KEY: Key = Key { job: 7, attempt: 2 };

    fn ending_of(stopped: Option<StopReason>, outcome: Outcome) -> v1::Ending {
        let stopped = stopped.map(|reason| (reason, "why".to_owned()));
        completion(KEY, stopped, outcome).ending()
    }

    #[test]
    fn success_counts_after_a_stop() {
        for reason in [StopReason::Cancelled, StopReason::Preempted, StopReason::Leaving] {
            assert_eq!(ending_of(Some(reason), Ok(Done::new())), v1::Ending::Succeeded);
        }
    }

    #[test]
    fn stop_reason_sets_the_ending_of_an_unfinished_attempt() {
        let failed = || Err(Failure::permanent("killed"));
        assert_eq!(ending_of(None, failed()), v1::Ending::Permanent);
        assert_eq!(ending_of(Some(StopReason::Cancelled), failed()), v1::Ending::Cancelled);
        assert_eq!(ending_of(Some(StopReason::Preempted), failed()), v1::Ending::Preempted);
        assert_eq!(ending_of(Some(StopReason::Timeout), failed()), v1::Ending::Timeout);
        assert_eq!(ending_of(Some(StopReason::Leaving), failed()), v1::Ending::Refused);
    }

    /// A worker with one attempt, and a lease of a second that began `lease_age` ago.
    fn with_attempt(lease_age: Duration) -> (Shared, Arc<Ticket>) {
        let handler = |_: Attempt| async { Ok(Done::new()) };
        let worker = crate::Worker::builder("127.0.0.1:1").name("w").type_("a", 0, handler);
        let shared = worker.build().unwrap().into_shared();
        shared.lease.welcome(Instant::now().checked_sub(lease_age).unwrap(), SECOND);
        let given = Given {
            key: KEY,
            spec: Spec::new(TenantId::new("t"), Name::new("a")),
            failures: 0,
            resource: None,
            configuration: Arc::default(),
            context: Arc::default(),
            result_bytes_max: 10,
            log_bytes_max: 10,
        };
        let ticket = Ticket::new(given, Arc::clone(&shared.outbox), Arc::clone(&shared.speeds));
        let ticket = Arc::new(ticket);
        shared.roster.insert(Arc::clone(&ticket));
        (shared, ticket)
    }

    #[tokio::test]
    async fn end_is_reported_within_the_lease() {
        let (shared, ticket) = with_attempt(Duration::ZERO);
        finish(&shared, &ticket, Ok(Done::new()));
        assert_eq!(shared.outbox.unacknowledged(), [KEY]);
    }

    #[tokio::test]
    async fn late_timer_reports_nothing_after_the_lease() {
        let (shared, ticket) = with_attempt(SECOND);
        finish(&shared, &ticket, Ok(Done::new()));
        assert_eq!(shared.outbox.unacknowledged(), []);
        assert_eq!(ticket.stops.reason(), Some(StopReason::LeaseOver));
    }

    #[tokio::test(start_paused = true)]
    async fn attempt_that_ignores_its_stop_is_killed_and_dropped() {
        let (shared, ticket) = with_attempt(Duration::ZERO);
        shared.lease.welcome(Instant::now(), 3_600 * SECOND);
        let shared = Arc::new(shared);
        tokio::spawn(watch(Arc::clone(&shared)));
        shared.roster.stop(&ticket, StopReason::Cancelled, String::new(), 2 * SECOND);
        sleep(SECOND).await;
        assert!(ticket.stops.asked.is_cancelled() && !ticket.stops.killed.is_cancelled());
        sleep(2 * SECOND).await;
        assert!(ticket.stops.killed.is_cancelled());
        assert_eq!(shared.outbox.unacknowledged(), []);
        sleep(PATIENCE).await;
        assert_eq!(shared.outbox.unacknowledged(), [KEY]);
        assert!(shared.roster.find(KEY).is_none());
        assert_eq!(shared.roster.next_alarm(), None);
    }

    #[tokio::test]
    async fn end_is_reported_once() {
        let (shared, ticket) = with_attempt(Duration::ZERO);
        finish(&shared, &ticket, Ok(Done::new()));
        shared.outbox.forget(KEY);
        finish(&shared, &ticket, Err(Failure::transient("too late")));
        assert_eq!(shared.outbox.unacknowledged(), []);
    }

    #[tokio::test]
    async fn ended_attempt_is_not_started_by_a_repeated_offer() {
        let (shared, ticket) = with_attempt(Duration::ZERO);
        let shared = Arc::new(shared);
        shared.outbox.complete(KEY, completion(KEY, None, Ok(Done::new())));
        let spec = Some(Box::new((&Spec::new(TenantId::new("t"), Name::new("a"))).into()));
        let offer = v1::Offer { job: KEY.job, attempt: KEY.attempt, spec, ..Default::default() };
        assert!(offered(&shared, offer.clone()));
        let here = shared.roster.find(KEY).unwrap();
        assert!(Arc::ptr_eq(&here, &ticket));
        shared.roster.remove(KEY);
        assert!(offered(&shared, offer));
        assert!(shared.roster.find(KEY).is_none());
    }

    #[test]
    fn errors_are_clean_and_short() {
        let long = format!("a\u{0}b\nc\u{1b}{}", "x".repeat(TEXT_BYTES_MAX));
        let complete = completion(KEY, None, Err(Failure::transient(long)));
        assert!(complete.error.starts_with("a b\nc xxx"));
        assert_eq!(complete.error.len(), TEXT_BYTES_MAX);
    }

    #[test]
    fn a_result_that_is_too_long_is_a_failure_for_good() {
        assert!(checked(Done::with_result("1234"), 4).is_ok());
        let failure = checked(Done::with_result("12345"), 4).unwrap_err();
        assert_eq!(failure.kind, FailureKind::Permanent);
        assert_eq!(failure.text, "the result has 5 bytes of at most 4");
    }
}
