//! Processes and the machine, from `/proc`. Empty on other systems.

use std::collections::BTreeMap;
use std::fs;

/// One process, from `/proc/<pid>/stat`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    pub(crate) parent: i32,
    pub(crate) group: i32,
    pub(crate) session: i32,
    pub(crate) is_zombie: bool,
    /// CPU time in ticks: its own, and that of children that it waited for.
    pub(crate) ticks: u64,
    pub(crate) resident_pages: u64,
}

/// CPU time of the machine and of the worker, in ticks since the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Load {
    all: u64,
    busy: u64,
    own: u64,
}

/// Parts of the machine, from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Busy {
    pub(crate) all: f64,
    pub(crate) own: f64,
}

impl Load {
    /// The load between two samples. `None` if no time passed.
    pub(crate) fn busy_since(&self, before: &Self) -> Option<Busy> {
        let between = |now: u64, before: u64| {
            f64::from(u32::try_from(now.saturating_sub(before)).unwrap_or(u32::MAX))
        };
        let all = between(self.all, before.all);
        (all > 0.0).then(|| Busy {
            all: (between(self.busy, before.busy) / all).clamp(0.0, 1.0),
            own: (between(self.own, before.own) / all).clamp(0.0, 1.0),
        })
    }
}

/// The CPU time of the machine, and of this process and its children.
pub(crate) fn load() -> Option<Load> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let (all, busy) = cpu_ticks(&stat)?;
    let own = descendants_ticks(&processes(), i32::try_from(std::process::id()).ok()?);
    Some(Load { all, busy, own })
}

/// Free and total memory, in MiB: of the machine, or of the cgroup if that has less.
pub(crate) fn ram_mb() -> Option<(u64, u64)> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let kib = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    };
    let (free, total) = (kib("MemAvailable:")? >> 10, kib("MemTotal:")? >> 10);
    // A cgroup without a limit has `max`, which is not a number.
    let mib = |file: &str| Some(own_cgroup(file)?.trim().parse::<u64>().ok()? >> 20);
    match (mib("memory.max"), mib("memory.current")) {
        (Some(max), Some(used)) => Some((free.min(max.saturating_sub(used)), total.min(max))),
        _ => Some((free, total)),
    }
}

/// All visible processes.
pub(crate) fn processes() -> Vec<Process> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter_map(process).collect()
}

/// One process. `None` if it is gone.
pub(crate) fn process(pid: i32) -> Option<Process> {
    parsed(pid, &fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// Bytes that it read from and wrote to disks, with children that it waited for.
pub(crate) fn disk_bytes(pid: i32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/io")).ok()?;
    let number = |name: &str| -> Option<u64> {
        text.lines().find_map(|line| line.strip_prefix(name))?.trim().parse().ok()
    };
    Some(number("read_bytes:")? + number("write_bytes:")?)
}

/// Its peak memory in KiB. `None` if it is gone, or a zombie.
pub(crate) fn ram_peak_kib(pid: i32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// The number of out-of-memory kills, of the cgroup if there is one, or of the machine.
pub(crate) fn out_of_memory_kills() -> u64 {
    let own = own_cgroup("memory.events");
    let text = own.or_else(|| fs::read_to_string("/proc/vmstat").ok()).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
    line.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
}

/// A file of the worker's cgroup.
fn own_cgroup(file: &str) -> Option<String> {
    let text = fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = text.lines().find_map(|line| line.strip_prefix("0::"))?;
    fs::read_to_string(format!("/sys/fs/cgroup{path}/{file}")).ok()
}

/// All ticks and busy ticks, from the first line of `/proc/stat`.
fn cpu_ticks(stat: &str) -> Option<(u64, u64)> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Vec<u64> = line.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
    // user, nice, system, idle, iowait, irq, softirq, steal. The first two include guests.
    let ticks = ticks.get(..8)?;
    let all: u64 = ticks.iter().sum();
    Some((all, all - ticks[3] - ticks[4]))
}

/// CPU time of `root` and of its descendants.
fn descendants_ticks(processes: &[Process], root: i32) -> u64 {
    let mut children: BTreeMap<i32, Vec<&Process>> = BTreeMap::new();
    for process in processes {
        children.entry(process.parent).or_default().push(process);
    }
    let own = processes.iter().find(|process| process.pid == root).map_or(0, |one| one.ticks);
    let mut ticks = own;
    let mut open = vec![root];
    while let Some(pid) = open.pop() {
        for child in children.remove(&pid).unwrap_or_default() {
            ticks += child.ticks;
            open.push(child.pid);
        }
    }
    ticks
}

/// The name in the second field may hold any text, so fields are counted from its last bracket.
fn parsed(pid: i32, stat: &str) -> Option<Process> {
    let fields: Vec<&str> = stat.get(stat.rfind(')')? + 1..)?.split_whitespace().collect();
    let number = |index: usize| -> Option<u64> { fields.get(index)?.parse().ok() };
    let id = |index: usize| -> Option<i32> { fields.get(index)?.parse().ok() };
    Some(Process {
        pid,
        parent: id(1)?,
        group: id(2)?,
        session: id(3)?,
        is_zombie: fields.first() == Some(&"Z"),
        ticks: number(11)? + number(12)? + number(13)? + number(14)?,
        resident_pages: number(21)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_name_may_have_brackets_and_blanks() {
        let stat = "42 (a) b (c)) Z 7 8 9 0 -1 0 0 0 0 0 1 2 3 4 20 0 1 0 5 6 77 0";
        let expected = Process {
            pid: 42,
            parent: 7,
            group: 8,
            session: 9,
            is_zombie: true,
            ticks: 10,
            resident_pages: 77,
        };
        assert_eq!(parsed(42, stat), Some(expected));
        assert_eq!(parsed(42, "42 (cut"), None);
    }

    #[test]
    fn idle_and_waiting_for_disks_is_not_busy() {
        assert_eq!(cpu_ticks("cpu  1 2 3 40 50 6 7 8 9 10\ncpu0 1"), Some((117, 27)));
        assert_eq!(cpu_ticks("cpu 1 2"), None);
    }

    #[test]
    fn cpu_time_includes_all_descendants() {
        let process = |pid, parent, ticks| Process {
            pid,
            parent,
            group: 0,
            session: 0,
            is_zombie: false,
            ticks,
            resident_pages: 0,
        };
        let all = [process(1, 0, 1_000), process(2, 1, 1), process(3, 2, 20), process(4, 3, 300)];
        assert_eq!(descendants_ticks(&all, 2), 321);
    }

    #[test]
    fn process_list_has_this_process() {
        let pid = i32::try_from(std::process::id()).unwrap();
        assert!(processes().iter().any(|process| process.pid == pid));
        assert!(ram_peak_kib(pid).unwrap() > 0);
    }
}
