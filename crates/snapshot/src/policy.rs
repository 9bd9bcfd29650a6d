//! Converts policies from and to a preset's name with changes.

use model::policy::{Rule, Seat, Turn};
use model::{Fixed, Name, Policy, Preset};

use crate::document::{
    Aging, AgingPoints, AtLeastOne, Attempts, Count, Factor, Label, Object, Percentage,
    PolicyChoice, PolicyObject, Preemption, PresetName, Sampling, SamplingWeights, SignedNumber,
    Slope, Span, Table, or, unless,
};
use crate::error::{At as _, Problem, shortened};
use crate::json::{self, Failure};
use crate::nearest::{did_you_mean, listed, nearest};

/// Presets that select a worker by the first match or a sample.
const ASSIGNERS: &[Preset] = &[Preset::PriorityAge, Preset::Cohort];
/// The preset with an eviction cooldown.
const COHORT: &[Preset] = &[Preset::Cohort];
/// Presets that order jobs by an ageing score.
const AGING: &[Preset] = &[Preset::Aging];
/// The preset that orders tenants by their deficits.
const FAIR_SHARE: &[Preset] = &[Preset::FairShare];
/// Presets with weights of rules.
const WEIGHING: &[Preset] =
    &[Preset::Simple, Preset::ResourceAware, Preset::Aging, Preset::Balanced];
/// The preset with reservations and fairness settings.
const BALANCED: &[Preset] = &[Preset::Balanced];

/// The rules of `simple` and `resource-aware`, which are independent of each other.
const SUMMED: &[Rule] = &[
    Rule::MissingPaths,
    Rule::MissingBytes,
    Rule::Dependents,
    Rule::Wait,
    Rule::RescoreWait,
    Rule::Light,
    Rule::ReserveFetch,
    Rule::ResourceFit,
    Rule::Saturation,
    Rule::PreferLocal,
    Rule::OrgShare,
    Rule::Network,
    Rule::Disk,
];

/// The policy of `text`: a bare name, or JSON.
pub(crate) fn parse(text: &str) -> Result<Policy, Failure> {
    let text = text.trim();
    let choice = if text.starts_with('{') {
        PolicyChoice::Changed(Box::new(json::object(text)?))
    } else {
        PolicyChoice::Named(PresetName(text.trim_matches('"').to_owned()))
    };
    read(Some(choice)).map_err(Failure::Value)
}

/// The policy of a document. `None` is the default.
pub(crate) fn read(choice: Option<PolicyChoice>) -> Result<Policy, Problem> {
    match choice {
        None => Ok(Preset::Balanced.policy()),
        Some(PolicyChoice::Named(name)) => preset(&name).map(Preset::policy),
        Some(PolicyChoice::Changed(object)) => changed(*object),
    }
}

fn preset(PresetName(name): &PresetName) -> Result<Preset, Problem> {
    Preset::from_name(name).ok_or_else(|| {
        let known = Preset::ALL.map(Preset::name);
        let shown = shortened(name);
        let problem =
            Problem::new(format!("is {shown:?}, not a preset; there is {}", listed(&known)));
        match nearest(name, known) {
            Some(meant) => problem.with_hint(format!("did you mean `{meant}`?")),
            None => problem,
        }
    })
}

fn changed(object: PolicyObject) -> Result<Policy, Problem> {
    let preset = match &object.preset {
        Some(name) => preset(name).at("preset")?,
        None => Preset::Balanced,
    };
    refuse_unused(preset, &object)?;
    let mut policy = preset.policy();
    if object.fair == Some(false) {
        policy = policy.unfair();
    }
    if let Some(Object(sampling)) = object.sampling {
        policy.seat = Seat::FirstMatch(Some(sampling.read()));
    }
    if let Some(Object(preemption)) = object.preemption {
        policy.preemption = preemption.read(policy.preemption);
    }
    if let Some(Object(aging)) = object.aging {
        policy.aging = aging.read(policy.aging);
    }
    policy.fairness.slack = or(object.fair_slack_ms, policy.fairness.slack);
    if let Some(Factor(part)) = object.interactive_share {
        if part > Fixed::ONE {
            return Err(Problem::new(format!("is {part}, above 1")).at("interactive_share"));
        }
        policy.fairness.interactive = part;
    }
    match object.share {
        Some(true) => policy.turn = preset.policy().turn,
        Some(false) => policy.turn = Turn::FirstCome,
        None => {}
    }
    if let Some(rules) = object.rules {
        weigh(&mut policy, rules).at("rules")?;
    }
    Ok(Policy {
        priority_percentage: or(object.priority_percentage, policy.priority_percentage),
        failure_backoff: or(object.failure_backoff_ms, policy.failure_backoff),
        proactive_fetch_to_capacity: or(
            object.proactive_fetch_to_capacity,
            policy.proactive_fetch_to_capacity,
        ),
        proactive_fetch_literal: or(object.proactive_fetch_literal, policy.proactive_fetch_literal),
        literal: or(object.literal, policy.literal),
        eviction_cooldown: or(object.eviction_cooldown_ms, policy.eviction_cooldown),
        guard: or(object.guard, policy.guard),
        reserve: or(object.reserve, policy.reserve),
        reserve_wait_max: or(object.reserve_wait_max_ms, policy.reserve_wait_max),
        ..policy
    })
}

