//! Lines in a frame, readable on light and dark ground and by people who see fewer colours.

use std::ops::Range;

use plotters::coord::ranged1d::{AsRangedCoord, Ranged, ValueFormatter};
use plotters::prelude::*;

use crate::number::whole;

/// Width and height of a picture.
pub(super) const SIZE: (u32, u32) = (960, 380);
/// Stands for the colour of the text around the picture, whatever that is.
pub(super) const INK: RGBColor = RGBColor(1, 2, 3);
const INK_AS_TEXT: &str = "#010203";
const FONT: &str = "sans-serif";

/// Colours that stay apart for people who see fewer of them (Okabe and Ito), without those that are
/// hard to see on white or on black.
const COLORS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(128, 128, 128),
];

/// The colour of the line at a place.
pub(super) const fn color(at: usize) -> RGBColor {
    COLORS[at % COLORS.len()]
}

/// One line.
pub(super) struct Line {
    /// What it is called in the legend; lines without a name are not in there.
    pub(super) name: Option<String>,
    pub(super) color: RGBColor,
    pub(super) is_dashed: bool,
    pub(super) points: Vec<(f64, f64)>,
}

impl Line {
    /// Lines beyond the colours there are, are dashed.
    pub(super) fn new(at: usize, name: &str, points: Vec<(f64, f64)>) -> Self {
        let is_dashed = at >= COLORS.len();
        Self { name: Some(name.to_owned()), color: color(at), is_dashed, points }
    }
}

/// An axis: what it shows, and what is written at a number.
pub(super) struct Axis<'a> {
    pub(super) title: String,
    pub(super) label: &'a dyn Fn(&f64) -> String,
}

/// A unit of time that suits a span, with its length in milliseconds.
pub(super) const fn unit(span_ms: i64) -> (&'static str, f64) {
    match span_ms {
        ..=300_000 => ("seconds", 1_000.0),
        300_001..=18_000_000 => ("minutes", 60_000.0),
        18_000_001..=432_000_000 => ("hours", 3_600_000.0),
        _ => ("days", 86_400_000.0),
    }
}

/// Draws lines between two axes.
pub(super) fn lines<X, Y>(
    (x_range, y_range): (X, Y),
    (x_axis, y_axis): (&Axis<'_>, &Axis<'_>),
    lines: &[Line],
) -> String
where
    X: AsRangedCoord<Value = f64>,
    X::CoordDescType: ValueFormatter<f64>,
    Y: AsRangedCoord<Value = f64>,
    Y::CoordDescType: ValueFormatter<f64>,
{
    draw(SIZE, |root| {
        let names: Vec<(&str, RGBColor, bool)> = lines
            .iter()
            .filter_map(|line| Some((line.name.as_deref()?, line.color, line.is_dashed)))
            .collect();
        let below = legend(root, &names)?;
        let mut chart = ChartBuilder::on(&below)
            .margin_right(24)
            .margin_left(12)
            .margin_top(8)
            .x_label_area_size(44)
            .y_label_area_size(70)
            .build_cartesian_2d(x_range, y_range)?;
        frame(&mut chart, x_axis, y_axis)?;
        for line in lines {
            let style = line.color.stroke_width(2);
            let points = line.points.iter().copied();
            if line.is_dashed {
                chart.draw_series(DashedLineSeries::new(points, 6, 4, style))?;
            } else {
                chart.draw_series(LineSeries::new(points, style))?;
            }
        }
        Ok(())
    })
}

type Failure = Box<dyn std::error::Error>;
pub(super) type Root<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

/// Draws in a picture of a size. What is drawn in ink takes the colour of the text around it.
pub(super) fn draw(size: (u32, u32), on: impl FnOnce(&Root<'_>) -> Result<(), Failure>) -> String {
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        on(&root).expect("a string takes every drawing");
        root.present().expect("a string takes every drawing");
    }
    let svg = svg.replace(INK_AS_TEXT, "currentColor");
    let style = "<style>svg{color:#24292f;font-variant-numeric:tabular-nums}\
                 @media (prefers-color-scheme:dark){svg{color:#d6dde4}}</style>\n";
    match svg.find(">\n") {
        Some(at) => format!("{}{style}{}", &svg[..at + 2], &svg[at + 2..]),
        None => svg,
    }
}

