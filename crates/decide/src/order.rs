//! Which job goes first: a key that does not change with time, and the score it stands for.
//!
//! **Invariant:** within a [`Mode`], a smaller key means a higher score at every instant, because
//! all scores of a mode grow alike. So queues are sorted once, not at every decision.

use model::maxima::PRIORITY_SCORED_MAX;
use model::policy::{Aging, Order, Policy, Rule};
use model::{Fixed, JobId, Millis, Points, Timestamp};

/// Where a job stands among those of its line: smallest first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct OrderKey {
    pub(crate) major: i64,
    pub(crate) ready: Timestamp,
    pub(crate) id: JobId,
}

/// How a job's score grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Mode {
    /// With its age.
    Batch,
    /// Faster: a person waits.
    OnDemand,
    /// With its age again: the person has waited so long that the bonus grows no more.
    OnDemandCapped,
}

impl Mode {
    /// What a job's score and its key add up to at `now`, in thousandths of points: the same for
    /// all jobs of a mode that `slots_free` free slots could run.
    pub(crate) fn score_and_key(self, aging: &Aging, now: Timestamp, slots_free: u64) -> i64 {
        let on_demand = match self {
            Self::Batch => 0,
            Self::OnDemand => 1_000 * aging.on_demand,
            Self::OnDemandCapped => {
                1_000 * aging.on_demand + aging.on_demand_age * aging.on_demand_age_max.0
            }
        };
        self.slope(aging) * now.0 + on_demand + rarity_points(aging, slots_free)
    }

    /// What a job gains in each millisecond.
    const fn slope(self, aging: &Aging) -> i64 {
        match self {
            Self::Batch | Self::OnDemandCapped => aging.age,
            Self::OnDemand => aging.age + aging.on_demand_age,
        }
    }
}

fn rarity_points(aging: &Aging, slots_free: u64) -> i64 {
    match i64::try_from(slots_free) {
        Ok(slots) if slots > 0 => 1_000 * (aging.rarity / slots),
        _ => 0,
    }
}

/// What of a job its order depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Standing {
    pub(crate) priority: i32,
    pub(crate) on_demand: bool,
    pub(crate) created: Timestamp,
    pub(crate) ready: Timestamp,
    /// Frozen when the job becomes ready, so that history never re-keys the queue.
    pub(crate) estimate: Option<Millis>,
}

/// A job of unknown length stands among those like it as if it had this length; among others it
/// counts so many times as long as the usual length is times this.
pub(crate) const LENGTH_ONE: Millis = Millis(1 << 16);

/// A class of priority is so many bits above lengths.
pub(crate) const CLASS_BITS: u32 = 48;

/// A prediction beyond this counts as this: about eleven days.
pub(crate) const ESTIMATE_SCORED_MAX: i64 = 1_000_000_000;

impl Standing {
    /// How long it is expected to run, if jobs of unknown length run for so long.
    pub(crate) fn length(&self, usual: Millis) -> Millis {
        self.estimate.unwrap_or(usual)
    }

    /// Its class of priority: sixteen steps up it goes before all other jobs of its tenant, sixteen
    /// steps down after them.
    fn class(&self) -> i64 {
        i64::from(self.priority.clamp(-PRIORITY_SCORED_MAX, PRIORITY_SCORED_MAX) / 16)
    }

    pub(crate) fn mode(&self, policy: &Policy, now: Timestamp) -> Mode {
        match policy.order {
            Order::Aging if self.on_demand => {
                if now.since(self.ready) < policy.aging.on_demand_age_max {
                    Mode::OnDemand
                } else {
                    Mode::OnDemandCapped
                }
            }
            Order::Shortest if self.on_demand => Mode::OnDemand,
            Order::Aging
            | Order::Shortest
            | Order::PriorityAge
            | Order::Rules
            | Order::Proposal => Mode::Batch,
        }
    }

    /// When its mode changes by itself.
    pub(crate) fn mode_ends(&self, policy: &Policy, now: Timestamp) -> Option<Timestamp> {
        let ends = policy.order == Order::Aging && self.mode(policy, now) == Mode::OnDemand;
        ends.then(|| self.ready + policy.aging.on_demand_age_max)
    }

