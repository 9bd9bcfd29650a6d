//! What attempts put out is kept in the order in which it came, and before their ends.
//!
//! A worker holds on to what it has sent until it is told that it is kept. If too much waits, a
//! worker goes unheard: its output, and ends of what put it out, are passed over from there on.
//! Once all that it said before is kept and there is room, it is hung up on, so that it says the
//! rest again. It is not hung up on before: it could not come back while the store takes nothing,
//! and would lose its attempts.
//!
//! **Invariant:** of what a worker counts, nothing is kept after something that is not.
//! **Invariant:** one call at a time, and no end of a job of which a piece is not kept.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use futures_util::FutureExt as _;
use model::JobId;
use proto::v1;
use proto::v1::server_message::Message;
use store::{End, LogChunk};

use crate::dispatch::Outgoing;
use crate::fleet::words::{Piece, StreamId};
use crate::scheduler::{Answer, Scheduler};

/// Bytes of output that may wait to be kept.
const BYTES_MAX: usize = 16 << 20;
/// Bytes of one call to the store, or one piece.
const CALL_BYTES: usize = 1 << 20;
/// What a piece takes beside its bytes, so that many small ones are not for nothing.
const PIECE_BYTES: usize = 128;

/// Output that is not kept yet.
#[derive(Debug, Default)]
pub(crate) struct Output {
    /// In the order in which it came.
    waiting: VecDeque<Told>,
    /// Bytes that wait or are on their way to the store.
    n_bytes: usize,
    /// Pieces that do, of each job and of each stream.
    of_job: BTreeMap<JobId, usize>,
    of_stream: BTreeMap<StreamId, usize>,
    /// Some are on their way.
    is_asked: bool,
    /// Of these streams, output is passed over, and ends of the jobs that it was about.
    unheard: BTreeMap<StreamId, BTreeSet<JobId>>,
}

impl Output {
    /// Whether a piece of the job was passed over: its end is to be said again after that.
    pub(crate) fn is_passed_over(&self, stream: StreamId, job: &JobId) -> bool {
        self.unheard.get(&stream).is_some_and(|jobs| jobs.contains(job))
    }

    pub(crate) fn is_unheard(&self, stream: StreamId) -> bool {
        self.unheard.contains_key(&stream)
    }

    /// The stream is gone.
    pub(crate) fn forget(&mut self, stream: StreamId) {
        self.unheard.remove(&stream);
    }

    fn take_in(&mut self, told: Told) {
        self.n_bytes += told.size();
        *self.of_stream.entry(told.from).or_default() += 1;
        if let Some(job) = told.job() {
            *self.of_job.entry(job.clone()).or_default() += 1;
        }
        self.waiting.push_back(told);
    }

    fn let_go(&mut self, told: &Told) {
        self.n_bytes -= told.size();
        one_less(&mut self.of_stream, &told.from);
        if let Some(job) = told.job() {
            one_less(&mut self.of_job, job);
        }
    }

    /// Who went unheard, and can say the rest again.
    fn take_unheard(&mut self) -> Vec<StreamId> {
        if self.n_bytes > BYTES_MAX / 2 {
            return Vec::new();
        }
        let is_kept = |stream: &StreamId| !self.of_stream.contains_key(stream);
        self.unheard.extract_if(.., |stream, _| is_kept(stream)).map(|(stream, _)| stream).collect()
    }
}

fn one_less<K: Ord>(counts: &mut BTreeMap<K, usize>, key: &K) {
    let Some(n) = counts.get_mut(key) else { return };
    *n -= 1;
    if *n == 0 {
        counts.remove(key);
    }
}

/// A piece, who told it, and which of theirs it is.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    from: StreamId,
    /// 0 if they do not count.
    number: u64,
    /// `None`: nobody needs it. It is acknowledged in its turn.
    chunk: Option<LogChunk>,
}

impl Told {
    fn job(&self) -> Option<&JobId> {
        self.chunk.as_ref().map(|chunk| &chunk.job)
    }

    fn size(&self) -> usize {
        self.chunk.as_ref().map_or(0, |chunk| chunk.bytes.len()) + PIECE_BYTES
    }
}

impl Scheduler {
    /// An attempt put something out. If that is too much to wait, a worker that counts goes
    /// unheard. What others say is dropped.
    pub(crate) fn put_out(&mut self, from: StreamId, (job, attempt): (JobId, u32), piece: Piece) {
        if let Some(live) = self.jobs.live_mut(&job) {
            live.has_output = true;
        }
        let Piece { number, stream, offset, bytes } = piece;
        let at = self.store.now();
        let chunk = LogChunk { job, attempt, stream, offset, at, bytes };
        self.put_in_line(Told { from, number, chunk: Some(chunk) });
    }

