//! Whole numbers as floats, for averages that people read.

/// The nearest float.
#[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "for display only")]
pub(crate) const fn float(number: i128) -> f64 {
    number as f64
}

/// One number divided by another; zero if the other is.
pub(crate) fn ratio(one: i128, two: i128) -> f64 {
    if two == 0 { 0.0 } else { float(one) / float(two) }
}

/// The nearest float.
#[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "for display only")]
pub(crate) const fn count(number: usize) -> f64 {
    number as f64
}

/// The nearest whole number.
#[expect(clippy::as_conversions, clippy::cast_possible_truncation, reason = "it saturates")]
pub(crate) const fn whole(number: f64) -> i64 {
    number.round() as i64
}
