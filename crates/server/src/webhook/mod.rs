//! Ends of jobs are told to those who asked for it.
//!
//! What is to be told is in the store, written with the end itself: a scheduler that dies loses
//! none of it. It is told at least once; its id is the same each time. Nobody is told anything
//! unless an operator turned this on, because whoever may submit says whom to connect to.

mod address;
mod send;
mod sign;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::http::Uri;
use model::{JobId, Millis, Retry, Timestamp};
use proto::Invalid;
use serde_json::json;
use store::{Notice, Store};
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;
use tonic::Status;

pub(crate) use sign::tenant_key;

use crate::config::{Config, Webhooks};
use crate::meters::Tolls;
use crate::task::Tracker;
use address::is_public;
use send::Sender;

/// How often it is looked whether somebody is to be told.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Who could not be reached is left alone for so long, whatever else there is to tell.
const LEFT_ALONE: Millis = Millis::from_secs(30);
/// Hosts that are remembered as such.
const HOSTS_MAX: usize = 1_000;
/// Ends that are told, and not yet written down as told.
const DONE_MAX: usize = 1_024;

/// Whether a job may ask for this.
pub(crate) fn check(config: &Webhooks, url: &str) -> Result<(), Status> {
    if !config.enabled {
        return Err(Status::failed_precondition(
            "a job has a `webhook`, and nobody is told of ends here; hint: set `webhooks = true` \
             and `webhook_secret`",
        ));
    }
    let wrong = |problem: &str| {
        let problem = format!("is `{url}`, {problem}");
        Status::invalid_argument(Invalid::new("webhook", problem).to_string())
    };
    let place = Place::of(url).ok_or_else(|| {
        wrong(
            "not an `http` or `https` address without a user's name, such as `https://a.example/x`",
        )
    })?;
    let is_private = place.host.parse().is_ok_and(|address| !is_public(address));
    if is_private && !config.private {
        return Err(wrong("which is private; `webhook_private = true` would allow it"));
    }
    Ok(())
}

/// Where to tell.
struct Place {
    is_sealed: bool,
    /// Without brackets.
    host: String,
    port: u16,
    /// As it is written in a request: host, and port if it is not the usual one.
    authority: String,
    path: String,
}

impl Place {
    fn of(url: &str) -> Option<Self> {
        let uri: Uri = url.parse().ok()?;
        let is_sealed = match uri.scheme_str()? {
            "https" => true,
            "http" => false,
            _ => return None,
        };
        let authority = uri.authority()?;
        if authority.as_str().contains('@') || authority.host().is_empty() {
            return None;
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = authority.port_u16().unwrap_or(if is_sealed { 443 } else { 80 });
        let path = uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
        Some(Self { is_sealed, host, port, authority: authority.to_string(), path })
    }
}

/// Tells what is to be told, until it is stopped.
pub(crate) async fn run(
    config: Arc<Config>,
    store: Arc<dyn Store>,
    tolls: Tolls,
    (deliveries, stop): (Tracker, CancellationToken),
) {
    let webhooks = &config.webhooks;
    let at_once = Arc::new(Semaphore::new(webhooks.at_once_max));
    let sender = Arc::new(Sender::new(webhooks.private));
    let teller = Teller { config: Arc::clone(&config), store, tolls, sender, down: Arc::default() };
    let (done, mut finished) = mpsc::channel::<u64>(DONE_MAX);
    let mut ids = Vec::new();
    loop {
        tokio::select! {
            () = tokio::time::sleep(LOOK_EVERY) => {}
            n = finished.recv_many(&mut ids, DONE_MAX) => {
                if n > 0 && teller.store.told(std::mem::take(&mut ids)).await.is_err() {
                    // They are told once more; whoever listens knows them by their ids.
                    tracing::warn!("what was told could not be written down");
                }
            }
            () = stop.cancelled() => return,
        }
        let n_free = at_once.available_permits().min(DONE_MAX);
        if n_free == 0 {
            continue;
        }
        let due = teller.store.notices(retry(webhooks), n_free).await;
        for notice in due.unwrap_or_default() {
            let Ok(place) = Arc::clone(&at_once).acquire_owned().await else { return };
            let (teller, done, stop) = (teller.clone(), done.clone(), stop.clone());
            deliveries.spawn("webhook", async move {
                let id = notice.id;
                let told = Box::pin(teller.tell(notice));
                if stop.run_until_cancelled(told).await == Some(true) {
                    let _ = done.send(id).await;
                }
                drop(place);
            });
        }
    }
}

const fn retry(webhooks: &Webhooks) -> Retry {
    let Webhooks { tries_max: attempts_max, backoff, backoff_max, .. } = *webhooks;
    Retry { attempts_max, backoff, backoff_max }
}

#[derive(Clone)]
struct Teller {
    config: Arc<Config>,
    store: Arc<dyn Store>,
    tolls: Tolls,
    sender: Arc<Sender>,
    /// Hosts that could not be reached, and until when they are left alone.
    down: Arc<Mutex<HashMap<String, Timestamp>>>,
}

impl Teller {
    /// Tells once. `true`: there is nothing more to tell.
    async fn tell(&self, notice: Notice) -> bool {
        let tries_max = self.config.webhooks.tries_max;
        match self.try_to(&notice).await {
            Ok(()) => {
                self.tolls.told();
                true
            }
            Err(problem) if notice.tries >= tries_max => {
                self.tolls.given_up();
                let (job, tries) = (notice.job.to_string(), notice.tries);
                tracing::warn!(job, tries, problem, "nobody listens; an end is not told");
                true
            }
            Err(problem) => {
                self.tolls.untold();
                let (job, tries) = (notice.job.to_string(), notice.tries);
                tracing::info!(job, tries, problem, "an end could not be told yet");
                false
            }
        }
    }