/// Rejects settings without effect, because they are a mistake of the author.
fn refuse_unused(preset: Preset, object: &PolicyObject) -> Result<(), Problem> {
    let settings = [
        ("sampling", object.sampling.is_some(), ASSIGNERS),
        ("priority_percentage", object.priority_percentage.is_some(), ASSIGNERS),
        ("failure_backoff_ms", object.failure_backoff_ms.is_some(), ASSIGNERS),
        ("eviction_cooldown_ms", object.eviction_cooldown_ms.is_some(), COHORT),
        ("literal", object.literal.is_some(), FAIR_SHARE),
        ("aging", object.aging.is_some(), AGING),
        ("rules", object.rules.is_some(), WEIGHING),
        ("fair_slack_ms", object.fair_slack_ms.is_some(), BALANCED),
        ("interactive_share", object.interactive_share.is_some(), BALANCED),
        ("share", object.share.is_some(), BALANCED),
        ("fair", object.fair.is_some(), BALANCED),
        ("guard", object.guard.is_some(), BALANCED),
        ("reserve", object.reserve.is_some(), BALANCED),
        ("reserve_wait_max_ms", object.reserve_wait_max_ms.is_some(), BALANCED),
    ];
    let unused =
        |(_, is_given, users): &(_, bool, &[Preset])| *is_given && !users.contains(&preset);
    match settings.into_iter().find(unused) {
        Some((setting, _, users)) => {
            let users: Vec<&str> = users.iter().map(|user| user.name()).collect();
            let what = format!("is not used by `{}`, only by {}", preset.name(), listed(&users));
            Err(Problem::new(what).with_hint("leave it out, or take another preset").at(setting))
        }
        None => Ok(()),
    }
}

fn weigh<const MAX: usize>(
    policy: &mut Policy,
    rules: Table<Label, Factor, MAX>,
) -> Result<(), Problem> {
    let usable = match policy.preset {
        Preset::Simple | Preset::ResourceAware => SUMMED.to_vec(),
        Preset::PriorityAge
        | Preset::Cohort
        | Preset::FairShare
        | Preset::Aging
        | Preset::Detected
        | Preset::Balanced => policy.preset.rules(),
    };
    for (Label(name), Factor(weight)) in rules.0 {
        let name = name.to_string();
        let Some(rule) = Rule::from_name(&name).filter(|rule| usable.contains(rule)) else {
            let usable: Vec<&str> = usable.iter().map(|rule| rule.name()).collect();
            let problem = Problem::new(format!("is not a rule of `{}`", policy.preset.name()));
            return Err(problem.with_hint(did_you_mean(&name, &usable))).at(name);
        };
        if is_in_whole_points(rule) && weight.in_thousandths() % 1_000 != 0 {
            let problem = Problem::new(format!("is {weight}, not a whole number"));
            return Err(problem.with_hint("set its magnitude with `aging` instead")).at(name);
        }
        if weight == Fixed::ZERO {
            policy.rules.remove(&rule);
        } else {
            policy.rules.insert(rule, weight);
        }
    }
    Ok(())
}

/// Whether a rule has whole points for each step, second or slot, which leave no fraction to weigh.
const fn is_in_whole_points(rule: Rule) -> bool {
    matches!(rule, Rule::Priority | Rule::Age | Rule::Rarity | Rule::OnDemand)
}

