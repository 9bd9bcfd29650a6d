//! Who had which part of the fleet, and who should have had.

use model::{Millis, Timestamp};

use super::curves;
use super::plot::{self, Axis, Line};
use super::{Picture, Run};
use crate::number::{count, float, ratio};
use crate::share::{Busy, changes};
use crate::workload::{Sharer, Workload};

/// So many tenants are drawn: those with the most work.
const TENANTS_MAX: usize = 5;
/// Parts of the time for which a mean is drawn …
const SPANS: usize = 120;
/// … of so many looks each.
const LOOKS: usize = 16;

/// The share of each tenant and its target; `None` with a single tenant.
pub(super) fn shares(workload: &Workload, run: Run<'_>, number: usize) -> Option<Picture> {
    if workload.tenants.len() < 2 {
        return None;
    }
    let span = curves::end(workload, &[run]);
    let (unit, length) = plot::unit(span.0);
    let drawn = largest(workload);
    let sums = Sums::new(workload, run, &drawn, span);
    let mut lines = Vec::new();
    for (at, tenant) in drawn.iter().enumerate() {
        let name = format!("tenant {}", workload.tenants[*tenant].id);
        let points = |own: &[f64]| {
            let sums = own.iter().zip(&sums.all).enumerate();
            let points = sums.filter(|(_, (_, all))| **all > 0.0).map(|(ix, (own, all))| {
                let middle = (count(ix) + 0.5) / count(SPANS) * float(span.0.into());
                (middle / length, own / all)
            });
            points.collect::<Vec<_>>()
        };
        let target = Line::new(at, &format!("{name}, target"), points(&sums.due[at]));
        lines.push(Line::new(at, &name, points(&sums.had[at])));
        lines.push(Line { is_dashed: true, ..target });
    }
    let x_axis = Axis { title: format!("time ({unit})"), label: &plot::short };
    let percent = |part: &f64| format!("{:.0} %", part * 100.0);
    let y_axis = Axis { title: "slots in use".to_owned(), label: &percent };
    let ranges = (0.0..float(span.0.into()) / length, 0.0..1.0);
    Some(Picture {
        name: format!("shares-{number}"),
        title: format!("Shares under {}", run.name),
        note: "The part of the slots in use that each tenant had. Dashed: its target. What a \
               tenant with nothing waiting does not use of its due goes to the others, by weight."
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

/// Slots over time: what the drawn tenants had, what they were due, and what all had.
struct Sums {
    had: Vec<Vec<f64>>,
    due: Vec<Vec<f64>>,
    all: Vec<f64>,
}

impl Sums {
    /// Looks at what goes on at moments that lie equally far apart.
    fn new(workload: &Workload, run: Run<'_>, drawn: &[usize], span: Millis) -> Self {
        let none = || vec![vec![0.0; SPANS]; drawn.len()];
        let mut sums = Self { had: none(), due: none(), all: vec![0.0; SPANS] };
        let mut busy = vec![Busy::default(); workload.tenants.len()];
        let mut look = 0;
        for (at, tenant, change) in changes(workload, run.replay) {
            let from = look;
            while look < SPANS * LOOKS && moment(look, span) < at {
                look += 1;
            }
            if look > from {
                sums.add(from..look, &busy, &due(&workload.tenants, &busy), drawn);
            }
            busy[tenant].n_waiting += change.n_waiting;
            busy[tenant].slots += change.slots;
        }
        sums
    }

    fn add(&mut self, looks: std::ops::Range<usize>, busy: &[Busy], due: &[f64], drawn: &[usize]) {
        let all: i64 = busy.iter().map(|own| own.slots).sum();
        for look in looks {
            self.all[look / LOOKS] += float(all.into());
            for (ix, tenant) in drawn.iter().enumerate() {
                self.had[ix][look / LOOKS] += float(busy[*tenant].slots.into());
                self.due[ix][look / LOOKS] += due[*tenant];
            }
        }
    }
}

/// The moment of a look.
fn moment(look: usize, span: Millis) -> Timestamp {
    let (look, looks) = (i128::try_from(look).unwrap_or(0), i128::try_from(SPANS * LOOKS));
    let at = i128::from(span.0) * (2 * look + 1) / (2 * looks.unwrap_or(1));
    Timestamp(i64::try_from(at).unwrap_or(i64::MAX))
}

/// The slots that each tenant is due of those in use: by weight, but who has nothing waiting is due
/// no more than it has, and the others have the rest.
fn due(tenants: &[Sharer], busy: &[Busy]) -> Vec<f64> {
    let weight = |ix: usize| i128::from(tenants[ix].weight);
    // First those who ask for least: whatever they leave is for those after them.
    let mut order: Vec<usize> = (0..tenants.len()).filter(|ix| busy[*ix].wants()).collect();
    let asks = |ix: usize| ratio(busy[ix].slots.into(), weight(ix));
    order.sort_by(|one, two| {
        let is_open = |ix: &usize| busy[*ix].n_waiting > 0;
        is_open(one).cmp(&is_open(two)).then(asks(*one).total_cmp(&asks(*two))).then(one.cmp(two))
    });
    let mut weights: i128 = order.iter().map(|ix| weight(*ix)).sum();
    let mut left = float(busy.iter().map(|own| i128::from(own.slots)).sum());
    let mut due = vec![0.0; tenants.len()];
    for ix in order {
        let fair = left * ratio(weight(ix), weights);
        let own = float(busy[ix].slots.into());
        due[ix] = if busy[ix].n_waiting > 0 { fair } else { fair.min(own) };
        left -= due[ix];
        weights -= weight(ix);
    }
    due
}

impl Busy {
    /// Whether it has something waiting or running.
    const fn wants(&self) -> bool {
        self.n_waiting > 0 || self.slots > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::TenantId;

    #[test]
    fn what_one_leaves_the_others_are_due() {
        let tenants: Vec<Sharer> =
            [1, 1, 2].map(|weight| Sharer::new(TenantId::new("t"), weight)).to_vec();
        let busy = |n_waiting, slots| Busy { n_waiting, slots };
        // The third has nothing waiting and two slots: the other six are for the first two.
        assert_eq!(due(&tenants, &[busy(1, 6), busy(1, 0), busy(0, 2)]), [3.0, 3.0, 2.0]);
        // It has more than its due, and nothing waits: it is due its share.
        assert_eq!(due(&tenants, &[busy(1, 0), busy(1, 0), busy(0, 8)]), [2.0, 2.0, 4.0]);
    }
}
