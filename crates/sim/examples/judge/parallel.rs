//! A few replays at once, with results in the order of the inputs.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// What `work` makes of each of `all`, by `n_threads` threads. The first error wins.
pub(crate) fn map<T: Sync, U: Send>(
    all: &[T],
    n_threads: usize,
    work: impl Fn(usize, &T) -> Result<U, String> + Sync,
) -> Result<Vec<U>, String> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    let run = || {
        loop {
            let at = next.fetch_add(1, Ordering::SeqCst);
            let Some(one) = all.get(at) else { return };
            let result = work(at, one);
            done.lock().expect("no replay panics").push((at, result));
        }
    };
    thread::scope(|scope| {
        for _ in 0..n_threads {
            scope.spawn(run);
        }
    });
    let mut done = done.into_inner().expect("no replay panics");
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}
