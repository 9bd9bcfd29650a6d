//! One page with tables and pictures, that opens without a network.

mod curves;
mod plot;
mod shares;
mod frontier;
mod gantt;
mod page;

use crate::engine::Replay;
use crate::fleet::Fleet;
use crate::workload::Workload;

pub use frontier::{Point, frontier};
pub use page::{Table, page};

/// What became of a workload under a policy.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// What the policy is called.
    pub name: &'a str,
    /// What happened.
    pub replay: &'a Replay,
}

/// A drawing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// What its file is called, without `.svg`.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// How to read it.
    pub note: String,
    /// The drawing itself, as SVG that needs nothing else.
    pub svg: String,
}

/// So many policies are told apart by colour and dash.
pub const RUNS_MAX: usize = 8;

/// The pictures of up to [`RUNS_MAX`] replays of one workload on one fleet; others are left out.
pub fn pictures(workload: &Workload, fleet: &Fleet, runs: &[Run<'_>]) -> Vec<Picture> {
    let runs = &runs[..runs.len().min(RUNS_MAX)];
    let mut pictures = vec![curves::waits(workload, runs), curves::queue(workload, runs)];
    for (number, run) in (1..).zip(runs) {
        pictures.extend(shares::shares(workload, fleet, *run, number));
    }
    for (number, run) in (1..).zip(runs) {
        pictures.extend(gantt::gantt(workload, fleet, *run, number));
    }
    pictures
}

/// Two figures that move against each other: a line for each way to trade one for the other.
pub fn trade(name: &str, (x, y): (&str, &str), lines: &[(&str, Vec<(f64, f64)>)]) -> Picture {
    let x_axis = plot::Axis { title: x.to_owned(), label: &plot::short };
    let y_axis = plot::Axis { title: y.to_owned(), label: &plot::short };
    let points = || lines.iter().flat_map(|(_, points)| points);
    let ranges =
        (plot::up_to(points().map(|point| point.0)), plot::up_to(points().map(|point| point.1)));
    let lines = lines.iter().enumerate();
    let lines: Vec<plot::Line> =
        lines.map(|(at, (name, points))| plot::Line::new(at, name, points.clone())).collect();
    Picture {
        name: name.to_owned(),
        title: format!("{x} against {y}"),
        note: "Nearer to the corner is better.".to_owned(),
        svg: plot::lines(ranges, (&x_axis, &y_axis), &lines),
    }
}
