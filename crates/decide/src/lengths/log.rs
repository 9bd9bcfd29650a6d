//! Logarithms of lengths, in whole numbers.

use model::Millis;

/// Twice as long is so much more.
pub(super) const DOUBLING: i64 = 1 << DOUBLING_BITS;
const DOUBLING_BITS: u32 = 16;
/// The longest run that counts, about 35 years.
const RAN_MAX: i64 = 1 << 40;

/// The logarithm of a length to the base 2, in parts of [`DOUBLING`]. It is exact at powers of two
/// and straight in between (Mitchell, 1962): at most 9 % of a doubling off, never out of order, the
/// same on every machine, and [`exp2`] undoes it.
pub(super) fn log2(Millis(ms): Millis) -> i64 {
    let ms = ms.clamp(1, RAN_MAX);
    let whole = ms.ilog2();
    let rest = ms - (1 << whole);
    (i64::from(whole) << DOUBLING_BITS) + ((rest << DOUBLING_BITS) >> whole)
}

/// The length with this logarithm, to the nearest millisecond.
pub(super) fn exp2(log: i64) -> Millis {
    let log = log.clamp(0, log2(Millis(RAN_MAX)));
    let (whole, rest) = (log >> DOUBLING_BITS, log & (DOUBLING - 1));
    let half = DOUBLING / 2;
    Millis((((DOUBLING + rest) << whole) + half) >> DOUBLING_BITS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp2_undoes_log2() {
        for ms in (1..70_000).chain([1 << 20, 3_600_000, RAN_MAX]) {
            let back = exp2(log2(Millis(ms))).0;
            assert!((back - ms).abs() * 50_000 <= ms, "{ms} became {back}");
        }
        assert_eq!(exp2(log2(Millis(60_000))), Millis(60_000));
        assert_eq!([0, -5, i64::MIN].map(|ms| exp2(log2(Millis(ms)))), [Millis(1); 3]);
        assert_eq!(exp2(log2(Millis(i64::MAX))), Millis(RAN_MAX));
    }

    #[test]
    fn longer_jobs_have_larger_logarithms_and_twice_as_long_is_one_doubling_more() {
        let logs: Vec<i64> = (1..5_000).map(|ms| log2(Millis(ms))).collect();
        assert!(logs.is_sorted_by(|one, two| one < two));
        assert_eq!(log2(Millis(96)) - log2(Millis(48)), DOUBLING);
    }
}
