//! The store's methods: the file of each stage, and its retry or ordering.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::task::JoinError;

use model::{JobId, Millis, Record, Retry, TenantId, Timestamp, WorkerId};

use super::amend::Amending;
use super::cancel::{Cancelling, Reason};
use super::desk::Desk;
use super::fault::Fault;
use super::forget::OldQueues;
use super::limits::Claiming;
use super::log::Logging;
use super::note::Noting;
use super::notice::Telling;
use super::revive::Reviving;
use super::settings::{Changing, Replacing};
use super::{
    Postgres, claim, complete, history, lead, lease, list, log, meet, note, notice, read, series,
    settings, start, tell, window,
};
use crate::{
    Amend, Amended, Cancelled, Claim, Claimed, End, Ended, Error, Filter, Lead, LogChunk, LogPage,
    Meeting, Minute, News, Note, NotePage, Noted, Notice, Old, Past, Refusal, Reply, Report,
    Revived, Run, Seen, Session, Setting, Shared, Start, Store, Submission, Submitted, Tally,
    Usage, Window, number,
};

/// Runs `work` in a task of its own, so that the conversion of many rows does not block the
/// caller's task. It completes even if the caller drops its future.
async fn apart<T: Send + 'static>(
    doing: &'static str,
    work: impl Future<Output = Result<T, Error>> + Send + 'static,
) -> Result<T, Error> {
    match tokio::spawn(work).await.map_err(JoinError::try_into_panic) {
        Ok(answer) => answer,
        Err(Ok(panic)) => std::panic::resume_unwind(panic),
        Err(Err(_)) => {
            Err(Error::Unavailable { doing, cause: "the scheduler is being stopped".to_owned() })
        }
    }
}

/// A query.
type Asking<T> = Pin<Box<dyn Future<Output = Result<T, Fault>> + Send>>;

impl Postgres {
    /// Answers a query of a user, who may drop it. Its connection is in use until the database
    /// answers, and only some connections are for such queries.
    fn answer<T: Send + 'static>(
        &self,
        doing: &'static str,
        read: impl FnOnce(Arc<Desk>) -> Asking<T> + Send + 'static,
    ) -> Reply<'_, T> {
        let desk = Arc::clone(&self.desk);
        Box::pin(apart(doing, async move {
            let _leave = desk.question(doing).await?;
            desk.reading(doing, read(Arc::clone(&desk))).await
        }))
    }
}

impl Store for Postgres {
    fn now(&self) -> Timestamp {
        self.desk.now()
    }

    /// Only the database knows the next number.
    fn number(&self, _: &TenantId, _: usize) -> Option<JobId> {
        None
    }

