//! The slots that each tenant has, and those that it is due, over time.

use model::{Millis, Timestamp};
use plotters::prelude::*;

use super::curves;
use super::plot::{self, Axis};
use super::{Picture, Run};
use crate::due::Kinds;
use crate::fleet::Fleet;
use crate::number::{count, float};
use crate::workload::Workload;

/// So many tenants are drawn: those with the most work.
const TENANTS_MAX: usize = 6;
/// Windows of the time, for each of which a mean is drawn …
const SPANS: usize = 120;
/// … of so many looks each.
const LOOKS: usize = 16;
/// The height of a tenant's panel, and of the labels of time below the last one.
const PANEL: u32 = 120;
const LABELS: u32 = 44;

/// Slots in use and due, tenant by tenant; `None` with a single tenant.
pub(super) fn shares(
    workload: &Workload,
    fleet: &Fleet,
    run: Run<'_>,
    number: usize,
) -> Option<Picture> {
    if workload.tenants.len() < 2 {
        return None;
    }
    let span = curves::end(workload, &[run]);
    let kinds = Kinds::new(workload, fleet);
    let drawn = largest(workload);
    let sums = Sums::new(workload, &kinds, run, (&drawn, span));
    let which = if kinds.are_apart { "can run on" } else { "may need; all slots count as alike" };
    let others = workload.tenants.len() - drawn.len();
    let others =
        if others > 0 { format!(" {others} more tenants are not drawn.") } else { String::new() };
    Some(Picture {
        name: format!("shares-{number}"),
        title: format!("Shares under {}", run.name),
        note: format!(
            "Slots in use by each tenant, filled, and the slots that it is due, dashed: means over \
             1/{SPANS} of the time. Where a tenant has less than its due, the gap is red. The due \
             is the weighted max-min of the slots that tenants use or wait for, by the workers \
             that their jobs {which}. It is fluid: jobs that run are not stopped, and jobs of \
             several slots need not fit.{others}"
        ),
        svg: draw(workload, &sums, &drawn, span),
    })
}

fn draw(workload: &Workload, sums: &Sums, drawn: &[usize], span: Millis) -> String {
    let (unit, length) = plot::unit(span.0);
    let until = float(span.0.into()) / length;
    let x_of = |ix: usize| (count(ix) + 0.5) / count(SPANS) * until;
    let points = |own: &[f64]| own.iter().enumerate().map(|(ix, y)| (x_of(ix), *y)).collect();
    let all = sums.had.iter().chain(&sums.due).flatten().copied();
    let top = plot::up_to(all).end;
    let names = drawn.iter().enumerate().map(|(at, tenant)| {
        let own = &workload.tenants[*tenant];
        (format!("tenant {}, weight {}", own.id, own.weight), plot::color(at), false)
    });
    let dues = [("due".to_owned(), plot::INK, true), ("less than due".to_owned(), SHORT, false)];
    let names: Vec<(String, RGBColor, bool)> = names.chain(dues).collect();
    let names: Vec<(&str, RGBColor, bool)> =
        names.iter().map(|(name, color, dashed)| (name.as_str(), *color, *dashed)).collect();
    let places = plot::legend_places(plot::SIZE.0, names.iter().map(|(name, ..)| *name));
    let legend = u32::try_from(plot::legend_height(&places)).unwrap_or(0);
    let n_panels = u32::try_from(drawn.len()).unwrap_or(0);
    let height = legend + LABELS + PANEL * n_panels;
    plot::draw((plot::SIZE.0, height), |root| {
        let mut rest = plot::legend(root, &names)?;
        for at in 0..drawn.len() {
            let is_last = at + 1 == drawn.len();
            let panel;
            (panel, rest) = rest.split_vertically(if is_last { PANEL + LABELS } else { PANEL });
            let x_title = if is_last { format!("time ({unit})") } else { String::new() };
            let nothing = |_: &f64| String::new();
            let x_label: &dyn Fn(&f64) -> String = if is_last { &plot::short } else { &nothing };
            let x_axis = Axis { title: x_title, label: x_label };
            let y_axis = Axis { title: "slots".to_owned(), label: &plot::short };
            let mut chart = ChartBuilder::on(&panel)
                .margin_right(24)
                .margin_left(12)
                .margin_top(8)
                .x_label_area_size(if is_last { LABELS } else { 6 })
                .y_label_area_size(70)
                .build_cartesian_2d(0.0..until, 0.0..top)?;
            plot::frame(&mut chart, &x_axis, &y_axis)?;
            let had: Vec<(f64, f64)> = points(&sums.had[at]);
            let due: Vec<(f64, f64)> = points(&sums.due[at]);
            let color = plot::color(at);
            chart.draw_series([Polygon::new(under(&had), color.mix(0.35))])?;
            let gaps = had.windows(2).zip(due.windows(2)).filter_map(|(had, due)| {
                let is_short = had.iter().zip(due).all(|(had, due)| had.1 < due.1);
                let corners = vec![had[0], had[1], due[1], due[0]];
                is_short.then(|| Polygon::new(corners, SHORT.mix(0.35)))
            });
            chart.draw_series(gaps)?;
            chart.draw_series(LineSeries::new(had.iter().copied(), color.stroke_width(2)))?;
            let style = plot::INK.stroke_width(1);
            chart.draw_series(DashedLineSeries::new(due.iter().copied(), 5, 3, style))?;
        }
        Ok(())
    })
}