    /// A worker said something of an attempt that is not its own: it need not say so again.
    pub(crate) fn put_out_in_vain(&mut self, from: StreamId, number: u64) {
        if number > 0 {
            self.put_in_line(Told { from, number, chunk: None });
        }
    }

    fn put_in_line(&mut self, told: Told) {
        let output = &mut self.outgoing.output;
        if let Some(jobs) = output.unheard.get_mut(&told.from) {
            jobs.extend(told.job().cloned());
        } else if output.n_bytes + told.size() <= BYTES_MAX {
            output.take_in(told);
        } else if told.number > 0 {
            self.counters.add("workers_unheard", 1);
            output.unheard.insert(told.from, told.job().cloned().into_iter().collect());
        } else {
            self.counters.add("logs_dropped", 1);
        }
    }

    /// Output waits for the output before it to be kept.
    pub(crate) fn flush_output(&mut self) {
        let output = &mut self.outgoing.output;
        if output.is_asked || output.waiting.is_empty() {
            return;
        }
        output.is_asked = true;
        let pieces = first_of(&mut output.waiting);
        self.call(|store| {
            let asked = pieces.iter().filter_map(|told| told.chunk.clone()).collect();
            async move { Answer::Logged(pieces, store.log(asked).await) }.boxed()
        });
    }

    /// The store keeps it, and workers may forget it. Or it could not: then the same is tried
    /// again, before what came later. Keeping a piece twice does no harm.
    pub(crate) fn logged(&mut self, pieces: Vec<Told>, answer: Result<Vec<bool>, store::Error>) {
        let output = &mut self.outgoing.output;
        output.is_asked = false;
        if answer.is_err() {
            for told in pieces.into_iter().rev() {
                output.waiting.push_front(told);
            }
        } else {
            for told in &pieces {
                output.let_go(told);
            }
            let counted = pieces.iter().filter(|told| told.number > 0);
            // The last of each counts for all before it.
            let last: BTreeMap<StreamId, u64> =
                counted.map(|told| (told.from, told.number)).collect();
            for (from, number) in last {
                self.send(from, Message::LogAck(v1::LogAck { number }));
            }
        }
        self.noted(answer);
    }

    /// There is room again: whoever went unheard comes back, and says again what is not kept.
    pub(crate) fn hang_up_on_unheard(&mut self) {
        for stream in self.outgoing.output.take_unheard() {
            let status = tonic::Status::resource_exhausted(
                "more output waited to be kept than may; say again what is not acknowledged",
            );
            self.fleet.say_last(stream, status);
            self.part(stream);
        }
    }

    /// Takes out ends of jobs whose output is not kept yet, of both lists: whoever follows a job is
    /// told that it is final once all that it wrote is there.
    pub(crate) fn ends_behind_output(&mut self) -> (Vec<End>, Vec<End>) {
        let Outgoing { output, ends, ends_alone, .. } = &mut self.outgoing;
        let is_held = |end: &mut End| output.of_job.contains_key(&end.job);
        (ends.extract_if(.., is_held).collect(), ends_alone.extract_if(.., is_held).collect())
    }
}

/// Takes what one call may have.
fn first_of(waiting: &mut VecDeque<Told>) -> Vec<Told> {
    let mut n_bytes = 0;
    let mut fits = |told: &Told| {
        let is_first = n_bytes == 0;
        n_bytes += told.size();
        is_first || n_bytes <= CALL_BYTES
    };
    let n = waiting.iter().take_while(|told| fits(told)).count();
    waiting.drain(..n).collect()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use model::Timestamp;
    use store::Stream;

    use super::*;

    fn told(n_bytes: usize) -> Told {
        let (job, stream, bytes) = (JobId::number(1), Stream::Out, Bytes::from(vec![0; n_bytes]));
        let chunk = LogChunk { job, attempt: 1, stream, offset: 0, at: Timestamp(0), bytes };
        Told { from: StreamId(1), number: 1, chunk: Some(chunk) }
    }

    #[test]
    fn a_call_has_a_mib_or_one_piece_however_much_waits() {
        let n_calls = |sizes: &[usize]| {
            let mut waiting: VecDeque<Told> = sizes.iter().copied().map(told).collect();
            let mut calls = Vec::new();
            while !waiting.is_empty() {
                calls.push(first_of(&mut waiting).len());
            }
            calls
        };
        assert_eq!(n_calls(&[CALL_BYTES / 4; 7]), [3, 3, 1]);
        assert_eq!(n_calls(&[CALL_BYTES, 0, CALL_BYTES]), [1, 1, 1]);
        assert_eq!(n_calls(&vec![0; 10_000]), [8_192, 1_808], "small ones take something too");
    }
}
