//! Two figures for each value of one number of a policy.

use plotters::prelude::*;

use super::Picture;
use super::plot::{self, Axis};

/// The figures of one value.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// The value.
    pub name: String,
    /// The two figures.
    pub at: (f64, f64),
    /// Whether this is the policy as it is.
    pub is_default: bool,
}

const FONT: (&str, i32) = ("sans-serif", 13);
/// Names of points that are nearer to each other than this, in pixels, are written side by side.
const NEAR: (i32, i32) = (60, 15);

/// Draws one figure against the other, with the value at each point. The default is marked.
pub fn frontier(name: &str, field: &str, (x, y): (&str, &str), points: &[Point]) -> Picture {
    let x_axis = Axis { title: x.to_owned(), label: &plot::short };
    let y_axis = Axis { title: y.to_owned(), label: &plot::short };
    let x_range = range(points.iter().map(|point| point.at.0));
    let y_range = range(points.iter().map(|point| point.at.1));
    let svg = plot::draw(plot::SIZE, |root| {
        let names = [(field, plot::color(0), false), ("default", plot::color(1), false)];
        let below = plot::legend(root, &names)?;
        let mut chart = ChartBuilder::on(&below)
            .margin_right(60)
            .margin_left(12)
            .margin_top(8)
            .x_label_area_size(44)
            .y_label_area_size(70)
            .build_cartesian_2d(x_range, y_range)?;
        plot::frame(&mut chart, &x_axis, &y_axis)?;
        let values = || points.iter().filter(|point| !point.is_default);
        let line = values().map(|point| point.at);
        chart.draw_series(LineSeries::new(line, plot::color(0).mix(0.6).stroke_width(2)))?;
        chart
            .draw_series(values().map(|point| Circle::new(point.at, 4, plot::color(0).filled())))?;
        let default = points.iter().filter(|point| point.is_default);
        chart.draw_series(
            default.map(|point| Circle::new(point.at, 8, plot::color(1).stroke_width(3))),
        )?;
        let at = values().map(|point| chart.backend_coord(&point.at));
        let at: Vec<(i32, i32)> = at.collect();
        for (label, at) in labels(&values().map(|own| own.name.as_str()).collect::<Vec<_>>(), &at) {
            let style = FONT.into_font().color(&plot::INK);
            let (left, top) = below.get_base_pixel();
            below.draw(&Text::new(label, (at.0 - left + 9, at.1 - top - 16), style))?;
        }
        Ok(())
    });
    Picture {
        name: name.to_owned(),
        title: format!("{field}: {y} against {x}"),
        note: "Each point is a replay with another value. The circle is the policy as it is. \
               Nearer to the lower left corner is better."
            .to_owned(),
        svg,
    }
}

/// From a little below the smallest number to a little above the largest.
fn range(numbers: impl Iterator<Item = f64> + Clone) -> std::ops::Range<f64> {
    let least = numbers.clone().fold(f64::INFINITY, f64::min);
    let most = numbers.fold(f64::NEG_INFINITY, f64::max);
    let margin = ((most - least) * 0.12).max(most.abs() * 0.01).max(0.01);
    if least.is_finite() { (least - margin).max(0.0)..most + margin } else { 0.0..1.0 }
}

/// Names with their points. Points that lie together share one name, such as `0s, 1s`.
fn labels(names: &[&str], at: &[(i32, i32)]) -> Vec<(String, (i32, i32))> {
    let mut labels: Vec<(String, (i32, i32))> = Vec::new();
    for (name, (x, y)) in names.iter().zip(at) {
        let near = labels
            .iter_mut()
            .find(|(_, (left, top))| (x - left).abs() < NEAR.0 && (y - top).abs() < NEAR.1);
        match near {
            Some((label, _)) => {
                label.push_str(", ");
                label.push_str(name);
            }
            None => labels.push(((*name).to_owned(), (*x, *y))),
        }
    }
    labels
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_that_lie_together_share_a_name() {
        let at = [(10, 10), (12, 11), (200, 10)];
        let labels = labels(&["0s", "1s", "1h"], &at);
        let names: Vec<&str> = labels.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["0s, 1s", "1h"]);
    }
}
