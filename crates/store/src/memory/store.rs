//! The store's methods, stage by stage.

use std::future::ready;
use std::sync::Arc;

use bytes::Bytes;
use model::{JobId, Millis, Record, Retry, State, TenantId, Timestamp, WorkerId};

use super::{Lease, Memory, World};
use crate::chunk::{self, Keep};
use crate::{
    Amend, Amended, Cancelled, Claim, Claimed, End, Ended, Filter, Lead, LogChunk, LogPage, Minute,
    Note, NotePage, Noted, Notice, Old, Past, Refusal, Reply, Report, Revived, Run, Session,
    Setting, Start, Store, Submission, Submitted, Tally, Usage, minute, number, transition,
};

impl Memory {
    fn reply<'a, T: Send + 'a>(
        &self,
        work: impl FnOnce(&mut World, Timestamp) -> T,
    ) -> Reply<'a, T> {
        Box::pin(ready(Ok(self.with(work))))
    }

    fn each<'a, R, T: Send + 'a>(
        &self,
        requests: Vec<R>,
        mut work: impl FnMut(&mut World, R, Timestamp) -> T,
    ) -> Reply<'a, Vec<T>> {
        self.reply(|world, now| {
            requests.into_iter().map(|request| work(world, request, now)).collect()
        })
    }
}

impl Store for Memory {
    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn number(&self, tenant: &TenantId, n_jobs: usize) -> Option<JobId> {
        self.with(|world, _| world.number_ahead(tenant, n_jobs)).map(number::id)
    }

    fn submit(&self, submission: Submission) -> Reply<'_, Result<Submitted, Refusal>> {
        self.reply(|world, now| world.submit(submission, now))
    }

    fn look(&self, after: Option<JobId>, max: usize) -> Reply<'_, Vec<Record>> {
        self.reply(|world, _| world.look(after.as_ref(), max))
    }

    fn claim(&self, claims: Vec<Claim>) -> Reply<'_, Vec<Claimed>> {
        self.each(claims, World::claim)
    }

    fn start(&self, starts: Vec<Start>) -> Reply<'_, Vec<bool>> {
        self.each(starts, |world, start, now| {
            let record = world.current(&start.job, start.attempt, &start.worker);
            record.map(|record| transition::start(record, now)).is_some()
        })
    }

    fn progress(&self, reports: Vec<Report>) -> Reply<'_, Vec<bool>> {
        self.each(reports, |world, report, _| {
            let record = world.current(&report.job, report.attempt, &report.worker);
            record.map(|record| transition::progress(record, report.progress)).is_some()
        })
    }

    fn log(&self, chunks: Vec<LogChunk>) -> Reply<'_, Vec<bool>> {
        self.each(chunks, |world, piece, now| world.log(&piece, now))
    }

    fn complete(&self, ends: Vec<End>) -> Reply<'_, Vec<Ended>> {
        self.each(ends, |world, end, now| world.complete(&end, now))
    }

    fn cancel(&self, jobs: Vec<JobId>) -> Reply<'_, Vec<Cancelled>> {
        self.each(jobs, |world, id, now| world.cancel(&id, now))
    }

    fn amend(&self, jobs: Vec<JobId>, amend: Amend) -> Reply<'_, Vec<Amended>> {
        self.each(jobs, |world, id, _| world.amend(&id, amend))
    }

    fn revive(&self, jobs: Vec<JobId>) -> Reply<'_, Vec<Revived>> {
        self.each(jobs, |world, id, now| world.revive(&id, now))
    }

    fn give_up(&self, jobs: Vec<JobId>) -> Reply<'_, Vec<Cancelled>> {
        self.each(jobs, |world, id, now| world.give_up(&id, now))
    }

    fn join(&self, worker: WorkerId, lease: Millis) -> Reply<'_, Session> {
        self.reply(|world, now| world.join(worker, now + lease))
    }

    fn renew(&self, sessions: Vec<Session>, lease: Millis) -> Reply<'_, Vec<bool>> {
        self.each(sessions, |world, session, now| world.renew(&session, now + lease))
    }

    fn renew_all(&self, lease: Millis) -> Reply<'_, ()> {
        self.reply(|world, now| world.renew_all(now, lease))
    }

    fn leave(&self, session: Session) -> Reply<'_, bool> {
        self.reply(|world, now| world.leave(&session, now))
    }

    fn expired(&self, max: usize) -> Reply<'_, Vec<Record>> {
        self.reply(|world, now| world.expired(now, max))
    }

    fn job(&self, id: JobId) -> Reply<'_, Option<Record>> {
        self.reply(|world, _| world.job(&id).map(|(_, record)| record.clone()))
    }

    fn jobs(&self, filter: Filter) -> Reply<'_, Vec<Record>> {
        self.reply(|world, _| world.filtered(&filter))
    }

    fn tally(&self) -> Reply<'_, Vec<Tally>> {
        self.reply(|world, _| world.tally())
    }

    fn attempts(&self, jobs: Vec<JobId>) -> Reply<'_, Vec<Vec<Past>>> {
        self.reply(|world, _| jobs.iter().map(|job| world.attempts(job)).collect())
    }

    fn logs(&self, page: LogPage) -> Reply<'_, Vec<LogChunk>> {
        self.reply(|world, _| world.logs(&page))
    }

    fn set(&self, settings: Vec<Setting>) -> Reply<'_, ()> {
        self.reply(|world, _| {
            for Setting { kind, name, document } in settings {
                match document {
                    Some(document) => world.settings.insert((kind, name), document),
                    None => world.settings.remove(&(kind, name)),
                };
            }
        })
    }

    fn replace(&self, was: Option<String>, setting: Setting) -> Reply<'_, bool> {
        self.reply(|world, _| {
            let Setting { kind, name, document } = setting;
            let key = (kind, name);
            if world.settings.get(&key) != was.as_ref() {
                return false;
            }
            match document {
                Some(document) => world.settings.insert(key, document),
                None => world.settings.remove(&key),
            };
            true
        })
    }

    fn settings(&self) -> Reply<'_, Vec<Setting>> {
        self.reply(|world, _| {
            let settings = world.settings.iter();
            let setting = |((kind, name), document): (&(_, String), &String)| Setting {
                kind: *kind,
                name: name.clone(),
                document: Some(document.clone()),
            };
            settings.map(setting).collect()
        })
    }

    fn usage(&self, since: Timestamp) -> Reply<'_, Vec<Usage>> {
        self.reply(|world, _| world.usage(since))
    }

    fn runs(&self, since: Timestamp, max: usize) -> Reply<'_, Vec<Run>> {
        self.reply(|world, _| world.runs(since, max))
    }

    fn lead(&self, name: String, holder: String, length: Millis) -> Reply<'_, Option<Lead>> {
        self.reply(|world, now| world.lead(name, holder, (now, now + length)))
    }

    fn keep(&self, name: String, token: u64, document: String) -> Reply<'_, bool> {
        self.reply(|world, _| world.keep(&name, token, document))
    }

    fn leads(&self, prefix: String) -> Reply<'_, Vec<Lead>> {
        self.reply(|world, _| {
            let leads = world.leads.values().filter(|lead| lead.name.starts_with(&prefix));
            leads.cloned().collect()
        })
    }

    fn note(&self, notes: Vec<Note>) -> Reply<'_, ()> {
        self.reply(|world, now| notes.into_iter().for_each(|note| world.write_down(note, now)))
    }

    fn notes(&self, page: NotePage) -> Reply<'_, Vec<Noted>> {
        self.reply(|world, _| world.notes(&page))
    }

    fn keep_minute(&self, at: Timestamp, document: String) -> Reply<'_, ()> {
        self.reply(|world, _| drop(world.minutes.insert(minute::of(at), document)))
    }

    fn minutes(&self, from: Timestamp, before: Timestamp) -> Reply<'_, Vec<Minute>> {
        self.reply(|world, _| world.minutes(minute::of(from), minute::of(before)))
    }

    fn notices(&self, retry: Retry, max: usize) -> Reply<'_, Vec<Notice>> {
        self.reply(|world, now| world.notices(retry, max, now))
    }

    fn told(&self, notices: Vec<u64>) -> Reply<'_, ()> {
        self.reply(|world, _| world.notices.retain(|id, _| !notices.contains(id)))
    }

    fn forget(&self, old: Old) -> Reply<'_, usize> {
        self.reply(|world, _| world.forget(old))
    }
}

