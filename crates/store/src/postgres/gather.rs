//! Groups concurrent submissions: one commit takes all that arrived during the last one.

use std::collections::HashSet;
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

use super::desk::Desk;
use super::submit::Taking;
use super::tasks::Tasks;
use crate::{Error, Refusal, Submission, Submitted};

/// Submissions that may wait. Further callers wait for room.
const WAITING_MAX: usize = 4_096;
/// Approximate jobs in one commit: the first should not wait long for the last.
const JOBS_MAX: usize = 10_000;
/// The operation as a verb phrase, for errors.
pub(super) const DOING: &str = "take in jobs";

type Answer = Result<Result<Submitted, Refusal>, Error>;

struct Waiting {
    submission: Submission,
    reply: oneshot::Sender<Answer>,
}

/// The queue of submissions.
pub(super) struct Gather {
    sender: mpsc::Sender<Waiting>,
    tasks: Tasks,
}

impl Gather {
    pub(super) fn start(desk: &Arc<Desk>) -> Self {
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        desk.tasks.spawn("refresh", Arc::clone(desk).keep_fresh());
        desk.tasks.spawn("submissions", run(Arc::clone(desk), receiver));
        Self { sender, tasks: desk.tasks.clone() }
    }

    pub(super) async fn submit(&self, submission: Submission) -> Answer {
        self.tasks.check(DOING)?;
        let (reply, answer) = oneshot::channel();
        let gone = || Error::Unavailable { doing: DOING, cause: "the store closed".to_owned() };
        self.sender.send(Waiting { submission, reply }).await.map_err(|_| gone())?;
        answer.await.unwrap_or_else(|_| Err(gone()))
    }
}

async fn run(desk: Arc<Desk>, mut receiver: mpsc::Receiver<Waiting>) {
    let mut next = receiver.recv().await;
    while let Some(first) = next.take() {
        let mut batch = Batch::default();
        batch.add(first);
        while batch.n_jobs < JOBS_MAX {
            let Ok(more) = receiver.try_recv() else { break };
            if batch.touches(&more.submission) {
                next = Some(more);
                break;
            }
            batch.add(more);
        }
        batch.commit(&desk).await;
        if next.is_none() {
            next = receiver.recv().await;
        }
    }
}

/// Submissions without a common key: the outcome of one does not depend on the others.
#[derive(Default)]
struct Batch {
    submissions: Vec<Submission>,
    replies: Vec<oneshot::Sender<Answer>>,
    keys: HashSet<(String, Option<String>, String)>,
    n_jobs: usize,
}

impl Batch {
    fn touches(&self, submission: &Submission) -> bool {
        keys_of(submission).any(|key| self.keys.contains(&key))
    }

    fn add(&mut self, waiting: Waiting) {
        self.keys.extend(keys_of(&waiting.submission));
        self.n_jobs += waiting.submission.jobs.len();
        self.submissions.push(waiting.submission);
        self.replies.push(waiting.reply);
    }

    async fn commit(self, desk: &Desk) {
        let taking = Taking { submissions: self.submissions };
        match desk.run(DOING, &taking).await {
            Ok(answers) => {
                for (reply, answer) in self.replies.into_iter().zip(answers) {
                    // A caller that dropped its future needs no answer.
                    let _ = reply.send(Ok(answer));
                }
            }
            Err(error) => {
                for reply in self.replies {
                    let _ = reply.send(Err(error.clone()));
                }
            }
        }
    }
}

/// Idempotency keys by tenant, and dedupe keys by tenant and type.
fn keys_of(submission: &Submission) -> impl Iterator<Item = (String, Option<String>, String)> {
    let tenant = submission.tenant.to_string();
    let own = submission.idempotency.iter();
    let own = own.map(|idempotency| (tenant.clone(), None, idempotency.key.clone()));
    let own: Vec<_> = own.collect();
    let dedupe = submission.jobs.iter().filter_map(move |job| {
        let key = job.spec.dedupe_key.clone()?;
        Some((tenant.clone(), Some(job.spec.kind.to_string()), key))
    });
    own.into_iter().chain(dedupe)
}