    fn submit(&self, submission: Submission) -> Reply<'_, Result<Submitted, Refusal>> {
        Box::pin(self.submissions.submit(submission))
    }

    fn look(&self, after: Option<JobId>, max: usize) -> Reply<'_, Vec<Record>> {
        Box::pin(async move {
            self.desk.reading("look at jobs", list::look(&self.desk, after.as_ref(), max)).await
        })
    }

    fn claim(&self, claims: Vec<Claim>) -> Reply<'_, Vec<Claimed>> {
        let (doing, desk) = ("claim jobs", Arc::clone(&self.desk));
        Box::pin(apart(doing, async move {
            let stage = Claiming { claims };
            let answers = if stage.claims.iter().any(|claim| !claim.limits.is_empty()) {
                desk.run(doing, &stage).await?
            } else {
                desk.writing(doing, || claim::claim(&desk, &stage.claims)).await?
            };
            claim::keep(&desk, &stage.claims, &answers);
            Ok(answers)
        }))
    }

    fn start(&self, starts: Vec<Start>) -> Reply<'_, Vec<bool>> {
        let doing = "start attempts";
        Box::pin(self.desk.in_turn(async move {
            self.desk.writing(doing, || start::start(&self.desk, &starts)).await
        }))
    }

    fn progress(&self, reports: Vec<Report>) -> Reply<'_, Vec<bool>> {
        let doing = "keep progress";
        Box::pin(self.desk.in_turn(async move {
            self.desk.writing(doing, || start::progress(&self.desk, &reports)).await
        }))
    }

    fn log(&self, chunks: Vec<LogChunk>) -> Reply<'_, Vec<bool>> {
        Box::pin(
            self.desk
                .in_turn(async move { self.desk.run("keep output", &Logging { chunks }).await }),
        )
    }

    fn complete(&self, ends: Vec<End>) -> Reply<'_, Vec<Ended>> {
        let desk = Arc::clone(&self.desk);
        Box::pin(async move {
            let changes_others = complete::changes_others(&desk, &ends);
            let ending = apart(complete::DOING, complete::complete(desk, ends));
            if changes_others {
                self.desk.in_turn(ending).await
            } else {
                self.desk.beside(ending).await
            }
        })
    }

    fn cancel(&self, jobs: Vec<JobId>) -> Reply<'_, Vec<Cancelled>> {
        let stage = Cancelling { jobs, reason: Reason::Asked };
        Box::pin(async move { self.desk.run("cancel jobs", &stage).await })
    }

    fn amend(&self, jobs: Vec<JobId>, amend: Amend) -> Reply<'_, Vec<Amended>> {
        Box::pin(async move { self.desk.run("change jobs", &Amending { jobs, amend }).await })
    }

    fn revive(&self, jobs: Vec<JobId>) -> Reply<'_, Vec<Revived>> {
        Box::pin(async move { self.desk.run("revive jobs", &Reviving { jobs }).await })
    }

    fn give_up(&self, jobs: Vec<JobId>) -> Reply<'_, Vec<Cancelled>> {
        let stage = Cancelling { jobs, reason: Reason::TooLate };
        Box::pin(async move { self.desk.run("give up jobs", &stage).await })
    }

    fn join(&self, worker: WorkerId, lease: Millis) -> Reply<'_, Session> {
        Box::pin(async move {
            self.desk.writing("let a worker in", || lease::join(&self.desk, &worker, lease)).await
        })
    }

    fn renew(&self, sessions: Vec<Session>, lease: Millis) -> Reply<'_, Vec<bool>> {
        Box::pin(async move {
            self.desk.writing("renew leases", || lease::renew(&self.desk, &sessions, lease)).await
        })
    }

    fn renew_all(&self, lease: Millis) -> Reply<'_, ()> {
        Box::pin(async move {
            self.desk.writing("renew all leases", || lease::renew_all(&self.desk, lease)).await
        })
    }

    fn leave(&self, session: Session) -> Reply<'_, bool> {
        Box::pin(async move {
            self.desk.writing("let a worker go", || lease::leave(&self.desk, &session)).await
        })
    }

    fn expired(&self, max: usize) -> Reply<'_, Vec<Record>> {
        Box::pin(self.desk.reading("look for leases that ran out", lease::expired(&self.desk, max)))
    }

    fn job(&self, id: JobId) -> Reply<'_, Option<Record>> {
        Box::pin(
            async move { self.desk.reading("look at a job", read::job(&self.desk, &id)).await },
        )
    }

    fn jobs(&self, filter: Filter) -> Reply<'_, Vec<Record>> {
        self.answer("list jobs", |desk| Box::pin(async move { list::jobs(&desk, &filter).await }))
    }

    fn tally(&self) -> Reply<'_, Vec<Tally>> {
        self.answer("count jobs", |desk| Box::pin(async move { list::tally(&desk).await }))
    }

    fn attempts(&self, jobs: Vec<JobId>) -> Reply<'_, Vec<Vec<Past>>> {
        self.answer("list attempts", |desk| {
            Box::pin(async move { read::attempts(&desk, &jobs).await })
        })
    }

    fn logs(&self, page: LogPage) -> Reply<'_, Vec<LogChunk>> {
        self.answer("read output", |desk| Box::pin(async move { log::logs(&desk, &page).await }))
    }

    fn set(&self, settings: Vec<Setting>) -> Reply<'_, ()> {
        Box::pin(async move { self.desk.run("change settings", &Changing { settings }).await })
    }

    fn replace(&self, was: Option<String>, setting: Setting) -> Reply<'_, bool> {
        Box::pin(
            async move { self.desk.run("change a setting", &Replacing { was, setting }).await },
        )
    }

    fn settings(&self) -> Reply<'_, Vec<Setting>> {
        Box::pin(self.desk.reading("read settings", settings::settings(&self.desk)))
    }

    fn usage(&self, since: Timestamp) -> Reply<'_, Vec<Usage>> {
        Box::pin(self.desk.reading("sum up usage", history::usage(&self.desk, since)))
    }

    fn runs(&self, since: Timestamp, max: usize) -> Reply<'_, Vec<Run>> {
        Box::pin(self.desk.reading("read history", history::runs(&self.desk, since, max)))
    }

    fn lead(&self, name: String, holder: String, length: Millis) -> Reply<'_, Option<Lead>> {
        Box::pin(async move {
            self.desk
                .writing("take a lead", || lead::lead(&self.desk, &name, &holder, length))
                .await
        })
    }

    fn keep(&self, name: String, token: u64, document: String) -> Reply<'_, bool> {
        Box::pin(async move {
            let keep = || lead::keep(&self.desk, &name, token, &document);
            self.desk.writing("keep what a lead keeps", keep).await
        })
    }

    fn leads(&self, prefix: String) -> Reply<'_, Vec<Lead>> {
        Box::pin(
            async move { self.desk.reading("list leads", lead::leads(&self.desk, &prefix)).await },
        )
    }

    fn note(&self, notes: Vec<Note>) -> Reply<'_, ()> {
        Box::pin(async move { self.desk.run("write notes", &Noting { notes }).await })
    }

    fn notes(&self, page: NotePage) -> Reply<'_, Vec<Noted>> {
        Box::pin(
            async move { self.desk.reading("read notes", note::notes(&self.desk, &page)).await },
        )
    }

    fn keep_minute(&self, at: Timestamp, document: String) -> Reply<'_, ()> {
        Box::pin(async move {
            let keep = || series::keep(&self.desk, (at, self.id), &document);
            self.desk.writing("store a minute", keep).await
        })
    }

    fn minutes(&self, from: Timestamp, before: Timestamp) -> Reply<'_, Vec<Minute>> {
        self.answer("read minutes", move |desk| {
            Box::pin(async move { series::minutes(&desk, from, before).await })
        })
    }

    fn notices(&self, wait: Retry, max: usize) -> Reply<'_, Vec<Notice>> {
        Box::pin(async move { self.desk.run("look for notices", &Telling { wait, max }).await })
    }

    fn told(&self, notices: Vec<u64>) -> Reply<'_, ()> {
        Box::pin(async move {
            self.desk.writing("drop notices", || notice::told(&self.desk, &notices)).await
        })
    }

    fn forget(&self, old: Old) -> Reply<'_, usize> {
        Box::pin(async move {
            let n_jobs = self.desk.run("forget jobs", &old).await?;
            // A stage of its own: with very many jobs it may take longer than the statement
            // timeout.
            if self.desk.queues.is_time_to_sweep(self.desk.now())
                && let Err(error) = self.desk.run("forget queues", &OldQueues).await
            {
                tracing::warn!(%error, "store unused queues not deleted");
            }
            Ok(n_jobs)
        })
    }

    fn shared(&self) -> Option<&dyn Shared> {
        Some(self)
    }
}

