//! The store's methods: the thread and the file of each stage.

use std::sync::PoisonError;

use model::{JobId, Millis, Record, Retry, TenantId, Timestamp, WorkerId};

use super::{
    Lane, Sqlite, amend, cancel, claim, complete, forget, history, lead, lease, list, log, note,
    notice, read, revive, series, settings, start, submit,
};
use crate::{
    Amend, Amended, Cancelled, Claim, Claimed, Commits, End, Ended, Filter, Lead, LogChunk,
    LogPage, Minute, Note, NotePage, Noted, Notice, Old, Past, Refusal, Reply, Report, Revived,
    Run, Session, Setting, Start, Store, Submission, Submitted, Tally, Usage, number,
};

impl Store for Sqlite {
    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn number(&self, tenant: &TenantId, n_jobs: usize) -> Option<JobId> {
        if !self.room.keep(tenant, n_jobs) {
            return None;
        }
        let first = self.numbers.take_ahead(n_jobs);
        if first.is_none() {
            drop(self.room.expect(tenant, n_jobs));
        }
        first.map(number::id)
    }

    fn submit(&self, submission: Submission) -> Reply<'_, Result<Submitted, Refusal>> {
        let Submission { tenant, jobs, first, .. } = &submission;
        let weight = jobs.len();
        let expected = first.as_ref().map(|_| self.room.expect(tenant, weight));
        self.write(("take in jobs", weight), |desk| {
            let submitted = submit::submit(desk, submission);
            drop(expected);
            submitted
        })
    }

    fn look(&self, after: Option<JobId>, max: usize) -> Reply<'_, Vec<Record>> {
        self.read(Lane::Many, "look at jobs", move |connection| {
            list::look(connection, after.as_ref(), max)
        })
    }

    fn claim(&self, claims: Vec<Claim>) -> Reply<'_, Vec<Claimed>> {
        self.write(("claim jobs", claims.len()), |desk| claim::claim(desk, claims))
    }

    fn start(&self, starts: Vec<Start>) -> Reply<'_, Vec<bool>> {
        self.write(("start attempts", starts.len()), move |desk| start::start(desk, &starts))
    }

    fn progress(&self, reports: Vec<Report>) -> Reply<'_, Vec<bool>> {
        self.write(("keep progress", reports.len()), move |desk| start::progress(desk, &reports))
    }

    fn log(&self, chunks: Vec<LogChunk>) -> Reply<'_, Vec<bool>> {
        self.write(("keep output", chunks.len()), move |desk| log::log(desk, &chunks))
    }

    fn complete(&self, ends: Vec<End>) -> Reply<'_, Vec<Ended>> {
        self.write(("end attempts", ends.len()), move |desk| complete::complete(desk, &ends))
    }

    fn cancel(&self, jobs: Vec<JobId>) -> Reply<'_, Vec<Cancelled>> {
        self.write(("cancel jobs", jobs.len()), move |desk| cancel::cancel(desk, &jobs))
    }

    fn amend(&self, jobs: Vec<JobId>, amend: Amend) -> Reply<'_, Vec<Amended>> {
        self.write(("change jobs", jobs.len()), move |desk| amend::amend(desk, &jobs, amend))
    }

    fn revive(&self, jobs: Vec<JobId>) -> Reply<'_, Vec<Revived>> {
        self.write(("revive jobs", jobs.len()), move |desk| revive::revive(desk, &jobs))
    }

    fn give_up(&self, jobs: Vec<JobId>) -> Reply<'_, Vec<Cancelled>> {
        self.write(("give up jobs", jobs.len()), move |desk| cancel::give_up(desk, &jobs))
    }

    fn join(&self, worker: WorkerId, lease: Millis) -> Reply<'_, Session> {
        self.write(("let a worker in", 1), move |desk| lease::join(desk, worker, lease))
    }

    fn renew(&self, sessions: Vec<Session>, lease: Millis) -> Reply<'_, Vec<bool>> {
        let weight = sessions.len();
        self.write(("renew leases", weight), move |desk| lease::renew(desk, &sessions, lease))
    }

    fn renew_all(&self, lease: Millis) -> Reply<'_, ()> {
        self.write(("renew all leases", 1), move |desk| lease::renew_all(desk, lease))
    }

    fn leave(&self, session: Session) -> Reply<'_, bool> {
        self.write(("let a worker go", 1), move |desk| lease::leave(desk, &session))
    }

    fn expired(&self, max: usize) -> Reply<'_, Vec<Record>> {
        let now = self.now();
        self.read(Lane::One, "look for leases that ran out", move |connection| {
            lease::expired(connection, now, max)
        })
    }

    fn job(&self, id: JobId) -> Reply<'_, Option<Record>> {
        self.read(Lane::One, "look at a job", move |connection| read::job(connection, &id))
    }

    fn jobs(&self, filter: Filter) -> Reply<'_, Vec<Record>> {
        self.read(Lane::Many, "list jobs", move |connection| list::jobs(connection, &filter))
    }

    fn tally(&self) -> Reply<'_, Vec<Tally>> {
        self.read(Lane::Many, "count jobs", list::tally)
    }

    fn attempts(&self, jobs: Vec<JobId>) -> Reply<'_, Vec<Vec<Past>>> {
        let lane = if jobs.len() > 1 { Lane::Many } else { Lane::One };
        self.read(lane, "list attempts", move |connection| read::attempts(connection, &jobs))
    }

    fn logs(&self, page: LogPage) -> Reply<'_, Vec<LogChunk>> {
        self.read(Lane::Many, "read output", move |connection| log::logs(connection, &page))
    }

    fn set(&self, settings: Vec<Setting>) -> Reply<'_, ()> {
        let weight = settings.len();
        self.write(("change settings", weight), move |desk| settings::set(desk, &settings))
    }

    fn replace(&self, was: Option<String>, setting: Setting) -> Reply<'_, bool> {
        self.write(("change a setting", 1), move |desk| {
            settings::replace(desk, was.as_deref(), setting)
        })
    }

    fn settings(&self) -> Reply<'_, Vec<Setting>> {
        self.read(Lane::One, "read settings", settings::settings)
    }

    fn usage(&self, since: Timestamp) -> Reply<'_, Vec<Usage>> {
        self.read(Lane::Many, "sum up usage", move |connection| history::usage(connection, since))
    }

    fn runs(&self, since: Timestamp, max: usize) -> Reply<'_, Vec<Run>> {
        self.read(Lane::Many, "read history", move |connection| {
            history::runs(connection, since, max)
        })
    }

    fn lead(&self, name: String, holder: String, length: Millis) -> Reply<'_, Option<Lead>> {
        self.write(("take a lead", 1), move |desk| lead::lead(desk, &name, &holder, length))
    }

    fn keep(&self, name: String, token: u64, document: String) -> Reply<'_, bool> {
        self.write(("keep what a lead needs", 1), move |desk| {
            lead::keep(desk, &name, token, &document)
        })
    }

    fn leads(&self, prefix: String) -> Reply<'_, Vec<Lead>> {
        self.read(Lane::One, "look at leads", move |connection| lead::leads(connection, &prefix))
    }

    fn note(&self, notes: Vec<Note>) -> Reply<'_, ()> {
        self.write(("write notes", notes.len()), move |desk| note::note(desk, &notes))
    }

    fn notes(&self, page: NotePage) -> Reply<'_, Vec<Noted>> {
        self.read(Lane::Many, "read notes", move |connection| note::notes(connection, &page))
    }

    fn keep_minute(&self, at: Timestamp, document: String) -> Reply<'_, ()> {
        self.write(("store a minute", 1), move |desk| series::keep(desk, at, &document))
    }

    fn minutes(&self, from: Timestamp, before: Timestamp) -> Reply<'_, Vec<Minute>> {
        self.read(Lane::Many, "read minutes", move |connection| {
            series::minutes(connection, from, before)
        })
    }

    fn notices(&self, retry: Retry, max: usize) -> Reply<'_, Vec<Notice>> {
        self.write(("take notices", 1), move |desk| notice::notices(desk, retry, max))
    }

    fn told(&self, notices: Vec<u64>) -> Reply<'_, ()> {
        let weight = notices.len();
        self.write(("drop notices", weight), move |desk| notice::told(desk, &notices))
    }

    fn forget(&self, old: Old) -> Reply<'_, usize> {
        self.write(("forget jobs", old.max), move |desk| forget::forget(desk, old))
    }

    fn commits(&self) -> Commits {
        self.commits.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
