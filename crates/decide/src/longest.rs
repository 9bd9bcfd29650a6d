//! Who waits longest, however many wait.
//!
//! Looks at lines, never at jobs: its cost depends on how many kinds of jobs wait.

use model::{JobId, Timestamp};

use crate::queue::Line;
use crate::world::World;

/// One of jobs that stand in line and that only their order tells apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LongWait {
    /// The oldest of them; under a policy that never goes by age alone, the one that is next.
    pub job: JobId,
    /// When it became ready.
    pub ready: Timestamp,
    /// How many more there are.
    pub n_alike: u64,
}

impl World {
    /// At most so many, those who have waited longest first.
    pub fn longest_waits(&self, max: usize) -> Vec<LongWait> {
        let mut waits: Vec<LongWait> =
            self.queue.lines.iter().filter_map(|(_, line)| self.longest_of(line)).collect();
        waits.sort_by(|one, other| (one.ready, &one.job).cmp(&(other.ready, &other.job)));
        waits.truncate(max);
        waits
    }

    fn longest_of(&self, line: &Line) -> Option<LongWait> {
        let n_alike = line.jobs.len().checked_sub(1)?;
        let oldest = line.by_age.first_key_value().map(|(_, job)| *job);
        let waiting = &self.queue.jobs[oldest.unwrap_or(line.head.job)];
        let (job, ready) = (waiting.id.clone(), waiting.standing.ready);
        Some(LongWait { job, ready, n_alike: u64::try_from(n_alike).unwrap_or(u64::MAX) })
    }
}