/// The shortest document of `policy`.
pub(crate) fn write(policy: &Policy) -> PolicyChoice {
    let own = policy.preset.policy();
    let preset = PresetName(policy.preset.name().to_owned());
    if *policy == own {
        return PolicyChoice::Named(preset);
    }
    let sampling = match policy.seat {
        Seat::FirstMatch(sampling) => sampling.map(|each| Object(Sampling::write(each))),
        Seat::FewestTypes | Seat::MostFree | Seat::Fit | Seat::Asking => None,
    };
    let is_unfair = !policy.fairness.is_bounded && own.fairness.is_bounded;
    let own = if is_unfair { own.unfair() } else { own };
    PolicyChoice::Changed(Box::new(PolicyObject {
        preset: Some(preset),
        sampling,
        priority_percentage: unless(policy.priority_percentage, &own.priority_percentage)
            .map(Percentage),
        failure_backoff_ms: unless(policy.failure_backoff, &own.failure_backoff).map(Span::from),
        proactive_fetch_to_capacity: unless(
            policy.proactive_fetch_to_capacity,
            &own.proactive_fetch_to_capacity,
        ),
        proactive_fetch_literal: unless(
            policy.proactive_fetch_literal,
            &own.proactive_fetch_literal,
        ),
        literal: unless(policy.literal, &own.literal),
        preemption: unless(policy.preemption, &own.preemption)
            .map(|preemption| Object(Preemption::write(preemption))),
        eviction_cooldown_ms: unless(policy.eviction_cooldown, &own.eviction_cooldown)
            .map(Span::from),
        aging: unless(policy.aging, &own.aging).map(|aging| Object(Aging::write(aging))),
        fair_slack_ms: unless(policy.fairness.slack, &own.fairness.slack).map(Span::from),
        interactive_share: unless(policy.fairness.interactive, &own.fairness.interactive)
            .map(Factor),
        share: unless(policy.turn, &own.turn).map(|turn| turn != Turn::FirstCome),
        // Fields that differ from the unfair policy are written.
        fair: is_unfair.then_some(false),
        rules: write_rules(policy, &own),
        guard: unless(policy.guard, &own.guard),
        reserve: unless(policy.reserve, &own.reserve),
        reserve_wait_max_ms: unless(policy.reserve_wait_max, &own.reserve_wait_max).map(Span::from),
    }))
}

fn write_rules<const MAX: usize>(
    policy: &Policy,
    own: &Policy,
) -> Option<Table<Label, Factor, MAX>> {
    let changed = Rule::ALL.into_iter().filter_map(|rule| {
        let weight = |policy: &Policy| policy.rules.get(&rule).copied().unwrap_or(Fixed::ZERO);
        let weight = unless(weight(policy), &weight(own))?;
        Some((Label(Name::new(rule.name())), Factor(weight)))
    });
    let changed = Table(changed.collect());
    (!changed.0.is_empty()).then_some(changed)
}

impl Sampling {
    fn read(self) -> model::policy::Sampling {
        let default = model::policy::Sampling::new(self.sample_size.0);
        let weights = self.weights.map(|Object(weights)| weights).unwrap_or_default();
        model::policy::Sampling {
            max_attempts: or(self.max_attempts, default.max_attempts),
            rank: or(weights.rank, default.rank),
            hint: or(weights.hint, default.hint),
            free: or(weights.free, default.free),
            ..default
        }
    }

    fn write(sampling: model::policy::Sampling) -> Self {
        let default = model::policy::Sampling::new(sampling.sample_size);
        let weights = SamplingWeights {
            rank: Some(SignedNumber(sampling.rank)),
            hint: Some(SignedNumber(sampling.hint)),
            free: Some(SignedNumber(sampling.free)),
        };
        Self {
            sample_size: AtLeastOne(sampling.sample_size),
            max_attempts: unless(sampling.max_attempts, &default.max_attempts).map(Attempts),
            weights: Some(Object(weights)),
        }
    }
}

impl Preemption {
    fn read(self, own: model::policy::Preemption) -> model::policy::Preemption {
        model::policy::Preemption {
            enabled: or(self.enabled, own.enabled),
            delay: or(self.delay_ms, own.delay),
            min_run: or(self.min_run_ms, own.min_run),
            evictions_max: or(self.evictions_max, own.evictions_max),
        }
    }

    fn write(preemption: model::policy::Preemption) -> Self {
        Self {
            enabled: Some(preemption.enabled),
            delay_ms: Some(preemption.delay.into()),
            min_run_ms: Some(preemption.min_run.into()),
            evictions_max: Some(Count(preemption.evictions_max)),
        }
    }
}

impl Aging {
    fn read(self, own: model::policy::Aging) -> model::policy::Aging {
        model::policy::Aging {
            priority: or(self.priority, own.priority),
            age: or(self.age, own.age),
            rarity: or(self.rarity, own.rarity),
            on_demand: or(self.on_demand, own.on_demand),
            on_demand_age: or(self.on_demand_age, own.on_demand_age),
            on_demand_age_max: or(self.on_demand_age_max_ms, own.on_demand_age_max),
            length: or(self.length, own.length),
        }
    }

    fn write(aging: model::policy::Aging) -> Self {
        Self {
            priority: Some(AgingPoints(aging.priority)),
            age: Some(Slope(aging.age)),
            rarity: Some(AgingPoints(aging.rarity)),
            on_demand: Some(AgingPoints(aging.on_demand)),
            on_demand_age: Some(Slope(aging.on_demand_age)),
            on_demand_age_max_ms: Some(aging.on_demand_age_max.into()),
            length: Some(Factor(aging.length)),
        }
    }
}