    async fn try_to(&self, notice: &Notice) -> Result<(), String> {
        let place = Place::of(&notice.url).ok_or("the address is not understood")?;
        let now = self.store.now();
        if self.is_down(&place.host, now) {
            return Err("its host could not be reached a moment ago".to_owned());
        }
        let body = self.body(notice).await;
        let key = tenant_key(&self.config.webhooks, &notice.tenant).ok_or("there is no secret")?;
        let headers = sign::headers(&key, notice.id, now, &body);
        let timeout = Duration::from_millis(self.config.webhooks.timeout.0.unsigned_abs());
        let sent = tokio::time::timeout(timeout, self.sender.post(&place, headers, body)).await;
        let status = match sent {
            Ok(Ok(status)) => status,
            Ok(Err(problem)) => return Err(self.unreachable(place.host, now, problem)),
            Err(_) => {
                return Err(self.unreachable(place.host, now, "no answer in time".to_owned()));
            }
        };
        if status.is_success() { Ok(()) } else { Err(format!("the answer was {status}")) }
    }

    /// What is told: enough to know which job it is and what became of it.
    async fn body(&self, notice: &Notice) -> String {
        let id: JobId = notice.job.clone();
        let record = self.store.job(id).await.ok().flatten();
        let labels = record.map(|record| record.spec.labels.clone()).unwrap_or_default();
        let body = json!({
            "type": format!("job.{}", notice.state.name()),
            "timestamp_ms": notice.finished.0,
            "data": {
                "job": notice.job.as_number(),
                "tenant": notice.tenant.to_string(),
                "type": notice.kind.to_string(),
                "state": notice.state.name(),
                "cause": notice.cause.map(model::Cause::name),
                "finished_ms": notice.finished.0,
                "labels": labels,
            },
        });
        body.to_string()
    }

    fn is_down(&self, host: &str, now: Timestamp) -> bool {
        let down = self.down.lock().unwrap_or_else(PoisonError::into_inner);
        down.get(host).is_some_and(|until| now < *until)
    }

    fn unreachable(&self, host: String, now: Timestamp, problem: String) -> String {
        let mut down = self.down.lock().unwrap_or_else(PoisonError::into_inner);
        down.retain(|_, until| now < *until);
        if down.len() < HOSTS_MAX {
            down.insert(host, now + LEFT_ALONE);
        }
        problem
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::Secret;
    use tonic::Code;

    #[test]
    fn what_a_job_may_ask_for() {
        let secret = Some(Secret::new("x".repeat(32)));
        let on = Webhooks { enabled: true, secret, ..Webhooks::default() };
        let off = Webhooks::default();
        let refused = check(&off, "https://a.example").unwrap_err();
        assert_eq!(refused.code(), Code::FailedPrecondition);
        for url in ["https://a.example/x?y=1", "http://a.example:8080", "https://8.8.8.8/"] {
            assert!(check(&on, url).is_ok(), "{url}");
        }
        for url in [
            "a.example",
            "ftp://a.example",
            "https://",
            "https://u:p@a.example",
            "/x",
            "",
            "http://127.0.0.1/",
            "http://[::1]/",
            "http://10.1.2.3",
            "http://169.254.169.254/x",
            "http://[::ffff:10.0.0.1]/",
            "http://[fd00::1]/",
        ] {
            assert_eq!(check(&on, url).unwrap_err().code(), Code::InvalidArgument, "{url}");
        }
        let private = Webhooks { private: true, ..on };
        assert!(check(&private, "http://10.1.2.3").is_ok());
    }
}
