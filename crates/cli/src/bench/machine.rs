//! What a benchmark asks of the machine: the clock, the memory, the terminal.

use std::time::{Duration, Instant};

use indicatif::ProgressBar;

use crate::print;

/// Runs `work` and says how long it took.
#[expect(clippy::disallowed_methods, reason = "a benchmark is what reads the clock")]
pub(crate) fn timed<R>(work: impl FnOnce() -> R) -> (R, Duration) {
    let start = Instant::now();
    let result = work();
    (result, start.elapsed())
}

/// Memory that this process holds, in bytes; zero where the system does not say.
pub(crate) fn resident() -> usize {
    const PAGE: usize = 4_096;
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text.split_whitespace().nth(1).and_then(|pages| pages.parse::<usize>().ok());
    pages.unwrap_or(0) * PAGE
}

/// For how long this thread has had a core to itself, in seconds; zero where the system does not
/// say. What others do on the machine does not count.
pub(crate) fn on_core() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = text.split_whitespace().next().and_then(|nanos| nanos.parse::<f64>().ok());
    nanos.unwrap_or(0.0) / 1e9
}

/// The most memory that this process ever held, in bytes; zero where the system does not say.
pub(crate) fn peak() -> usize {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<usize>().ok());
    kilobytes.unwrap_or(0) * 1_024
}

/// Tells a person who watches what is being measured.
pub(crate) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    pub(crate) fn start() -> Self {
        let bar =
            if print::is_watched() { ProgressBar::new_spinner() } else { ProgressBar::hidden() };
        bar.enable_steady_tick(Duration::from_millis(100));
        Self { bar }
    }

    pub(crate) fn say(&self, what: String) {
        self.bar.set_message(what);
    }

    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
