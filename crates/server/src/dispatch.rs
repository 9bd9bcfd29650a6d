//! 4. Dispatch: what a turn has to say goes out in batches, one per store call and worker.

use std::collections::BTreeMap;

use futures_util::FutureExt as _;
use model::{JobId, Timestamp};
use prost::Message as _;
use proto::v1;
use store::{Claim, End, Report, Session, Start};

use crate::early::Ahead;
use crate::fleet::words::StreamId;
use crate::output::Output;
use crate::round::Claiming;
use crate::scheduler::{Answer, Scheduler};
use crate::timers::Timer;

/// Bytes after which a batch for a worker is full.
const BATCH_BYTES: usize = 1 << 20;

/// Jobs in a call by which jobs are claimed, or attempts end. While the store has some of those
/// that are on their way, workers have others: neither waits for the other to be done with all.
const CALL_MAX: usize = 500;
/// Such calls under way at once in a shared store, for claims and for ends: it takes each by
/// itself, so what comes meanwhile goes together.
const CALLS_MAX: usize = 2;

/// What goes out at the end of a turn.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    /// Submissions that came in this turn.
    pub(crate) submissions: Vec<Ahead>,
    /// Each with the moment from which it is written down.
    pub(crate) starts: Vec<(Timestamp, Start)>,
    /// Others are on their way to the store.
    pub(crate) is_starting: bool,
    pub(crate) reports: Vec<Report>,
    pub(crate) output: Output,
    /// Jobs that the world has placed.
    pub(crate) claims: Vec<Claim>,
    pub(crate) ends: Vec<End>,
    /// Ends that are to be told one by one, because telling them together failed.
    pub(crate) ends_alone: Vec<End>,
    /// Jobs that are no longer worth starting.
    pub(crate) late: Vec<JobId>,
    /// Signs of life: the session, its stream, and the heartbeat to acknowledge.
    pub(crate) renewals: Vec<(Session, StreamId, u64)>,
    pub(crate) to_workers: BTreeMap<StreamId, Vec<v1::ServerMessage>>,
}

impl Scheduler {
    /// Says something to a worker, at the end of the turn.
    pub(crate) fn send(&mut self, stream: StreamId, message: v1::server_message::Message) {
        let messages = self.outgoing.to_workers.entry(stream).or_default();
        messages.push(v1::ServerMessage { message: Some(message) });
    }

    /// Asks the store for everything that the turn wants of it. What a worker said keeps its order:
    /// starts before progress, output before ends.
    pub(crate) fn flush_store(&mut self) {
        let starts = self.starts_to_write();
        let outgoing = &mut self.outgoing;
        let reports = std::mem::take(&mut outgoing.reports);
        let renewals = std::mem::take(&mut outgoing.renewals);
        if !starts.is_empty() {
            self.outgoing.is_starting = true;
            self.call(|store| {
                let asked = starts.clone();
                async move { Answer::Started(starts, store.start(asked).await) }.boxed()
            });
        }
        if !reports.is_empty() {
            self.call(|store| async move { Answer::Noted(store.progress(reports).await) }.boxed());
        }
        self.flush_output();
        self.flush_ends();
        self.flush_claims();
        self.flush_renewals(renewals);
        self.flush_late();
        self.flush_refetch();
    }

    fn flush_ends(&mut self) {
        let n_calls_max = self.calls_left(self.n_ending);
        let (held, held_alone) = self.ends_behind_output();
        for ends in portions(&mut self.outgoing.ends, n_calls_max) {
            self.end(ends);
        }
        self.outgoing.ends.extend(held);
        for end in std::mem::replace(&mut self.outgoing.ends_alone, held_alone) {
            self.end(vec![end]);
        }
    }

    fn end(&mut self, ends: Vec<End>) {
        self.n_ending += 1;
        self.call(|store| {
            let asked = ends.clone();
            async move { Answer::Completed(ends, store.complete(asked).await) }.boxed()
        });
    }

    fn flush_claims(&mut self) {
        let n_calls_max = self.calls_left(self.n_claiming);
        for claims in portions(&mut self.outgoing.claims, n_calls_max) {
            let claiming: Vec<Claiming> = claims.iter().map(Claiming::of).collect();
            self.n_claiming += 1;
            self.call(|store| {
                async move { Answer::Claimed(claiming, store.claim(claims).await) }.boxed()
            });
        }
    }