/// A row of names with their colours; what is left below it.
pub(super) fn legend<'a>(
    root: &Root<'a>,
    names: &[(&str, RGBColor, bool)],
) -> Result<Root<'a>, Failure> {
    let (width, _) = root.dim_in_pixel();
    let places = legend_places(width, names.iter().map(|(name, ..)| *name));
    for ((name, color, is_dashed), (x, y)) in names.iter().zip(&places) {
        let dashes: &[(i32, i32)] = if *is_dashed { &[(0, 7), (11, 18)] } else { &[(0, 20)] };
        for (from, to) in dashes {
            let ends = vec![(x + from, *y), (x + to, *y)];
            root.draw(&PathElement::new(ends, color.stroke_width(3)))?;
        }
        let style = (FONT, 13).into_font().color(&INK);
        root.draw(&Text::new(shortened(name), (x + LEGEND_KEY, y - 6), style))?;
    }
    Ok(root.split_vertically(legend_height(&places)).1)
}

/// The height of a row of the legend, and the room for the line before a name.
const LEGEND_ROW: i32 = 22;
const LEGEND_KEY: i32 = 26;

/// Where each name of a legend stands. A name that has no room is in the next row.
pub(super) fn legend_places<'a>(
    width: u32,
    names: impl Iterator<Item = &'a str>,
) -> Vec<(i32, i32)> {
    const LEFT: i32 = 82;
    let right = i32::try_from(width).unwrap_or(i32::MAX) - 24;
    let (mut x, mut y) = (LEFT, 14);
    let place = |name: &str| {
        let n_letters = i32::try_from(shortened(name).chars().count()).unwrap_or(0);
        let length = LEGEND_KEY + 20 + 7 * n_letters;
        if x > LEFT && x + length > right {
            (x, y) = (LEFT, y + LEGEND_ROW);
        }
        let place = (x, y);
        x += length;
        place
    };
    names.map(place).collect()
}

/// The height of a legend with names at these places.
pub(super) fn legend_height(places: &[(i32, i32)]) -> i32 {
    places.last().map_or(14, |(_, y)| *y) + LEGEND_ROW / 2
}

/// A long name, such as a policy that is written out, is cut.
fn shortened(name: &str) -> String {
    const LENGTH_MAX: usize = 48;
    if name.chars().count() <= LENGTH_MAX {
        return name.to_owned();
    }
    name.chars().take(LENGTH_MAX - 1).chain(['…']).collect()
}

/// Axes and a faint grid.
pub(super) fn frame<X, Y>(
    chart: &mut ChartContext<'_, SVGBackend<'_>, Cartesian2d<X, Y>>,
    x_axis: &Axis<'_>,
    y_axis: &Axis<'_>,
) -> Result<(), Failure>
where
    X: Ranged<ValueType = f64> + ValueFormatter<f64>,
    Y: Ranged<ValueType = f64> + ValueFormatter<f64>,
{
    let text = || (FONT, 13).into_font().color(&INK);
    chart
        .configure_mesh()
        .x_desc(&x_axis.title)
        .y_desc(&y_axis.title)
        .x_label_formatter(x_axis.label)
        .y_label_formatter(y_axis.label)
        .x_labels(10)
        .y_labels(6)
        .axis_style(INK.mix(0.6))
        .bold_line_style(INK.mix(0.12))
        .light_line_style(INK.mix(0.0))
        .label_style(text())
        .axis_desc_style(text())
        .draw()?;
    Ok(())
}

/// A range from zero to a little above the largest number.
pub(super) fn up_to(numbers: impl Iterator<Item = f64>) -> Range<f64> {
    0.0..numbers.fold(0.0, f64::max).max(1.0) * 1.04
}

/// A number as people write it: `12`, `1.5`, `20k`, `3M`.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "this is how axes ask")]
pub(super) fn short(number: &f64) -> String {
    let (number, sign) = match *number {
        number if number.abs() >= 999_950.0 => (number / 1e6, "M"),
        number if number.abs() >= 10_000.0 => (number / 1e3, "k"),
        number => (number, ""),
    };
    let tenths = whole(number * 10.0);
    if tenths % 10 == 0 { format!("{}{sign}", tenths / 10) } else { format!("{number:.1}{sign}") }
}