    pub(crate) fn major(&self, policy: &Policy, mode: Mode) -> i64 {
        match policy.order {
            Order::PriorityAge => -i64::from(self.priority),
            Order::Rules => 0,
            Order::Proposal => self.created.0,
            Order::Aging => {
                let aging = &policy.aging;
                let risen = mode.slope(aging) * self.ready.0;
                risen - self.priority_points(aging) - self.length_points(aging)
            }
            Order::Shortest => {
                let length = self.estimate.unwrap_or(LENGTH_ONE).0.clamp(0, ESTIMATE_SCORED_MAX);
                let counted =
                    scaled_by_priority(weigh(policy, Rule::Length, length), self.priority);
                counted - (self.class() << CLASS_BITS)
            }
        }
    }

    /// Its score under [`Order::Aging`] at `now`, when `slots_free` free slots could run it.
    #[cfg(test)]
    pub(crate) fn score(&self, aging: &Aging, now: Timestamp, slots_free: u64) -> Fixed {
        Fixed::thousandths(self.parts(aging, now, slots_free).into_iter().sum())
    }

    /// What its length says under [`Order::Shortest`].
    pub(crate) fn points_shortest(&self, policy: &Policy, usual: Millis) -> Vec<Points> {
        let points = -weigh(policy, Rule::Length, self.length(usual).0.min(ESTIMATE_SCORED_MAX));
        let said = (points != 0)
            .then_some(Points { rule: Rule::Length, points: Fixed::thousandths(points) });
        said.into_iter().collect()
    }

    /// What each part of its score says.
    pub(crate) fn points(&self, aging: &Aging, now: Timestamp, slots_free: u64) -> Vec<Points> {
        let rules = [Rule::Priority, Rule::Age, Rule::Rarity, Rule::OnDemand, Rule::Length];
        let parts = rules.into_iter().zip(self.parts(aging, now, slots_free));
        let mut said = Vec::with_capacity(4);
        for (rule, points) in parts.filter(|(_, points)| *points != 0) {
            said.push(Points { rule, points: Fixed::thousandths(points) });
        }
        said
    }

    /// Priority, age, rarity, on-demand and length, in thousandths of points.
    fn parts(&self, aging: &Aging, now: Timestamp, slots_free: u64) -> [i64; 5] {
        let age = now.since(self.ready).0;
        let on_demand = if self.on_demand {
            1_000 * aging.on_demand + aging.on_demand_age * age.min(aging.on_demand_age_max.0)
        } else {
            0
        };
        let (priority, length) = (self.priority_points(aging), self.length_points(aging));
        [priority, aging.age * age, rarity_points(aging, slots_free), on_demand, length]
    }

    fn priority_points(&self, aging: &Aging) -> i64 {
        let priority = self.priority.clamp(-PRIORITY_SCORED_MAX, PRIORITY_SCORED_MAX);
        1_000 * aging.priority * i64::from(priority)
    }

    fn length_points(&self, aging: &Aging) -> i64 {
        let estimate = self.estimate.map_or(0, |estimate| estimate.0.min(ESTIMATE_SCORED_MAX));
        -aging.age * (estimate * aging.length.in_thousandths() / 1_000)
    }
}

/// `points` as often as the policy's weight of the rule says.
fn weigh(policy: &Policy, rule: Rule, points: i64) -> i64 {
    let weight = policy.rules.get(&rule).copied().unwrap_or(Fixed::ZERO);
    if weight == Fixed::ONE {
        points
    } else {
        Fixed::thousandths(points).times(weight).in_thousandths()
    }
}

/// What is left of 65536 after zero to fifteen of the sixteen steps of priority that make a half.
const STEPS: [i64; 16] = [
    65_536, 62_757, 60_097, 57_549, 55_109, 52_772, 50_535, 48_393, 46_341, 44_376, 42_495, 40_693,
    38_968, 37_316, 35_734, 34_219,
];

/// A length as it counts at a priority: half for sixteen steps up, double for sixteen down.
fn scaled_by_priority(length: i64, priority: i32) -> i64 {
    let priority = priority.clamp(-PRIORITY_SCORED_MAX, PRIORITY_SCORED_MAX);
    let step = usize::try_from(priority.rem_euclid(16)).expect("it is zero to fifteen");
    let scaled = length * STEPS[step] / STEPS[0];
    match priority.div_euclid(16) {
        halves @ 0.. => scaled >> halves,
        doubles => scaled << -doubles,
    }
}

#[cfg(test)]
mod tests {
    use model::Preset;
    use proptest::prelude::*;

    use super::*;

    const READY: Timestamp = Timestamp(1_000_000);

    fn standing(priority: i32, age_s: i64) -> Standing {
        let ready = READY - Millis::from_secs(age_s);
        Standing { priority, on_demand: false, created: ready, ready, estimate: None }
    }

