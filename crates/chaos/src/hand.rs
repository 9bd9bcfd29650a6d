//! A worker process. It runs jobs as their payloads say, and records its runs.

use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use faults::now_ms;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use worker::{Attempt, Done, Failure, Outcome, Stream, Worker};

use crate::Error;
use crate::crew::offer;
use crate::load::{End, FLEETING, Manner, TYPES};

/// The interval of a job's output.
const SAY_EVERY: Duration = Duration::from_millis(150);

/// Options of a worker process.
#[derive(Clone, Debug, clap::Args)]
pub struct Hand {
    /// The address of a scheduler.
    #[arg(long)]
    server: String,
    /// The name of the worker.
    #[arg(long)]
    name: String,
    /// The index of the worker, which selects its offer.
    #[arg(long)]
    place: usize,
    /// The file for its records.
    #[arg(long)]
    log: PathBuf,
}

/// Works until it is asked to stop.
pub fn work(hand: &Hand) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(Error::system("start a runtime"))?.block_on(async {
        let log = File::options().create(true).append(true).open(&hand.log);
        let log = Arc::new(log.map_err(Error::system("open a log"))?);
        let offer = offer(hand.place);
        let mut builder = Worker::builder(&hand.server)
            .name(&hand.name)
            .pool(&offer.pool)
            .slots(offer.slots)
            .leave_grace(Duration::from_secs(1))
            .stop_grace(Duration::from_millis(100));
        for (name, n) in &offer.amounts {
            builder = builder.amount(name, *n);
        }
        for (key, value) in
            offer.has.iter().flat_map(|(key, all)| all.iter().map(move |v| (key, v)))
        {
            builder = builder.has(key, value);
        }
        for kind in TYPES.into_iter().filter(|kind| offer.types.contains(*kind)) {
            let (log, name) = (Arc::clone(&log), hand.name.clone());
            builder = builder.type_(kind, 0, move |attempt: Attempt| {
                run(attempt, Arc::clone(&log), name.clone(), kind)
            });
        }
        let shutdown = CancellationToken::new();
        let mut asked = signal(SignalKind::terminate()).map_err(Error::system("hear signals"))?;
        let stop = shutdown.clone();
        tokio::spawn(async move {
            asked.recv().await;
            stop.cancel();
        });
        Ok(builder.build()?.run(shutdown).await?)
    })
}

/// A run of a job. A drop before its end is recorded too.
struct Run {
    log: Arc<File>,
    token: String,
    is_over: bool,
}

impl Run {
    fn begin(log: Arc<File>, token: String) -> Self {
        let run = Self { log, token, is_over: false };
        run.mark("start");
        run
    }

    fn end(&mut self, what: &str) {
        self.mark(what);
        self.is_over = true;
    }

    /// One write for each line, so that no line is incomplete.
    fn mark(&self, what: &str) {
        let line = format!("{what} {} {}\n", self.token, now_ms());
        // An error is ignored, because the checker finds the missing record.
        let _ = (&*self.log).write_all(line.as_bytes());
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if !self.is_over {
            self.mark("stop");
        }
    }
}

async fn run(attempt: Attempt, log: Arc<File>, worker: String, kind: &str) -> Outcome {
    let token = format!("{} {} {worker}", attempt.job(), attempt.number());
    let mut run = Run::begin(log, token.clone());
    let manner: Manner = serde_json::from_slice(attempt.payload())
        .map_err(|error| Failure::permanent(error.to_string()))?;
    let mut voice = Voice { attempt: &attempt, token: &token, n_lines: 0 };
    // A job with output is not deleted at its end.
    let says = kind != FLEETING;
    let whole = Duration::from_millis(manner.ms);
    let mut left = whole;
    loop {
        if says {
            voice.say(&run, 1.0 - part(left, whole));
        }
        let piece = left.min(SAY_EVERY);
        tokio::select! {
            () = tokio::time::sleep(piece) => {}
            () = attempt.stop_token().cancelled() => {
                run.end("stop");
                return Err(Failure::transient("stopped"));
            }
        }
        left -= piece;
        if left.is_zero() {
            break;
        }
    }
    let is_failing = match manner.end {
        End::Done => false,
        End::Flaky => attempt.failures() == 0,
        End::Failing => true,
        End::Wrong => {
            run.end("fail");
            return Err(Failure::permanent("this will not pass"));
        }
    };
    if is_failing {
        run.end("fail");
        return Err(Failure::transient("this may pass"));
    }
    if says {
        voice.say(&run, 1.0);
    }
    run.end("end");
    // A job with a result is not deleted at its end.
    Ok(if kind == FLEETING { Done::new() } else { Done::with_result(token) })
}

fn part(of: Duration, whole: Duration) -> f64 {
    if whole.is_zero() { 0.0 } else { of.as_secs_f64() / whole.as_secs_f64() }
}

/// The output and progress of an attempt.
struct Voice<'a> {
    attempt: &'a Attempt,
    token: &'a str,
    n_lines: u32,
}

impl Voice<'_> {
    /// Writes one more line, and reports progress.
    fn say(&mut self, run: &Run, fraction: f64) {
        self.n_lines += 1;
        let line = format!("{} {}", self.token, self.n_lines);
        run.mark("line");
        self.attempt.log(Stream::Out, format!("{line}\n").as_bytes());
        self.attempt.progress(fraction, &line);
    }
}
