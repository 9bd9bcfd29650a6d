//! Whether slots that are kept from a job on purpose are kept for somebody, and not for too long.
//!
//! Whether rarer work is expected can be told exactly. Who had a turn before whom cannot: a slot is
//! taken to be kept for a wide job if some wide job could have been told to wait for it.

use std::collections::{BTreeMap, BTreeSet};

use model::policy::{Order, RARE_SPAN, Turn};
use model::{Attempt, Decision, Job, Millis, Name, Policy, Reason, Recent, Timestamp, Worker};

use super::delay::delay;
use super::fit::could_ever_run;
use super::holds::{first_reason_anywhere, has_room, is_asked, is_open, is_within_type_max};
use super::ledger::Ledger;
use super::limits;
use super::placements::placed_on;

/// Whether `worker`, which has room for `job`, is kept for rarer work that is expected.
pub(super) fn is_guarded(ledger: &Ledger<'_>, job: &Job, worker: &Worker) -> bool {
    let before = ledger.before;
    if !ledger.policy_of(job).guard || is_overdue(ledger, job) {
        return false;
    }
    let serving = || before.workers.iter().filter(|worker| worker.is_serving());
    let own = serving().filter(|worker| could_ever_run(ledger, job, worker));
    let own: u64 = own.map(|worker| u64::from(worker.slots)).sum();
    let n_alike = ledger.before.jobs.iter().filter(|other| {
        !ledger.is_placed(&other.id) && is_in_line(ledger, other) && is_alike(ledger, job, other)
    });
    let n_alike = i128::try_from(n_alike.count()).unwrap_or(i128::MAX);
    let (said, usual) = (length(ledger, job), before.usual.unwrap_or(Millis(1)).0);
    let skill = i64::try_from(skill(ledger, job)).unwrap_or(0);
    let length = i128::from(usual + (said - usual) * skill / 1_000);
    let (span, usual) = (i128::from(RARE_SPAN.0), i128::from(usual));
    // What the same workers could run counts together.
    let mut rare: BTreeMap<Vec<usize>, i64> = BTreeMap::new();
    for (kind, n_came) in came_lately(ledger) {
        let workers = before.workers.iter().enumerate();
        let able = workers.filter(|(_, worker)| runs(worker, kind)).map(|(at, _)| at);
        *rare.entry(able.collect()).or_default() += n_came;
    }
    rare.into_iter().any(|(able, n_came)| {
        let able = || able.iter().map(|at| &before.workers[*at]);
        let of_serving = || able().filter(|worker| worker.is_serving());
        let slots: u64 = of_serving().map(|worker| u64::from(worker.slots)).sum();
        let n_free: u64 = of_serving().map(|worker| limits::slots_free(ledger, worker)).sum();
        let n_left = i128::from(n_free.saturating_sub(u64::from(job.slots)));
        // Those that come while it runs and find no slot wait for half of it, or until the next of
        // their slots is free. Each that waits for the same work is spared the time until the next
        // of its own slots is free.
        let n_late = i128::from(n_came) * length - n_left * span;
        let delay = (length / 2).min(usual / i128::from(slots.max(1)));
        let spared = span * n_alike * usual;
        able().any(|own| own.id == worker.id)
            && slots < own
            && n_late * delay * i128::from(own) > spared
    })
}

fn length(ledger: &Ledger<'_>, job: &Job) -> i64 {
    let usual = ledger.before.usual.unwrap_or(Millis(1));
    job.estimate.unwrap_or(usual).0
}

/// How well lengths of its tenant were known, in thousandths.
fn skill(ledger: &Ledger<'_>, job: &Job) -> i128 {
    let tenant = ledger.before.tenants.iter().find(|own| own.id == job.tenant);
    let Some(account) = tenant.map(|own| &own.account) else { return 0 };
    let n = account.trust.runs.in_thousandths();
    let mean = |sum: i64| if n == 0 { 0 } else { i128::from(sum) * 1_000 / i128::from(n) };
    let spread = (mean(account.trust.squares) - mean(account.trust.sum).pow(2)).max(0);
    if spread == 0 {
        0
    } else {
        let unexplained = mean(account.trust.errors) * 1_000 / spread;
        (1_000 - unexplained - 1_000_000 / i128::from(n)).clamp(0, 1_000)
    }
}

