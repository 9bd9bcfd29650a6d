//! Answers that take a while: changes as they happen, the end of jobs, output as it comes.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::time::Duration;

use model::{JobId, Record, State};
use proto::v1;
use store::{Filter, LogChunk, LogPage, Stream as LogStream};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::Instant;
use tokio_stream::Stream;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Status};

use super::guard::Caller;
use super::jobs::without_bytes;
use super::named::Named;
use super::{Door, answer, stopping};
use crate::watch::{Change, Tidings};

/// How long to wait for jobs, if nobody says how long, and at most.
const WAIT_DEFAULT: Duration = Duration::from_mins(1);
const WAIT_MAX: Duration = Duration::from_hours(1);
/// Output, and what another scheduler does, is looked for even if nobody says that there is some:
/// soon at first, for most jobs are short, and then half as often each time, but this often.
const LOOK_EVERY: Duration = Duration::from_millis(500);
const LOOK_FIRST: Duration = Duration::from_millis(20);
/// Pieces of output in one answer.
const PIECES_MAX: usize = 64;
/// Answers that a client may be behind before the server waits for it.
const ANSWERS_MAX: usize = 64;

/// How long until the next look.
pub(super) struct Looks(Duration);

impl Default for Looks {
    fn default() -> Self {
        Self(LOOK_FIRST)
    }
}

impl Looks {
    pub(super) fn next(&mut self) -> Duration {
        let later = (self.0 * 2).min(LOOK_EVERY);
        std::mem::replace(&mut self.0, later)
    }
}

type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

impl Door {
    /// Answers once all jobs are final, or the time is up.
    pub(crate) async fn wait_for(
        &self,
        caller: &Caller,
        ids: Vec<JobId>,
        timeout_ms: u64,
    ) -> Result<v1::WaitResponse, Status> {
        let timeout = Duration::from_millis(timeout_ms).min(WAIT_MAX);
        let timeout = if timeout.is_zero() { WAIT_DEFAULT } else { timeout };
        let (deadline, mut looks) = (Instant::now() + timeout, Looks::default());
        // Listen first, then look: a job that ends in between is heard.
        let mut listener = self.hub.listen();
        let mut records = Vec::with_capacity(ids.len());
        for id in &ids {
            records.push(self.record(caller, id.as_number().unwrap_or_default()).await?);
        }
        loop {
            let open: BTreeSet<JobId> = records
                .iter()
                .filter(|record: &&Record| !record.state.is_terminal())
                .map(|record| record.id.clone())
                .collect();
            if open.is_empty() {
                break;
            }
            let heard = tokio::time::timeout_at(
                self.until(deadline, &mut looks),
                ended(&mut listener, &open),
            );
            let heard = self.unless_stopped(heard).await?;
            let ended = match heard {
                Ok(ended) => ended,
                Err(_) if Instant::now() >= deadline => break,
                Err(_) => open,
            };
            for record in records.iter_mut().filter(|record| ended.contains(&record.id)) {
                let id = record.id.as_number().unwrap_or_default();
                match self.record(caller, id).await {
                    Ok(now) => *record = now,
                    // It was there, and only what succeeded is not kept.
                    Err(status) if status.code() == Code::NotFound => {
                        record.state = State::Succeeded;
                    }
                    Err(status) => return Err(status),
                }
            }
        }
        let all_final = records.iter().all(|record| record.state.is_terminal());
        // Whoever wants results asks for them one by one: a thousand do not fit into one answer.
        let jobs = records.into_iter().map(without_bytes).collect();
        Ok(v1::WaitResponse { jobs, all_final })
    }

    /// What other schedulers do is not heard here: where several share a store, it is looked at
    /// now and then.
    fn until(&self, deadline: Instant, looks: &mut Looks) -> Instant {
        match self.store.shared() {
            Some(_) => deadline.min(Instant::now() + looks.next()),
            None => deadline,
        }
    }

    /// What comes of waiting for something, or that the scheduler stops: there is no news from then
    /// on, and nobody who waits for it should keep the scheduler from stopping.
    async fn unless_stopped<T>(&self, waiting: impl Future<Output = T>) -> Result<T, Status> {
        self.stop.run_until_cancelled(waiting).await.ok_or_else(stopping)
    }

    /// Every change of jobs that pass the filter, as it happens. Jobs that are named are looked at
    /// now and then, if another scheduler may have them; of the others, schedulers tell each other.
    pub(crate) fn changes_of(
        &self,
        filter: Filter,
        ids: Vec<u64>,
        place: OwnedSemaphorePermit,
    ) -> Answers<v1::WatchResponse> {
        let (sender, receiver) = mpsc::channel(ANSWERS_MAX);
        let is_all = ids.is_empty();
        let mut listener = if is_all { self.hub.listen_to_all() } else { self.hub.listen() };
        let mut named = Named::of(ids, self);
        let stop = self.stop.clone();
        self.requests.spawn("watch", async move {
            let _place = place;
            loop {
                let heard = tokio::select! {
                    heard = listener.recv() => heard,
                    changes = named.look() => Ok(Tidings::Changes(changes.into())),
                    () = stop.cancelled() => return drop(sender.send(Err(stopping())).await),
                    () = sender.closed() => return,
                };
                let response = match heard {
                    Ok(Tidings::Changes(changes)) => {
                        let wanted = changes.iter().filter(|change| passes(&filter, change));
                        let news = wanted.filter(|change| named.is_news(change));
                        let changes: Vec<v1::JobChange> = news.map(change).collect();
                        v1::WatchResponse { changes, missed: false }
                    }
                    Ok(Tidings::Missed) | Err(RecvError::Lagged(_)) => {
                        v1::WatchResponse { changes: Vec::new(), missed: true }
                    }
                    Err(RecvError::Closed) => return,
                };
                let is_news = response.missed || !response.changes.is_empty();
                if is_news && sender.send(Ok(response)).await.is_err() {
                    return;
                }
            }
        });
        Box::pin(ReceiverStream::new(receiver))
    }