    fn any_standing() -> impl Strategy<Value = Standing> {
        let priority = prop_oneof![-3..3_i32, -1_000..1_000_i32];
        let age = prop_oneof![0..5_i64, 0..10_000_000_i64];
        let estimate = proptest::option::of(prop_oneof![0..5_i64, 0..100_000_i64]);
        (priority, any::<bool>(), age, estimate).prop_map(|(priority, on_demand, age, estimate)| {
            let ready = READY - Millis(age);
            let estimate = estimate.map(Millis);
            Standing { priority, on_demand, created: ready, ready, estimate }
        })
    }

    /// Sorted by key, jobs of one mode are sorted by score, at this and every later instant.
    fn keys_follow_scores(
        preset: Preset,
        jobs: &[Standing],
        now: Timestamp,
    ) -> Result<(), TestCaseError> {
        let policy = preset.policy();
        for mode in [Mode::Batch, Mode::OnDemand, Mode::OnDemandCapped] {
            let mut alike: Vec<&Standing> =
                jobs.iter().filter(|job| job.mode(&policy, now) == mode).collect();
            alike.sort_by_key(|job| job.major(&policy, mode));
            let scores: Vec<Fixed> =
                alike.iter().map(|job| job.score(&policy.aging, now, 3)).collect();
            prop_assert!(scores.is_sorted_by(|one, two| one >= two), "{mode:?}: {scores:?}");
            let keys = alike
                .windows(2)
                .map(|two| (two[0].major(&policy, mode) == two[1].major(&policy, mode), two));
            for (are_equal, two) in keys {
                let scores = [two[0], two[1]].map(|job| job.score(&policy.aging, now, 3));
                prop_assert_eq!(are_equal, scores[0] == scores[1]);
            }
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn the_order_by_key_is_the_order_by_score_at_every_instant(
            jobs in proptest::collection::vec(any_standing(), 0..20),
            later in 0..10_000_000_i64,
        ) {
            keys_follow_scores(Preset::Aging, &jobs, READY + Millis(later))?;
        }
    }

    proptest! {
        #[test]
        fn score_and_key_add_up_to_the_same_for_all_jobs_of_a_mode(
            jobs in proptest::collection::vec(any_standing(), 0..20),
            later in 0..10_000_000_i64,
            slots_free in 0..5_u64,
        ) {
            let now = READY + Millis(later);
            for policy in [Preset::Aging.policy()] {
                for job in &jobs {
                    let mode = job.mode(&policy, now);
                    let sum = mode.score_and_key(&policy.aging, now, slots_free);
                    let score = job.score(&policy.aging, now, slots_free).in_thousandths();
                    prop_assert_eq!(score + job.major(&policy, mode), sum);
                }
            }
        }
    }

    proptest! {
        #[test]
        fn a_longer_job_never_goes_before_one_that_is_alike(
            job in any_standing(),
            longer in 0..100_000_i64,
        ) {
            let policy = Preset::Balanced.policy();
            let key = |job: &Standing| job.major(&policy, job.mode(&policy, READY));
            let known = Standing { estimate: job.estimate.or(Some(Millis(7))), ..job };
            let estimate = known.estimate.map(|own| Millis(own.0 + longer));
            let long = Standing { estimate, ..known };
            prop_assert!(key(&known) <= key(&long));
        }
    }

    #[test]
    fn a_step_of_priority_is_worth_64_seconds_of_waiting() {
        let policy = Preset::Aging.policy();
        let (urgent, old) = (standing(5, 0), standing(0, 320));
        assert_eq!(urgent.major(&policy, Mode::Batch), old.major(&policy, Mode::Batch));
    }

    #[test]
    fn patience_beats_a_person_who_just_came_after_256_seconds() {
        let policy = Preset::Aging.policy();
        let person = Standing { on_demand: true, ..standing(0, 0) };
        let score = |job: Standing| job.score(&policy.aging, READY, 8);
        assert_eq!(score(person), score(standing(0, 256)));
    }

    #[test]
    fn the_bonus_of_a_person_is_bounded() {
        let policy = Preset::Aging.policy();
        let bonus = |age_s: i64| {
            let person = Standing { on_demand: true, ..standing(0, age_s) };
            person.score(&policy.aging, READY, 8)
                - standing(0, age_s).score(&policy.aging, READY, 8)
        };
        assert_eq!(bonus(60), Fixed::whole(4_096 + 32 * 60));
        assert_eq!(bonus(3_600), bonus(100_000));
    }
}
