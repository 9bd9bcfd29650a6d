//! Who had which part of the fleet, and who should have had.

use model::{Millis, Timestamp};

use super::curves::{self, Spans};
use super::plot::{self, Axis, Line};
use super::{Picture, Run};
use crate::number::{float, ratio};
use crate::share::{Busy, changes};
use crate::workload::Workload;

/// So many tenants are drawn: those with the most work.
const TENANTS_MAX: usize = 5;

/// The share of each tenant and its target; `None` with a single tenant.
pub(super) fn shares(workload: &Workload, run: Run<'_>, number: usize) -> Option<Picture> {
    if workload.tenants.len() < 2 {
        return None;
    }
    let span = curves::end(workload, &[run]);
    let (unit, length) = plot::unit(span.0);
    let drawn = largest(workload);
    let (had, due) = sums(workload, run, &drawn, span);
    let mut lines = Vec::new();
    for (at, tenant) in drawn.iter().enumerate() {
        let name = format!("tenant {}", workload.tenants[*tenant].id);
        let points = |spans: &Spans, all: &[i128]| {
            let sums = spans.sums().iter().zip(all).enumerate();
            let points = sums
                .filter(|(_, (_, all))| **all > 0)
                .map(|(ix, (sum, all))| (spans.middle(ix) / length, ratio(*sum, *all)));
            points.collect::<Vec<_>>()
        };
        let target = Line {
            name: Some(format!("{name}, target")),
            is_dashed: true,
            ..Line::new(at, "", points(&due.parts[at], &due.all()))
        };
        lines.push(Line::new(at, &name, points(&had.parts[at], &had.all())));
        lines.push(target);
    }
    let x_axis = Axis { title: format!("time ({unit})"), label: &plot::short };
    let percent = |part: &f64| format!("{:.0} %", part * 100.0);
    let y_axis = Axis { title: "slots in use".to_owned(), label: &percent };
    let ranges = (0.0..float(span.0.into()) / length, 0.0..1.0);
    Some(Picture {
        name: format!("shares-{number}"),
        title: format!("Shares under {}", run.name),
        note: "The part of the slots in use that each tenant had. Dashed: what it was due by its \
               weight, among those who had something waiting or running."
            .to_owned(),
        svg: plot::lines(ranges, (&x_axis, &y_axis), &lines),
    })
}

/// The tenants with the most work, by place.
fn largest(workload: &Workload) -> Vec<usize> {
    let mut areas = vec![0_i64; workload.tenants.len()];
    for job in &workload.jobs {
        areas[job.tenant] = areas[job.tenant].saturating_add(job.area());
    }
    let mut order: Vec<usize> = (0..areas.len()).collect();
    order.sort_by_key(|tenant| (-areas[*tenant], *tenant));
    order.truncate(TENANTS_MAX);
    order.sort_unstable();
    order
}

/// Sums over time of those who are drawn, and of the others.
struct Sums {
    parts: Vec<Spans>,
    others: Spans,
}

impl Sums {
    fn new(n_drawn: usize, span: Millis) -> Self {
        let parts = (0..n_drawn).map(|_| Spans::new(span)).collect();
        Self { parts, others: Spans::new(span) }
    }

    fn all(&self) -> Vec<i128> {
        let mut all = self.others.sums().to_vec();
        for part in &self.parts {
            for (all, own) in all.iter_mut().zip(part.sums()) {
                *all += own;
            }
        }
        all
    }
}

/// What weights are multiplied by, so that parts of them are whole numbers.
const EXACT: i64 = 1_000_000;

/// The slots that tenants had, and the parts that they were due, over time.
fn sums(workload: &Workload, run: Run<'_>, drawn: &[usize], span: Millis) -> (Sums, Sums) {
    let (mut had, mut due) = (Sums::new(drawn.len(), span), Sums::new(drawn.len(), span));
    let mut busy = vec![Busy::default(); workload.tenants.len()];
    // Slots in use and weights of those who want some: of the drawn one by one, and of all.
    let (mut slots, mut weights, mut now) = (0_i64, 0_i64, Timestamp(0));
    for (at, tenant, change) in changes(workload, run.replay) {
        if at > now {
            let (mut slots_left, mut due_left) = (slots, if weights > 0 { EXACT } else { 0 });
            for (ix, tenant) in drawn.iter().enumerate() {
                had.parts[ix].add(now, at, busy[*tenant].slots);
                slots_left -= busy[*tenant].slots;
                if busy[*tenant].wants() {
                    let weight = i64::from(workload.tenants[*tenant].weight);
                    let part = EXACT * weight / weights.max(1);
                    due.parts[ix].add(now, at, part);
                    due_left -= part;
                }
            }
            had.others.add(now, at, slots_left);
            due.others.add(now, at, due_left);
            now = at;
        }
        let weight = i64::from(workload.tenants[tenant].weight);
        let own = &mut busy[tenant];
        let wanted = own.wants();
        own.n_waiting += change.n_waiting;
        own.slots += change.slots;
        slots += change.slots;
        weights += weight * (i64::from(own.wants()) - i64::from(wanted));
    }
    (had, due)
}

impl Busy {
    /// Whether it has something waiting or running.
    const fn wants(&self) -> bool {
        self.n_waiting > 0 || self.slots > 0
    }
}
