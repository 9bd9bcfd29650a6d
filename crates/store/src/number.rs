//! Job ids as numbers of the store.

use model::JobId;

/// The number of a job. `None` if no store ever made this id.
pub(crate) fn of(id: &JobId) -> Option<i64> {
    i64::try_from(id.as_number()?).ok()
}

/// A count or a fence that SQL stores with a sign.
pub(crate) const fn size(number: i64) -> u64 {
    number.unsigned_abs()
}

/// A count that SQL can hold. Larger counts become the largest.
pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The id of the job with this number.
pub(crate) fn id(number: i64) -> JobId {
    JobId::number(number.unsigned_abs())
}

/// The number below all jobs after `id`. No job comes after an id that is not a number.
pub(crate) fn after(id: Option<&JobId>) -> i64 {
    id.map_or(0, |id| of(id).unwrap_or(i64::MAX))
}

/// The number above all jobs before `id`. No job comes before an id that is not a number.
pub(crate) fn before(id: Option<&JobId>) -> i64 {
    id.map_or(i64::MAX, |id| of(id).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_numbers_are_numbers_of_jobs() {
        assert_eq!(of(&JobId::new("7")), Some(7));
        for text in ["", "007", "-7", "+7", "seven", "9223372036854775808"] {
            assert_eq!(of(&JobId::new(text)), None, "{text}");
        }
        assert_eq!(id(7), JobId::new("7"));
    }
}
