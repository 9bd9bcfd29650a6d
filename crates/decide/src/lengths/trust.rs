//! How far a predictor is to be believed: by what it said before, against what ran.

/// A predictor's record. Each time it said by how much jobs run longer than was thought without it,
/// in logarithms; this much longer they ran.
///
/// What is said is believed in part: by the slope of what ran over what was said, as in a stack of
/// predictors (Wolpert, 1992). The slope is made smaller the less certain it is, and is zero where
/// it is within three standard errors of zero: the non-negative garrote (Breiman, 1995), which for
/// one predictor is the positive part of James and Stein's. So noise is not believed, and a
/// predictor that is always off by the same factor is no worse than one that is right.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Trust {
    /// How often it spoke, in thousandths.
    n: i64,
    /// Sums of products: of what was said with itself, with what ran, and of what ran with itself.
    said_said: i64,
    said_ran: i64,
    ran_ran: i64,
    /// Sums of products of [`Miss`]: of each with itself, and with the one before it in its class.
    misses: i64,
    in_turn: i64,
}

/// How a predictor missed: what it said times by how much it was off.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Miss(i64);

/// Misses are in such parts, so that squares fit.
const MISS_BITS: u32 = 20;

/// After so many jobs what they showed counts for 1/e: a skill is then known to about a tenth
/// (`sqrt(2 / 256)`), and a change is followed within two hundred jobs.
const MEMORY: i64 = 256;
/// What is within so many standard errors of zero, squared, is taken for chance: three. A dozen
/// predictors speak of each job, and of a dozen that know nothing one would seem to with two.
const ERRORS_SQUARED: i128 = 9;
/// Two numbers make a line, whatever they are.
const SPOKEN_MIN: i64 = 3_000;
/// Misses are never thought more alike than this, in thousandths: twenty jobs are then one proof.
const ALIKE_MAX: i128 = 900;
/// What a wider predictor of the same sort has shown counts for so many jobs of this one: a tenant
/// with few jobs goes by its type.
const LENT: i64 = 16_000;
/// All of it is believed.
pub(super) const FULL: i64 = 1 << 16;

impl Trust {
    /// It said so, and so it was.
    pub(super) fn judge(&mut self, said: i64, ran: i64, last: Miss) -> Miss {
        let slope =
            i128::from(self.said_ran.max(0)) * i128::from(FULL) / i128::from(self.said_said.max(1));
        let slope = i64::try_from(slope.min(FULL.into())).unwrap_or(FULL);
        let miss = Miss((said * (ran - said * slope / FULL)) >> MISS_BITS);
        let add = |sum: &mut i64, new: i64| *sum += new - *sum / MEMORY;
        add(&mut self.n, 1_000);
        add(&mut self.misses, miss.0 * miss.0);
        add(&mut self.in_turn, miss.0 * last.0);
        add(&mut self.said_said, said * said);
        add(&mut self.said_ran, said * ran);
        add(&mut self.ran_ran, ran * ran);
        miss
    }

    /// Which part of what it says is believed, where a wider record of the same sort tells as well:
    /// that of its own counts for more the longer it is.
    pub(super) fn part_beside(self, wider: Self) -> i64 {
        (self.part() * self.n + wider.part() * LENT) / (self.n + LENT)
    }

    /// Which part of what it says is believed, of [`FULL`].
    pub(super) fn part(self) -> i64 {
        let [n, both, said, ran] = [self.n, self.said_ran, self.said_said, self.ran_ran];
        if n < SPOKEN_MIN || both <= 0 || said <= 0 {
            return 0;
        }
        let [n, both, said, ran] = [n, both, said, ran].map(i128::from);
        // Squared standard errors from zero are `explained * (n - 1) / unexplained`. One job more
        // counts as unexplained, so that a few that fit by chance are no proof.
        let explained = both * both / said;
        let unexplained = (ran - explained).max(0) + ran * 1_000 / n;
        let doubt = ERRORS_SQUARED * unexplained * 1_000 / (n - 1_000) * self.alike() / 1_000;
        let certain = (explained - doubt).max(0);
        let full = i128::from(FULL);
        let slope = (both * full / said).min(full);
        i64::try_from(slope * certain / explained.max(1)).unwrap_or(0)
    }
}

impl Trust {
    /// As how many jobs one counts, the other way round: jobs that come together are often off
    /// together, and a hundred of them are one proof. In thousandths, from the correlation of one
    /// miss with the next (Bayley and Hammersley, 1946).
    fn alike(self) -> i128 {
        let [misses, in_turn] = [self.misses, self.in_turn].map(i128::from);
        let part = (in_turn * 1_000 / misses.max(1)).clamp(0, ALIKE_MAX);
        (1_000 + part) * 1_000 / (1_000 - part)
    }
}

/// How much nearer predictions were to what ran than the mean of all jobs was.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Judged {
    /// How many there were, in thousandths; older ones count less.
    n: i64,
    /// All of them.
    pub(super) n_ever: u64,
    /// Squares of by how much each was wrong, in logarithms.
    predicted: i64,
    mean: i64,
}

impl Judged {
    /// By so much the prediction was wrong, and the mean of all jobs.
    pub(super) fn judge(&mut self, predicted: i64, mean: i64) {
        let add = |sum: &mut i64, new: i64| *sum += new - *sum / MEMORY;
        add(&mut self.n, 1_000);
        add(&mut self.predicted, predicted * predicted);
        add(&mut self.mean, mean * mean);
        self.n_ever += 1;
    }

    /// Which part of the squared error is gone, in thousandths; none if it is not less. Two jobs
    /// more count as if nothing had been known of them, so that a few say little.
    pub(super) fn skill(&self) -> i64 {
        if self.n == 0 || self.mean == 0 {
            return 0;
        }
        let [n, predicted, mean] = [self.n, self.predicted, self.mean].map(i128::from);
        let gone = 1_000 - predicted * 1_000 / mean - 2_000 * 1_000 / n;
        i64::try_from(gone.max(0)).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chance::Chance;

    #[test]
    fn nothing_is_believed_before_it_has_proved_itself() {
        let mut trust = Trust::default();
        let parts: Vec<i64> = (0..12)
            .map(|n| {
                let part = trust.part();
                let said = if n % 2 == 0 { 60_000 } else { -60_000 };
                trust.judge(said, said, Miss::default());
                part * 100 / FULL
            })
            .collect();
        assert_eq!(parts[..3], [0; 3]);
        assert!(parts[5] > 50 && parts[10] > 80, "{parts:?}");
    }

    #[test]
    fn noise_is_not_believed() {
        let mut chance = Chance::new(1);
        let mut draw = || i64::try_from(chance.below(200_000)).expect("it is small") - 100_000;
        let (mut believed, mut trust) = (0, Trust::default());
        for _ in 0..100_000 {
            trust.judge(draw(), draw(), Miss::default());
            believed += trust.part();
        }
        assert!(believed / 100_000 < FULL / 200, "{believed}");
    }

    #[test]
    fn what_is_half_noise_is_half_believed() {
        let mut chance = Chance::new(1);
        let mut draw = || i64::try_from(chance.below(200_000)).expect("it is small") - 100_000;
        let (mut believed, mut trust) = (0, Trust::default());
        for n in 0..10_000 {
            let signal = draw();
            trust.judge(signal + draw(), signal + draw(), Miss::default());
            believed += if n >= 1_000 { trust.part() } else { 0 };
        }
        let percent = believed / 9_000 * 100 / FULL;
        assert!((40..=50).contains(&percent), "{percent}");
    }
}
