//! What attempts put out is kept in the order in which it came, and before their ends.
//!
//! A worker holds on to what it has sent until it is told that it is kept.

use std::collections::{BTreeMap, BTreeSet};

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

/// Output that is not kept yet.
#[derive(Debug, Default)]
pub(crate) struct Output {
    waiting: Pieces,
    /// Bytes that wait.
    n_bytes: usize,
    /// Jobs whose output is on its way to the store.
    under_way: BTreeSet<JobId>,
}

/// Pieces in the order in which they came.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pieces {
    chunks: Vec<LogChunk>,
    /// The last of each worker, by its own count.
    last: BTreeMap<StreamId, u64>,
}

impl Scheduler {
    /// An attempt put something out. What is too much to wait is dropped.
    pub(crate) fn put_out(&mut self, from: StreamId, (job, attempt): (JobId, u32), piece: Piece) {
        if let Some(live) = self.jobs.live_mut(&job) {
            live.has_output = true;
        }
        let output = &mut self.outgoing.output;
        if output.n_bytes + piece.bytes.len() > BYTES_MAX {
            self.counters.add("logs_dropped", 1);
            return;
        }
        let Piece { number, stream, offset, bytes } = piece;
        output.n_bytes += bytes.len();
        let at = self.store.now();
        output.waiting.chunks.push(LogChunk { job, attempt, stream, offset, at, bytes });
        if number > 0 {
            output.waiting.last.insert(from, number);
        }
    }

    /// Output waits for the output before it to be kept.
    pub(crate) fn flush_output(&mut self) {
        let Output { waiting, n_bytes, under_way } = &mut self.outgoing.output;
        if waiting.chunks.is_empty() || !under_way.is_empty() {
            return;
        }
        let pieces = std::mem::take(waiting);
        *n_bytes = 0;
        under_way.extend(pieces.chunks.iter().map(|chunk| chunk.job.clone()));
        self.call(|store| {
            let asked = pieces.chunks.clone();
            async move { Answer::Logged(pieces, store.log(asked).await) }.boxed()
        });
    }

    /// The store keeps it, and workers may forget it. Or it could not: then the same is tried
    /// again, before what came later. Keeping a piece twice does no harm.
    pub(crate) fn logged(&mut self, pieces: Pieces, answer: Result<Vec<bool>, store::Error>) {
        let Output { waiting, n_bytes, under_way } = &mut self.outgoing.output;
        under_way.clear();
        if answer.is_err() {
            *n_bytes += pieces.chunks.iter().map(|chunk| chunk.bytes.len()).sum::<usize>();
            waiting.chunks.splice(..0, pieces.chunks);
            for (from, number) in pieces.last {
                waiting.last.entry(from).or_insert(number);
            }
        } else {
            for (from, number) in pieces.last {
                self.send(from, Message::LogAck(v1::LogAck { number }));
            }
        }
        self.noted(answer);
    }

    /// Takes out ends of jobs whose output is not kept yet, of both lists: whoever follows a job is
    /// told that it is final once all that it wrote is there.
    pub(crate) fn ends_behind_output(&mut self) -> (Vec<End>, Vec<End>) {
        let Outgoing { output, ends, ends_alone, .. } = &mut self.outgoing;
        let Output { waiting, under_way, .. } = output;
        if waiting.chunks.is_empty() && under_way.is_empty() {
            return (Vec::new(), Vec::new());
        }
        let waiting: BTreeSet<&JobId> = waiting.chunks.iter().map(|chunk| &chunk.job).collect();
        let is_held = |end: &mut End| waiting.contains(&end.job) || under_way.contains(&end.job);
        (ends.extract_if(.., is_held).collect(), ends_alone.extract_if(.., is_held).collect())
    }
}