/// Marks what a tenant lacks of its due.
const SHORT: RGBColor = RGBColor(200, 30, 45);

/// The area below a line.
fn under(line: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let ends = line.last().into_iter().chain(line.first()).map(|(x, _)| (*x, 0.0));
    line.iter().copied().chain(ends).collect()
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

/// Slots over time: what the drawn tenants had, and what they were due.
struct Sums {
    had: Vec<Vec<f64>>,
    due: Vec<Vec<f64>>,
}

/// A job begins or ceases to ask for slots, or to have them.
struct Change {
    at: Timestamp,
    tenant: usize,
    kind: usize,
    asked: f64,
    had: f64,
}

impl Sums {
    /// Looks at what goes on at moments that lie equally far apart.
    fn new(
        workload: &Workload,
        kinds: &Kinds,
        run: Run<'_>,
        (drawn, span): (&[usize], Millis),
    ) -> Self {
        let none = || vec![vec![0.0; SPANS]; drawn.len()];
        let mut sums = Self { had: none(), due: none() };
        let n_tenants = workload.tenants.len();
        let weights: Vec<f64> =
            workload.tenants.iter().map(|tenant| f64::from(tenant.weight)).collect();
        let mut asks = vec![vec![0.0; kinds.count]; n_tenants];
        let mut had = vec![0.0; n_tenants];
        let mut changes = changes(workload, kinds, run).into_iter().peekable();
        for look in 0..SPANS * LOOKS {
            while let Some(change) = changes.next_if(|own| own.at <= moment(look, span)) {
                asks[change.tenant][change.kind] += change.asked;
                had[change.tenant] += change.had;
            }
            let due = kinds.due(&weights, &asks);
            for (ix, tenant) in drawn.iter().enumerate() {
                sums.had[ix][look / LOOKS] += had[*tenant] / count(LOOKS);
                sums.due[ix][look / LOOKS] += due[*tenant] / count(LOOKS);
            }
        }
        sums
    }
}

/// By moment. A job asks for its slots from its arrival to its end, whatever becomes of attempts.
fn changes(workload: &Workload, kinds: &Kinds, run: Run<'_>) -> Vec<Change> {
    let mut changes = Vec::new();
    let mut add = |job: usize, at: Timestamp, (asked, had): (f64, f64)| {
        let own = &workload.jobs[job];
        let slots = f64::from(own.slots);
        let (tenant, kind) = (own.tenant, kinds.of_fit[own.fit]);
        changes.push(Change { at, tenant, kind, asked: asked * slots, had: had * slots });
    };
    for (job, start) in run.replay.starts.iter().enumerate() {
        add(job, workload.jobs[job].arrival, (1.0, 0.0));
        add(job, start.end, (-1.0, 0.0));
    }
    for (job, start) in run.replay.attempts() {
        add(job, start.at, (0.0, 1.0));
        add(job, start.end, (0.0, -1.0));
    }
    changes.sort_by_key(|change| change.at);
    changes
}

/// The moment of a look.
fn moment(look: usize, span: Millis) -> Timestamp {
    let (look, looks) = (i128::try_from(look).unwrap_or(0), i128::try_from(SPANS * LOOKS));
    let at = i128::from(span.0) * (2 * look + 1) / (2 * looks.unwrap_or(1));
    Timestamp(i64::try_from(at).unwrap_or(i64::MAX))
}