/// Whether the job's tenant was served what the starvation bound says since the job came.
fn is_overdue(ledger: &Ledger<'_>, job: &Job) -> bool {
    let before = ledger.before;
    let tenant = before.tenants.iter().find(|own| own.id == job.tenant);
    let Some(account) = tenant.map(|own| &own.account) else { return false };
    let own = before.attempts.iter().filter(|own| own.tenant == job.tenant);
    let running = own.map(|own| i64::from(own.slots) * (before.now.0 - own.started.0));
    let served = account.served + running.sum::<i64>();
    let waiting = before.jobs.iter().filter(|own| own.tenant == job.tenant);
    let waiting = waiting.filter(|own| is_in_line(ledger, own));
    let work = waiting.map(|own| i64::from(own.slots) * length(ledger, own)).sum::<i64>().max(1);
    // Queues are observed where some part shares slot time. They are those of all parts.
    let shares =
        |policy: &Policy| policy.turn == Turn::FairQueue || policy.order == Order::Shortest;
    let work = if ledger.policies().any(shares) { work } else { 0 };
    let peak = &account.queue;
    let most = peak.now.max(work);
    let is_over = work > 0 && !peak.marks.is_empty() && served - peak.since > most;
    let most = if is_over { most } else { most.max(peak.before) };
    let skill = skill(ledger, job);
    let reach = (i128::from(most) * skill.max(125) / 1_000).max(1);
    let past = |mark: i64| i128::from(served) - i128::from(mark) >= reach;
    let policy = ledger.policy_of(job);
    policy.fairness.is_bounded
        && shares(policy)
        && before.usual.is_some()
        && peak.marks.iter().any(|(at, mark)| past(*mark) && job.ready <= *at)
}

/// Whether its moment had come before this decision.
fn is_in_line(ledger: &Ledger<'_>, job: &Job) -> bool {
    job.ready.max(job.not_before.unwrap_or(job.ready)) <= ledger.before.now
}

/// Whether the same workers could run both.
fn is_alike(ledger: &Ledger<'_>, job: &Job, other: &Job) -> bool {
    let could_run = |job: &Job, worker: &Worker| could_ever_run(ledger, job, worker);
    ledger.before.workers.iter().all(|own| could_run(job, own) == could_run(other, own))
}

/// How many jobs of each type became ready lately.
fn came_lately<'a>(ledger: &Ledger<'a>) -> BTreeMap<&'a Name, i64> {
    let before = ledger.before;
    let told = before.types.iter().filter_map(|kind| Some((&kind.name, kind.recent?)));
    let mut recents: BTreeMap<&Name, Recent> = BTreeMap::new();
    for (kind, job) in before.jobs.iter().filter_map(|job| Some((job.kind.as_ref()?, job))) {
        recents.entry(kind).or_default().add(job.ready, 1, RARE_SPAN);
    }
    recents.extend(told);
    recents.into_iter().map(|(kind, recent)| (kind, recent.sum(before.now, RARE_SPAN))).collect()
}

fn runs(worker: &Worker, kind: &Name) -> bool {
    worker.types.is_empty() || worker.types.contains(kind)
}

/// Whether `worker`, which has room for `job`, may be kept for another job that waits.
pub(super) fn is_reserved(ledger: &Ledger<'_>, job: &Job, worker: &Worker) -> bool {
    let waiting = |other: &&Job| other.id != job.id && !ledger.is_placed(&other.id);
    ledger.before.jobs.iter().filter(waiting).any(|other| {
        is_promised(ledger, other, job, worker) || is_awaited(ledger, other, job, worker)
    })
}

