//! The usage of an attempt's processes, from samples.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use model::Measured;
use tokio::time::Instant;

use super::group::is_member;
use crate::lock::lock;
use crate::proc::{self, Process};

/// A list of all processes is used for this time, so that attempts share it.
const FRESH: Duration = Duration::from_millis(100);

/// The last list of all processes.
#[derive(Debug, Default)]
pub(crate) struct Seen(Mutex<Option<(Instant, Arc<Vec<Process>>)>>);

impl Seen {
    fn processes(&self) -> Arc<Vec<Process>> {
        let mut seen = lock(&self.0);
        if let Some((at, processes)) = &*seen
            && at.elapsed() < FRESH
        {
            return Arc::clone(processes);
        }
        let processes = Arc::new(proc::processes());
        *seen = Some((Instant::now(), Arc::clone(&processes)));
        processes
    }
}

/// The usage of one attempt so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    ram_peak_kib: Option<u64>,
    ticks: Option<u64>,
    disk_bytes: Option<u64>,
}

impl Usage {
    /// Samples the processes of `leader`. Blocks for some milliseconds.
    pub(crate) fn look(self, leader: i32, seen: &Seen) -> Self {
        self.with(leader, &seen.processes())
    }

    /// The last sample, after the end of the leader and before it is reaped. It includes children
    /// that the leader waited for.
    pub(crate) fn look_last(self, leader: i32) -> Self {
        self.with(leader, &proc::processes())
    }

    fn with(mut self, leader: i32, processes: &[Process]) -> Self {
        let page_kib = u64::try_from(rustix::param::page_size() >> 10).unwrap_or(4);
        let members: Vec<&Process> =
            processes.iter().filter(|process| is_member(process, leader)).collect();
        if members.is_empty() {
            return self;
        }
        let ram_kib = members.iter().map(|member| member.resident_pages * page_kib).sum();
        raise(&mut self.ram_peak_kib, Some(ram_kib).filter(|kib| *kib > 0));
        for member in &members {
            raise(&mut self.ram_peak_kib, proc::ram_peak_kib(member.pid));
        }
        raise(&mut self.ticks, Some(members.iter().map(|member| member.ticks).sum()));
        let disk = members.iter().filter_map(|member| proc::disk_bytes(member.pid));
        raise(&mut self.disk_bytes, disk.reduce(|one, other| one + other));
        self
    }

    pub(crate) fn measured(self) -> Measured {
        let ticks_per_second = rustix::param::clock_ticks_per_second().max(1);
        Measured {
            ram_peak_mb: self.ram_peak_kib.map(|kib| kib.div_ceil(1_024)),
            cpu_ms: self.ticks.map(|ticks| ticks * 1_000 / ticks_per_second),
            disk_bytes: self.disk_bytes,
            out_of_memory: false,
        }
    }
}

/// The numbers of a process end with it, so the largest sample counts.
fn raise(known: &mut Option<u64>, seen: Option<u64>) {
    *known = (*known).max(seen);
}
