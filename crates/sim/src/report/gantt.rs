//! Which slot was busy when, and for whom.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use model::{Millis, Timestamp};
use plotters::prelude::*;

use super::plot::{self, Axis};
use super::{Picture, Run};
use crate::engine::Start;
use crate::fleet::Fleet;
use crate::number::{count, float};
use crate::share::changes;
use crate::workload::Workload;

/// So many slots are drawn.
const SLOTS_MAX: u64 = 128;
/// So many attempts start in what is drawn: those around the longest queue.
const ATTEMPTS_MAX: usize = 1_200;
/// Rows of slots are so high.
const ROW: u32 = 9;

/// What ran where; `None` on a fleet too large to be drawn.
pub(super) fn gantt(
    workload: &Workload,
    fleet: &Fleet,
    run: Run<'_>,
    number: usize,
) -> Option<Picture> {
    if fleet.slots() > SLOTS_MAX {
        return None;
    }
    let (from, until) = around_the_longest_queue(workload, run)?;
    let mut attempts: Vec<(usize, Start)> = run.replay.attempts().collect();
    attempts.retain(|(_, start)| start.at < until && start.end > from);
    attempts.sort_by_key(|(job, start)| (start.at, *job));
    let rows = Rows::new(workload, fleet, &attempts);
    let (unit, length) = plot::unit(until.since(from).0);
    let time = |at: Timestamp| float(at.0.into()) / length;
    let bars = rows.bars.iter().map(|(row, attempt)| {
        let (job, start) = attempts[*attempt];
        let color = plot::color(workload.jobs[job].tenant);
        let is_lost = run.replay.starts[job] != start;
        (count(*row), time(start.at.max(from)), time(start.end.min(until)), color, is_lost)
    });
    let bars: Vec<(f64, f64, f64, RGBColor, bool)> = bars.collect();
    let tenants = workload.tenants.iter().take(6).enumerate();
    let names: Vec<(String, RGBColor)> =
        tenants.map(|(at, tenant)| (format!("tenant {}", tenant.id), plot::color(at))).collect();
    let height = 110 + ROW * u32::try_from(rows.n_rows).unwrap_or(0).max(8);
    let x_axis = Axis { title: format!("time ({unit})"), label: &plot::short };
    let y_axis = Axis { title: "slots, worker by worker".to_owned(), label: &plot::short };
    let svg = plot::draw((plot::SIZE.0, height), |root| {
        let names: Vec<(&str, RGBColor, bool)> =
            names.iter().map(|(name, color)| (name.as_str(), *color, false)).collect();
        let below = plot::legend(root, &names)?;
        let mut chart = ChartBuilder::on(&below)
            .margin_right(24)
            .margin_left(12)
            .margin_top(8)
            .x_label_area_size(44)
            .y_label_area_size(70)
            .build_cartesian_2d(time(from)..time(until), count(rows.n_rows)..0.0)?;
        plot::frame(&mut chart, &x_axis, &y_axis)?;
        chart.draw_series(bars.iter().map(|(row, from, until, color, is_lost)| {
            let style = if *is_lost { color.mix(0.35).filled() } else { color.mix(0.9).filled() };
            Rectangle::new([(*from, row + 0.08), (*until, row + 0.92)], style)
        }))?;
        // What touches is told apart by where it ends.
        let edge = plot::INK.mix(0.5);
        chart.draw_series(bars.iter().map(|(row, _, until, ..)| {
            PathElement::new(vec![(*until, row + 0.08), (*until, row + 0.92)], edge)
        }))?;
        Ok(())
    });
    let is_all = attempts.len() == run.replay.starts.len() + run.replay.lost.len();
    let which = if is_all { "All attempts" } else { "The time around the longest queue" };
    Some(Picture {
        name: format!("slots-{number}"),
        title: format!("Slots under {}", run.name),
        note: format!(
            "{which}, each slot a row, coloured by tenant. Empty is idle; what is pale was \
             preempted or lost."
        ),
        svg,
    })
}

/// All of the time, or that in which a few attempts start around when most jobs wait.
fn around_the_longest_queue(workload: &Workload, run: Run<'_>) -> Option<(Timestamp, Timestamp)> {
    let mut starts: Vec<Timestamp> = run.replay.attempts().map(|(_, start)| start.at).collect();
    starts.sort_unstable();
    if starts.len() <= ATTEMPTS_MAX {
        let end = run.replay.starts.iter().map(|start| start.end).max()?;
        return Some((*starts.first()?, end));
    }
    let (mut n_waiting, mut most) = (0, (0, Reverse(Timestamp(0))));
    for (at, _, change) in changes(workload, run.replay) {
        n_waiting += change.n_waiting;
        most = most.max((n_waiting, Reverse(at)));
    }
    let (_, Reverse(peak)) = most;
    let middle = starts.partition_point(|at| *at < peak);
    let first = middle.saturating_sub(ATTEMPTS_MAX / 2).min(starts.len() - ATTEMPTS_MAX);
    let (from, until) = (starts[first], starts[first + ATTEMPTS_MAX - 1]);
    // If all start at once there is still something to see.
    Some((from, until.max(from + Millis(1))))
}

/// Attempts in rows, none over another.
struct Rows {
    n_rows: usize,
    /// A row and the attempt that is in it.
    bars: Vec<(usize, usize)>,
}

impl Rows {
    /// Each worker has a row for each of its slots; an attempt takes the first that are free.
    fn new(workload: &Workload, fleet: &Fleet, attempts: &[(usize, Start)]) -> Self {
        let mut first = BTreeMap::new();
        let mut n_rows = 0;
        for (worker, own) in fleet.workers.iter().enumerate() {
            first.insert(worker, n_rows);
            n_rows += usize::try_from(own.slots).unwrap_or(usize::MAX);
        }
        let mut free_from = vec![Timestamp(i64::MIN); n_rows];
        let mut bars = Vec::new();
        for (ix, (job, start)) in attempts.iter().enumerate() {
            let from = first[&start.worker];
            let slots = usize::try_from(fleet.workers[start.worker].slots).unwrap_or(0);
            let mut left = workload.jobs[*job].slots;
            for (row, free) in free_from.iter_mut().enumerate().skip(from).take(slots) {
                if left > 0 && *free <= start.at {
                    *free = start.end;
                    bars.push((row, ix));
                    left -= 1;
                }
            }
        }
        Self { n_rows, bars }
    }
}