/// Whether attempts on `worker` stop for `other`, and `job` would take some of that room.
fn is_promised(ledger: &Ledger<'_>, other: &Job, job: &Job, worker: &Worker) -> bool {
    let stops = |run: &&&Attempt| run.stopping_for.as_ref() == Some(&other.id);
    let running = on(ledger, worker);
    let victims: Vec<&Attempt> = running.iter().filter(stops).copied().collect();
    if victims.is_empty() {
        return false;
    }
    // What others took in this decision they may have taken of what is left.
    let is_changed = placed_on(ledger, &worker.id) > 0;
    is_changed || !fits_beside(job, other, &Room::with(ledger, worker, &victims))
}

/// Whether `other` is a wide job that may be told to wait for `worker`, and `job` would delay it.
fn is_awaited(ledger: &Ledger<'_>, other: &Job, job: &Job, worker: &Worker) -> bool {
    let policy = ledger.policy_of(other);
    let is_wide = other.slots > 1 || other.amounts.values().any(|amount| *amount > 0);
    let keeps = policy.reserve && policy.order != Order::Rules;
    // Beside a wide job that is overdue, limits count instead of predictions.
    let lengths = [job.estimate, job.limit.or(job.estimate)];
    let mut delays = lengths.into_iter().map(|own| would_delay(ledger, other, (job, own), worker));
    keeps && is_wide && may_wait_for(ledger, other, worker) && delays.any(|delays| delays)
}

/// Whether `job` of this length on `worker` would delay the start of `other` there.
fn would_delay(
    ledger: &Ledger<'_>,
    other: &Job,
    (job, length): (&Job, Option<Millis>),
    worker: &Worker,
) -> bool {
    let before = ledger.before;
    let wait_max = wait_max(ledger, other);
    let mut ends: Vec<(Timestamp, &Attempt)> = on(ledger, worker)
        .into_iter()
        .filter_map(|run| Some((expected_end(before.now, run, wait_max)?, run)))
        .collect();
    ends.sort_by_key(|(end, _)| *end);
    if placed_on(ledger, &worker.id) > 0 {
        let all: Vec<&Attempt> = ends.iter().map(|(_, run)| *run).collect();
        let mut room = Room::with(ledger, worker, &all);
        room.slots -= slots_placed_for_ever(ledger, worker, wait_max);
        return room.holds(other);
    }
    let moments: BTreeSet<Timestamp> = ends.iter().map(|(end, _)| *end).collect();
    let start = moments.into_iter().find_map(|moment| {
        let ended = ends.iter().filter(|(end, _)| *end <= moment);
        let ended: Vec<&Attempt> = ended.map(|(_, run)| *run).collect();
        let room = Room::with(ledger, worker, &ended);
        room.holds(other).then_some((moment, room))
    });
    start.is_some_and(|(start, room)| {
        // Beside what is late, a job of unknown length counts half of what anybody is waited for.
        let is_late = |run: &Attempt| {
            let is_outrun = |estimate| run.started + estimate < before.now;
            run.limit.is_none() && run.estimate.is_some_and(is_outrun)
        };
        let lends = ends.iter().any(|(end, run)| *end == start && is_late(run));
        let unknown = lends.then_some(Millis(wait_max.0 / 2));
        let end = length.or(unknown).map(|length| before.now + length);
        let is_done = before.now < start && end.is_some_and(|end| end <= start);
        !is_done && !fits_beside(job, other, &room)
    })
}

/// For so long `other` may wait for an attempt of unknown length: not longer than twice the usual.
fn wait_max(ledger: &Ledger<'_>, other: &Job) -> Millis {
    let set = ledger.policy_of(other).reserve_wait_max;
    ledger.before.usual.map_or(set, |usual| set.min(Millis(usual.0.saturating_mul(2))))
}

/// Whether `other` could not start now, could have started before this decision if there had been
/// room, and could start on `worker` if there were.
fn may_wait_for(ledger: &Ledger<'_>, other: &Job, worker: &Worker) -> bool {
    let nothing = Decision::default();
    let earlier = Ledger::new(ledger.before, &nothing);
    let is_kept_itself = ledger.decision.holds.iter().any(|hold| {
        hold.job == other.id && matches!(hold.reason, Reason::Guarded | Reason::Reserved)
    });
    let mut workers = ledger.before.workers.iter();
    let is_stuck = !workers.any(|each| is_asked(ledger, each) && is_open(ledger, other, each));
    delay(ledger, other).is_none()
        && first_reason_anywhere(&earlier, other).is_none()
        && (is_stuck || is_kept_itself)
        && worker.is_serving()
        && could_ever_run(ledger, other, worker)
        && !has_room(ledger, other, worker)
        && limits::quota(&earlier, other, &worker.pool).is_none_or(|meter| meter.allows_one_more())
        && is_within_type_max(&earlier, other, worker)
}

