//! Exact numbers with three decimals, so that sums do not depend on their order.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Neg, Sub, SubAssign};

/// A number with three decimals, held as whole thousandths. Sums saturate.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fixed(i64);

impl Fixed {
    /// Zero.
    pub const ZERO: Self = Self(0);
    /// One.
    pub const ONE: Self = Self(1_000);

    /// A whole number.
    pub const fn whole(number: i64) -> Self {
        Self(number.saturating_mul(1_000))
    }

    /// The number of thousandths `number`.
    pub const fn thousandths(number: i64) -> Self {
        Self(number)
    }

    /// This number in thousandths.
    pub const fn in_thousandths(self) -> i64 {
        self.0
    }

    /// `self × numerator / denominator`, rounded to the nearest thousandth, halves away from zero.
    ///
    /// A denominator that is not positive gives zero.
    #[must_use]
    pub fn scale(self, numerator: i64, denominator: i64) -> Self {
        if denominator <= 0 {
            return Self::ZERO;
        }
        let product = i128::from(self.0) * i128::from(numerator);
        let half = i128::from(denominator) / 2;
        let rounded = if product < 0 { product - half } else { product + half };
        let quotient = rounded / i128::from(denominator);
        Self(i64::try_from(quotient).unwrap_or(if quotient < 0 { i64::MIN } else { i64::MAX }))
    }

    /// The product, rounded to the nearest thousandth.
    #[must_use]
    pub fn times(self, other: Self) -> Self {
        self.scale(other.0, 1_000)
    }

    /// The nearest number with three decimals. `None` if `number` is not finite or too large.
    #[expect(clippy::as_conversions, clippy::cast_possible_truncation, reason = "bounded above")]
    pub fn from_f64(number: f64) -> Option<Self> {
        let thousandths = (number * 1_000.0).round();
        (thousandths.abs() < 9.0e18).then_some(Self(thousandths as i64))
    }

    /// The nearest float, for display and JSON.
    #[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "for display only")]
    pub fn to_f64(self) -> f64 {
        self.0 as f64 / 1_000.0
    }
}

impl fmt::Display for Fixed {
    /// Formats without an allocation, because it runs for every point of every placed job.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = self.0.unsigned_abs();
        let mut digits = Digits::default();
        let mut rest = size % 1_000;
        let mut n_decimals = if rest == 0 { 0 } else { 3 };
        while n_decimals > 0 && rest.is_multiple_of(10) {
            rest /= 10;
            n_decimals -= 1;
        }
        for _ in 0..n_decimals {
            digits.put_before(digit(rest));
            rest /= 10;
        }
        if n_decimals > 0 {
            digits.put_before(b'.');
        }
        let mut whole = size / 1_000;
        loop {
            digits.put_before(digit(whole));
            whole /= 10;
            if whole == 0 {
                break;
            }
        }
        if self.0 < 0 {
            digits.put_before(b'-');
        }
        f.pad(digits.text())
    }
}

/// The last digit of a number.
fn digit(number: u64) -> u8 {
    b'0' + u8::try_from(number % 10).unwrap_or(0)
}

/// The digits of a number, filled from the end.
#[derive(Default)]
struct Digits {
    bytes: [u8; 24],
    n: usize,
}

impl Digits {
    fn put_before(&mut self, byte: u8) {
        self.n += 1;
        let at = self.bytes.len() - self.n;
        self.bytes[at] = byte;
    }

    fn text(&self) -> &str {
        std::str::from_utf8(&self.bytes[self.bytes.len() - self.n..]).unwrap_or_default()
    }
}

impl fmt::Debug for Fixed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Add for Fixed {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Fixed {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Fixed {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl SubAssign for Fixed {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl Neg for Fixed {
    type Output = Self;
    fn neg(self) -> Self {
        Self(self.0.saturating_neg())
    }
}

impl Sum for Fixed {
    fn sum<I: Iterator<Item = Self>>(numbers: I) -> Self {
        numbers.fold(Self::ZERO, Add::add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_decimals_are_shown_and_no_more_than_needed() {
        assert_eq!(Fixed::thousandths(1_500).to_string(), "1.5");
        assert_eq!(Fixed::thousandths(-62).to_string(), "-0.062");
        assert_eq!(Fixed::whole(40).to_string(), "40");
    }

    #[test]
    fn scaling_rounds_to_the_nearest_thousandth() {
        assert_eq!(Fixed::whole(200).scale(1, 3).to_string(), "66.667");
        assert_eq!(Fixed::whole(-200).scale(1, 3).to_string(), "-66.667");
        assert_eq!(Fixed::whole(5).scale(1, 0), Fixed::ZERO);
    }

    #[test]
    fn floats_that_do_not_fit_are_refused() {
        assert_eq!(Fixed::from_f64(f64::NAN), None);
        assert_eq!(Fixed::from_f64(f64::INFINITY), None);
        assert_eq!(Fixed::from_f64(0.0015), Some(Fixed::thousandths(2)));
    }
}