impl World {
    /// The job, if this is its current attempt on this worker.
    fn current(&mut self, id: &JobId, attempt: u32, worker: &WorkerId) -> Option<&mut Record> {
        let (_, record) = self.job_mut(id)?;
        transition::is_current(record, attempt, worker).then_some(record)
    }

    pub(super) fn claim(&mut self, claim: Claim, now: Timestamp) -> Claimed {
        let Some((_, record)) = self.job_mut(&claim.job) else {
            return Claimed::Lost(None);
        };
        if record.state.is_terminal() {
            return Claimed::Lost(None);
        }
        if !transition::claim(record, &claim, now) {
            return Claimed::Lost(Some(Box::new(record.clone())));
        }
        let won = Claimed::Won(Arc::new(record.clone()));
        // A worker that never connected gets an expired lease.
        let over = Lease { generation: 0, until: now, has_left: false };
        self.sessions.entry(claim.worker).or_insert(over);
        won
    }

    fn log(&mut self, piece: &LogChunk, now: Timestamp) -> bool {
        let number = match self.job(&piece.job) {
            Some((number, record))
                if record.state.is_live() && record.counts.attempts == piece.attempt =>
            {
                number
            }
            Some(_) | None => return false,
        };
        let kept = self.logs.range((number, piece.attempt, 0)..=(number, piece.attempt, u64::MAX));
        let end =
            |piece: &LogChunk| piece.offset + u64::try_from(piece.bytes.len()).unwrap_or(u64::MAX);
        let kept_to = kept.last().map_or(0, |(_, piece)| end(piece));
        let bytes_max = self.options.log_bytes_max;
        match chunk::keep(piece.offset, &piece.bytes, kept_to, bytes_max) {
            Keep::Nothing => true,
            Keep::TooMuch => false,
            Keep::From { offset, bytes } => {
                let bytes = Bytes::copy_from_slice(bytes);
                let job = number::id(number);
                let LogChunk { attempt, stream, .. } = *piece;
                let kept = LogChunk { job, attempt, stream, offset, at: now, bytes };
                self.logs.insert((number, attempt, offset), kept);
                true
            }
        }
    }

    fn amend(&mut self, id: &JobId, amend: Amend) -> Amended {
        let Some((_, record)) = self.job_mut(id) else {
            return Amended::Unknown;
        };
        if !matches!(record.state, State::Blocked | State::Queued) {
            return Amended::NotWaiting(record.state);
        }
        transition::amend(record, amend);
        Amended::Done(Box::new(record.clone()))
    }
}
