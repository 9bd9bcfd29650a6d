//! How long jobs waited, and how many did at a time.

use model::{Millis, Timestamp};
use plotters::prelude::IntoLogRange as _;

use super::plot::{self, Axis, Line};
use super::{Picture, Run};
use crate::number::{count, float, ratio};
use crate::share::changes;
use crate::workload::Workload;

/// Waits below this are drawn as this: a scale by powers of ten has no zero.
const WAIT_MIN_S: f64 = 0.1;
/// Points of a curve.
const POINTS: u32 = 400;
/// Parts of the time for which a mean is drawn.
const SPANS: usize = 300;

/// Which part of the jobs waited no longer than so long.
pub(super) fn waits(workload: &Workload, runs: &[Run<'_>]) -> Picture {
    let sorted = runs.iter().map(|run| {
        let jobs = workload.jobs.iter().zip(&run.replay.starts);
        let mut waits: Vec<i64> = jobs.map(|(job, start)| start.at.since(job.arrival).0).collect();
        waits.sort_unstable();
        waits
    });
    let sorted: Vec<Vec<i64>> = sorted.collect();
    let longest = sorted.iter().filter_map(|waits| waits.last()).max().copied().unwrap_or(0);
    let longest = (float(longest.into()) / 1_000.0).max(10.0 * WAIT_MIN_S);
    let step = libm::pow(longest / WAIT_MIN_S, 1.0 / f64::from(POINTS));
    let lines = runs.iter().zip(&sorted).enumerate().map(|(at, (run, waits))| {
        let points = (0..=POINTS).map(|point| {
            let wait_s = WAIT_MIN_S * libm::pow(step, f64::from(point));
            let n_below = waits.partition_point(|wait| float((*wait).into()) <= wait_s * 1_000.0);
            (wait_s, count(n_below) / count(waits.len()).max(1.0))
        });
        Line::new(at, run.name, points.collect())
    });
    let x_axis = Axis { title: "wait (seconds, by powers of ten)".to_owned(), label: &plot::short };
    let percent = |part: &f64| format!("{:.0} %", part * 100.0);
    let y_axis = Axis { title: "jobs".to_owned(), label: &percent };
    let ranges = ((WAIT_MIN_S..longest * 1.05).log_scale(), 0.0..1.0);
    let lines: Vec<Line> = lines.collect();
    Picture {
        name: "waits".to_owned(),
        title: "Waits".to_owned(),
        note: "The part of the jobs that waited no longer than so long. Higher is better; where a \
               line begins is the part that did not wait at all."
            .to_owned(),
        svg: plot::lines(ranges, (&x_axis, &y_axis), &lines),
    }
}

/// How many jobs waited, over time.
pub(super) fn queue(workload: &Workload, runs: &[Run<'_>]) -> Picture {
    let span = end(workload, runs);
    let (unit, length) = plot::unit(span.0);
    let lines = runs.iter().enumerate().map(|(at, run)| {
        let means = means(workload, *run, span);
        let points = means.into_iter().map(|(at_ms, n_jobs)| (at_ms / length, n_jobs));
        Line::new(at, run.name, points.collect())
    });
    let lines: Vec<Line> = lines.collect();
    let points = || lines.iter().flat_map(|line| &line.points);
    let ranges =
        (0.0..float(span.0.into()) / length, plot::up_to(points().map(|(_, n_jobs)| *n_jobs)));
    let x_axis = Axis { title: format!("time ({unit})"), label: &plot::short };
    let y_axis = Axis { title: "jobs waiting".to_owned(), label: &plot::short };
    Picture {
        name: "queue".to_owned(),
        title: "Queue".to_owned(),
        note: format!("How many jobs wait; each point is the mean of 1/{SPANS} of the time."),
        svg: plot::lines(ranges, (&x_axis, &y_axis), &lines),
    }
}

/// When the last job of all runs has ended.
pub(super) fn end(workload: &Workload, runs: &[Run<'_>]) -> Millis {
    let ends = runs.iter().flat_map(|run| run.replay.starts.iter().map(|start| start.end));
    Millis(ends.chain([workload.last_arrival()]).max().map_or(1, |end| end.0).max(1))
}

/// How many jobs waited on average in each part of the time, with the middle of that part.
fn means(workload: &Workload, run: Run<'_>, span: Millis) -> Vec<(f64, f64)> {
    let mut spans = Spans::new(span);
    let (mut n_waiting, mut now) = (0, Timestamp(0));
    for (at, _, change) in changes(workload, run.replay) {
        spans.add(now, at, n_waiting);
        now = at;
        n_waiting += change.n_waiting;
    }
    spans.means()
}

/// Sums over equal parts of the time.
struct Spans {
    length: i64,
    sums: Vec<i128>,
}

impl Spans {
    fn new(span: Millis) -> Self {
        let n_spans = i64::try_from(SPANS).unwrap_or(i64::MAX);
        Self { length: (span.0 / n_spans).max(1) + 1, sums: vec![0; SPANS] }
    }

    /// Something was so much from one moment to another.
    fn add(&mut self, from: Timestamp, until: Timestamp, much: i64) {
        let mut from = from.0;
        while from < until.0 && much != 0 {
            let ix = from / self.length;
            let next = until.0.min((ix + 1) * self.length);
            if let Some(sum) = usize::try_from(ix).ok().and_then(|ix| self.sums.get_mut(ix)) {
                *sum += i128::from(next - from) * i128::from(much);
            }
            from = next;
        }
    }

    fn means(&self) -> Vec<(f64, f64)> {
        let sums = self.sums.iter().enumerate();
        let middle = |ix: usize| (count(ix) + 0.5) * float(self.length.into());
        sums.map(|(ix, sum)| (middle(ix), ratio(*sum, self.length.into()))).collect()
    }
}