    /// How many calls there may be beside those that are under way.
    const fn calls_left(&self, n_calls: usize) -> usize {
        match self.sharing {
            None => usize::MAX,
            Some(_) => CALLS_MAX.saturating_sub(n_calls),
        }
    }

    /// An attempt runs: to be written down soon.
    pub(crate) fn start(&mut self, start: Start, now: Timestamp) {
        let at = now + self.config.start_pause;
        if self.outgoing.starts.is_empty() {
            self.timers.set(at, Timer::Starts);
        }
        self.outgoing.starts.push((at, start));
    }

    /// Nobody waits for a start to be written down, so starts wait for those before them. One
    /// whose end comes in the meantime is written down with the end; none is written after how far
    /// it is.
    fn starts_to_write(&mut self) -> Vec<Start> {
        let is_told = !self.outgoing.reports.is_empty();
        let until = if is_told { Timestamp(i64::MAX) } else { self.store.now() };
        let starts = &mut self.outgoing.starts;
        if self.outgoing.is_starting || starts.first().is_none_or(|(at, _)| *at > until) {
            return Vec::new();
        }
        let jobs = &self.jobs;
        starts.retain(|(_, start)| {
            let live = jobs.live(&start.job);
            live.is_some_and(|live| live.number == start.attempt && !live.is_ending)
        });
        let n_due = starts.partition_point(|(at, _)| *at <= until);
        let due = starts.drain(..n_due).map(|(_, start)| start).collect();
        if let Some((at, _)) = starts.first() {
            self.timers.set(*at, Timer::Starts);
        }
        due
    }

    fn flush_late(&mut self) {
        let late = std::mem::take(&mut self.outgoing.late);
        if late.is_empty() {
            return;
        }
        self.call(|store| {
            let asked = late.clone();
            async move { Answer::GivenUp(late, store.give_up(asked).await) }.boxed()
        });
    }

    fn flush_renewals(&self, renewals: Vec<(Session, StreamId, u64)>) {
        if renewals.is_empty() {
            return;
        }
        let lease = self.config.lease;
        let (sessions, beats): (Vec<Session>, Vec<(StreamId, u64)>) =
            renewals.into_iter().map(|(session, stream, beat)| (session, (stream, beat))).unzip();
        self.call(|store| {
            async move { Answer::Renewed(beats, store.renew(sessions, lease).await) }.boxed()
        });
    }

    /// Hands each worker what there is for it. One that does not keep up is cut off: it comes
    /// back, and both sides start from what the store says.
    pub(crate) fn flush_workers(&mut self) {
        for (stream, messages) in std::mem::take(&mut self.outgoing.to_workers) {
            for batch in batches(messages) {
                if self.fleet.deliver(stream, batch).is_err() {
                    self.counters.add("workers_cut_off", 1);
                    self.part(stream);
                    break;
                }
            }
        }
        self.hang_up_on_unheard();
    }
}

/// Takes from the list what so many calls may have, a portion each; the rest waits.
fn portions<T>(list: &mut Vec<T>, n_calls_max: usize) -> Vec<Vec<T>> {
    let n_calls = list.len().div_ceil(CALL_MAX).min(n_calls_max);
    let mut rest = std::mem::take(list).into_iter();
    let portions = (0..n_calls).map(|_| rest.by_ref().take(CALL_MAX).collect()).collect();
    list.extend(rest);
    portions
}

/// The messages in batches that no limit of the wire refuses.
fn batches(messages: Vec<v1::ServerMessage>) -> Vec<Vec<v1::ServerMessage>> {
    let mut batches = vec![Vec::new()];
    let mut n_bytes = 0;
    for message in messages {
        n_bytes += message.encoded_len();
        if n_bytes > BATCH_BYTES && batches.last().is_some_and(|batch| !batch.is_empty()) {
            n_bytes = message.encoded_len();
            batches.push(Vec::new());
        }
        batches.last_mut().expect("there is one at least").push(message);
    }
    batches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_has_a_portion_and_what_is_over_waits() {
        let all: Vec<usize> = (0..=2 * CALL_MAX).collect();
        let mut list = all.clone();
        assert_eq!(portions(&mut list, 1), [&all[..CALL_MAX]]);
        assert_eq!(list, all[CALL_MAX..]);
        assert!(portions(&mut list, 0).is_empty());
        let rest = portions(&mut list, usize::MAX);
        assert_eq!(rest, [&all[CALL_MAX..2 * CALL_MAX], &all[2 * CALL_MAX..]]);
        assert!(list.is_empty() && portions(&mut list, usize::MAX).is_empty());
    }
}