/// When `run` is expected to end, at its limit if it has one.
fn expected_end(now: Timestamp, run: &Attempt, wait_max: Millis) -> Option<Timestamp> {
    let ran = now.since(run.started);
    match run.limit {
        Some(limit) => Some(run.started + limit.max(ran)),
        None => predicted_end(now, run, wait_max),
    }
}

/// When `run` is expected to end; `None` if it has run without a prediction for longer than anybody
/// is to wait for. What is late takes twice as long, or twice that, and so on, but not below 2 s.
fn predicted_end(now: Timestamp, run: &Attempt, wait_max: Millis) -> Option<Timestamp> {
    let ran = now.since(run.started);
    let Some(estimate) = run.estimate else { return (ran < wait_max).then(|| now + ran) };
    let lengths =
        std::iter::successors(Some(estimate.0.max(1_000)), |length| Some(length.saturating_mul(2)));
    let longer = || lengths.skip(1).find(|length| *length >= ran.0).map(Millis);
    let length = if estimate >= ran { Some(estimate) } else { longer() };
    length.map(|length| run.started + length)
}

/// Slots of jobs that are placed on `worker` and that nobody is to wait for.
fn slots_placed_for_ever(ledger: &Ledger<'_>, worker: &Worker, wait_max: Millis) -> i128 {
    let waits = wait_max > Millis::ZERO;
    let placed = ledger.placements.iter().filter(|placed| placed.worker.id == worker.id);
    let is_endless = |job: &&Job| job.estimate.or(job.limit).is_none() && !waits;
    let jobs = placed.map(|placed| placed.job).filter(is_endless);
    jobs.map(|job| i128::from(job.slots)).sum()
}

fn on<'a>(ledger: &Ledger<'a>, worker: &Worker) -> Vec<&'a Attempt> {
    ledger.before.attempts.iter().filter(|run| run.worker == worker.id).collect()
}

/// What a worker has free before the decision, with what some attempts will leave.
struct Room<'a> {
    worker: &'a Worker,
    slots: i128,
    attempts: Vec<&'a Attempt>,
    left: Vec<&'a Attempt>,
}

impl<'a> Room<'a> {
    fn with(ledger: &Ledger<'a>, worker: &'a Worker, left: &[&'a Attempt]) -> Self {
        let attempts = on(ledger, worker);
        let slots = limits::slots_free_before(ledger, worker)
            + left.iter().map(|run| i128::from(run.slots)).sum::<i128>();
        Self { worker, slots, attempts, left: left.to_vec() }
    }

    fn amount(&self, name: &Name) -> u128 {
        let of = |runs: &[&Attempt]| -> u128 {
            runs.iter().map(|run| u128::from(run.amounts.get(name).copied().unwrap_or(0))).sum()
        };
        let all = self.worker.amounts.get(name).copied().unwrap_or(0);
        u128::from(all).saturating_sub(of(&self.attempts)) + of(&self.left)
    }

    fn holds(&self, job: &Job) -> bool {
        i128::from(job.slots) <= self.slots
            && job.amounts.iter().all(|(name, asked)| u128::from(*asked) <= self.amount(name))
    }
}

/// Whether `job` takes no more of `room` than `other` leaves.
fn fits_beside(job: &Job, other: &Job, room: &Room<'_>) -> bool {
    let slots_left = (room.slots - i128::from(other.slots)).max(0);
    i128::from(job.slots) <= slots_left
        && job.amounts.iter().all(|(name, asked)| {
            let taken = other.amounts.get(name).copied().filter(|taken| *taken > 0);
            taken.is_none_or(|taken| {
                u128::from(*asked) <= room.amount(name).saturating_sub(u128::from(taken))
            })
        })
}
