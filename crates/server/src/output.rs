//! What attempts put out is kept in the order in which it came, and before their ends.

use std::collections::BTreeSet;

use futures_util::FutureExt as _;
use model::JobId;
use store::{End, LogChunk};

use crate::dispatch::Outgoing;
use crate::scheduler::{Answer, Scheduler};

/// Bytes of output that may wait to be kept.
const LOG_BYTES_MAX: usize = 16 << 20;

impl Scheduler {
    /// Output waits for the output before it to be kept; what is too much for that is dropped.
    pub(crate) fn log(&mut self, chunk: LogChunk) {
        if let Some(live) = self.jobs.live_mut(&chunk.job) {
            live.has_output = true;
        }
        self.outgoing.log_bytes += chunk.bytes.len();
        if self.outgoing.log_bytes > LOG_BYTES_MAX {
            self.counters.add("logs_dropped", 1);
        } else {
            self.outgoing.logs.push(chunk);
        }
    }

    /// Output waits for the output before it to be kept.
    pub(crate) fn flush_logs(&mut self) {
        let Outgoing { logs, log_bytes, logging, .. } = &mut self.outgoing;
        if logs.is_empty() || !logging.is_empty() {
            return;
        }
        let logs = std::mem::take(logs);
        *log_bytes = 0;
        logging.extend(logs.iter().map(|chunk| chunk.job.clone()));
        self.call(|store| {
            let asked = logs.clone();
            async move { Answer::Logged(logs, store.log(asked).await) }.boxed()
        });
    }

    /// The store keeps it, or could not: then the same is tried again, before what came later.
    /// Keeping a piece twice does no harm.
    pub(crate) fn logged(
        &mut self,
        chunks: Vec<LogChunk>,
        answer: Result<Vec<bool>, store::Error>,
    ) {
        self.outgoing.logging.clear();
        if answer.is_err() {
            self.outgoing.log_bytes += chunks.iter().map(|chunk| chunk.bytes.len()).sum::<usize>();
            self.outgoing.logs.splice(..0, chunks);
        }
        self.noted(answer);
    }

    /// Takes out ends of jobs whose output is not kept yet, of both lists: whoever follows a job is
    /// told that it is final once all that it wrote is there.
    pub(crate) fn ends_behind_output(&mut self) -> (Vec<End>, Vec<End>) {
        let Outgoing { logs, logging, ends, ends_alone, .. } = &mut self.outgoing;
        if logs.is_empty() && logging.is_empty() {
            return (Vec::new(), Vec::new());
        }
        let waiting: BTreeSet<&JobId> = logs.iter().map(|chunk| &chunk.job).collect();
        let is_held = |end: &mut End| waiting.contains(&end.job) || logging.contains(&end.job);
        (ends.extract_if(.., is_held).collect(), ends_alone.extract_if(.., is_held).collect())
    }
}