impl Shared for Postgres {
    fn meet(&self, said: String, is_news: bool) -> Reply<'_, Meeting> {
        Box::pin(async move {
            let meet = || meet::meet(&self.desk, self.id, &said);
            let meeting = self.desk.writing("say that this scheduler is here", meet).await?;
            self.desk.tell(tell::Told { peers: is_news, ..tell::Told::default() });
            Ok(meeting)
        })
    }

    fn window(&self, ask: Window) -> Reply<'_, Seen> {
        let (doing, desk) = ("look for work", Arc::clone(&self.desk));
        Box::pin(apart(doing, async move { desk.reading(doing, window::window(&desk, ask)).await }))
    }

    fn held(&self, worker: WorkerId) -> Reply<'_, Vec<Record>> {
        Box::pin(async move {
            self.desk.reading("look at what a worker has", meet::held(&self.desk, &worker)).await
        })
    }

    fn unstarted(&self, before: Timestamp, max: usize) -> Reply<'_, Vec<Record>> {
        Box::pin(async move {
            let unstarted = meet::unstarted(&self.desk, before, max);
            self.desk.reading("look for claims of which nothing came", unstarted).await
        })
    }

    fn called_off(&self, workers: Vec<WorkerId>) -> Reply<'_, Vec<JobId>> {
        Box::pin(async move {
            let called_off = meet::called_off(&self.desk, &workers);
            self.desk.reading("look for jobs that were called off", called_off).await
        })
    }

    fn say_changed(&self, jobs: Vec<JobId>) {
        let changed = jobs.iter().filter_map(number::of).map(|job| (self.id, job)).collect();
        self.desk.tell(tell::Told { changed, ..tell::Told::default() });
    }

    fn say_missed(&self) {
        self.desk.tell(tell::Told { missed: vec![self.id], ..tell::Told::default() });
    }

    fn these(&self, jobs: Vec<JobId>) -> Reply<'_, Vec<Record>> {
        Box::pin(
            async move { self.desk.reading("read jobs", read::these(&self.desk, &jobs)).await },
        )
    }

    fn listen(&self) -> mpsc::Receiver<News> {
        tell::listen(&self.url, &self.desk, self.id)
    }
}