    /// The output of a job, and with `follow` more of it until the job is final.
    pub(crate) fn follow(
        &self,
        caller: Caller,
        request: v1::LogsRequest,
        place: OwnedSemaphorePermit,
    ) -> Answers<v1::LogsResponse> {
        let (sender, receiver) = mpsc::channel(ANSWERS_MAX);
        let door = self.clone();
        self.requests.spawn("logs", async move {
            let _place = place;
            if let Err(status) = door.send_logs(&caller, request, &sender).await {
                let _ = sender.send(Err(status)).await;
            }
        });
        Box::pin(ReceiverStream::new(receiver))
    }

    async fn send_logs(
        &self,
        caller: &Caller,
        request: v1::LogsRequest,
        sender: &mpsc::Sender<Result<v1::LogsResponse, Status>>,
    ) -> Result<(), Status> {
        let mut listener = self.hub.listen();
        let only: BTreeSet<JobId> = BTreeSet::from([JobId::number(request.id)]);
        let (mut after, mut looks, mut was_there) = (None, Looks::default(), false);
        loop {
            // Looked at before the output, so that nothing can come after the last look.
            let is_final = match self.record(caller, request.id).await {
                Ok(record) => record.state.is_terminal(),
                // It succeeded and had no output, or it would have been kept.
                Err(status) if was_there && status.code() == Code::NotFound => true,
                Err(status) => return Err(status),
            };
            was_there = true;
            let page = LogPage {
                job: JobId::number(request.id),
                attempt: (request.attempt != 0).then_some(request.attempt),
                after,
                max: PIECES_MAX,
            };
            let chunks = self.store.logs(page).await.map_err(|error| answer::failed(&error))?;
            let is_last = chunks.len() < PIECES_MAX;
            if let Some(last) = chunks.last() {
                after = Some((last.attempt, last.offset));
            }
            let done = is_last && (is_final || !request.follow);
            if done || !chunks.is_empty() {
                let pieces = chunks.into_iter().map(piece).collect();
                if sender.send(Ok(v1::LogsResponse { pieces, done })).await.is_err() {
                    return Ok(());
                }
            }
            if done {
                return Ok(());
            }
            if is_last {
                let heard = tokio::time::timeout(looks.next(), ended(&mut listener, &only));
                let _ = self.unless_stopped(heard).await?;
            }
            if sender.is_closed() {
                return Ok(());
            }
        }
    }
}

/// Waits until some of `jobs` are final. If changes were missed, any of them may be.
async fn ended(listener: &mut Receiver<Tidings>, jobs: &BTreeSet<JobId>) -> BTreeSet<JobId> {
    loop {
        match listener.recv().await {
            Ok(Tidings::Changes(changes)) => {
                let ended = changes
                    .iter()
                    .filter(|change| change.state.is_terminal() && jobs.contains(&change.job));
                let ended: BTreeSet<JobId> = ended.map(|change| change.job.clone()).collect();
                if !ended.is_empty() {
                    return ended;
                }
            }
            Ok(Tidings::Missed) | Err(RecvError::Lagged(_)) => return jobs.clone(),
            // The scheduler stops; whoever waits is told.
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }
}

fn passes(filter: &Filter, change: &Change) -> bool {
    filter.tenant.as_ref().is_none_or(|tenant| *tenant == change.tenant)
        && filter.kind.as_ref().is_none_or(|kind| *kind == change.kind)
        && (filter.states.is_empty() || filter.states.contains(&change.state))
        && filter.worker.as_ref().is_none_or(|worker| Some(worker) == change.worker.as_ref())
}

fn change(change: &Change) -> v1::JobChange {
    v1::JobChange {
        id: change.job.as_number().unwrap_or_default(),
        tenant: change.tenant.to_string(),
        r#type: change.kind.to_string(),
        state: v1::State::from(change.state).into(),
        at_ms: change.at.0,
        worker: change.worker.as_ref().map(ToString::to_string).unwrap_or_default(),
        progress: change.progress.clone().map(Into::into),
    }
}

fn piece(chunk: LogChunk) -> v1::LogPiece {
    let stream = match chunk.stream {
        LogStream::Out => v1::Stream::Out,
        LogStream::Err => v1::Stream::Err,
    };
    v1::LogPiece {
        attempt: chunk.attempt,
        stream: stream.into(),
        offset: chunk.offset,
        at_ms: chunk.at.0,
        bytes: chunk.bytes.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_come_soon_at_first_and_then_more_seldom() {
        let mut looks = Looks::default();
        let waits = [20, 40, 80, 160, 320, 500, 500].map(Duration::from_millis);
        assert_eq!(waits.map(|_| looks.next()), waits);
    }
}
