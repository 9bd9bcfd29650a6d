//! Whether slots that are kept from a job on purpose are kept for somebody, and not for too long.
//!
//! Whether rarer work is expected can be told exactly. Who had a turn before whom cannot: a slot is
//! taken to be kept for a wide job if some wide job could have been told to wait for it.

use std::collections::{BTreeMap, BTreeSet};

use model::policy::{Guard, LENGTH_UNKNOWN, Order, RARE_SPAN, Shortest};
use model::{Attempt, Decision, Job, Millis, Name, Reason, Recent, Timestamp, Worker};

use super::delay::delay;
use super::fit::{could_ever_run, misfit};
use super::holds::{first_reason_anywhere, has_room, is_asked, is_open, is_within_type_max};
use super::ledger::Ledger;
use super::limits;
use super::placements::placed_on;

/// Whether `worker`, which has room for `job`, is kept for rarer work that is expected.
pub(super) fn is_guarded(ledger: &Ledger<'_>, job: &Job, worker: &Worker) -> bool {
    let before = ledger.before;
    let Some(Guard { rare_one_in, price }) = before.policy.guard else { return false };
    if before.now.since(job.ready) >= guard_max(ledger) {
        return false;
    }
    let serving = || before.workers.iter().filter(|worker| worker.is_serving());
    let own = serving().filter(|worker| misfit(ledger, job, worker).is_none());
    let own: u64 = own.map(|worker| u64::from(worker.slots)).sum();
    let n_alike = ledger.before.jobs.iter().filter(|other| {
        !ledger.is_placed(&other.id) && is_in_line(ledger, other) && is_alike(ledger, job, other)
    });
    let n_alike = i128::try_from(n_alike.count()).unwrap_or(i128::MAX);
    came_lately(ledger).into_iter().filter(|(kind, _)| Some(*kind) != job.kind.as_ref()).any(
        |(kind, n_came)| {
            let able = || serving().filter(|worker| runs(worker, kind));
            let slots: u64 = able().map(|worker| u64::from(worker.slots)).sum();
            let n_free: u64 = able().map(|worker| limits::slots_free(ledger, worker)).sum();
            let n_left = n_free.saturating_sub(u64::from(job.slots));
            let length = i128::from(job.estimate.unwrap_or(LENGTH_UNKNOWN).0);
            // Those that come while it runs wait for half of it, on average; a quarter as often
            // for each slot that stays free.
            let delay = i128::from(n_came) * length * i128::from(price.in_thousandths());
            let quarters = u32::try_from(n_left).unwrap_or(u32::MAX);
            let likely = 4_i128.checked_pow(quarters).unwrap_or(i128::MAX);
            let spared = 2_000 * i128::from(RARE_SPAN.0) * n_alike;
            runs(worker, kind)
                && slots * u64::from(rare_one_in) <= own
                && delay * i128::from(own) / likely > spared
        },
    )
}

/// How long slots are kept from a job at most: twice its patience.
pub(super) fn guard_max(ledger: &Ledger<'_>) -> Millis {
    let before = ledger.before;
    if before.policy.order != Order::Shortest {
        return Millis::ZERO;
    }
    let Shortest { patience_min, patience_drain, patience_crowd, .. } = before.policy.shortest;
    let slots = before.workers.iter().filter(|worker| worker.is_serving());
    let slots: i128 = slots.map(|worker| i128::from(worker.slots)).sum::<i128>().max(1);
    let waiting = || before.jobs.iter().filter(|job| is_in_line(ledger, job));
    let work: i128 = waiting()
        .map(|job| i128::from(job.estimate.unwrap_or(LENGTH_UNKNOWN).0) * i128::from(job.slots))
        .sum();
    let crowd = i128::from(patience_crowd.in_thousandths().max(1)) * slots;
    let n_waiting = i128::try_from(waiting().count()).unwrap_or(i128::MAX);
    let crowd = (n_waiting * 1_000_000 / crowd).min(4_000);
    let part = i128::from(patience_drain.in_thousandths()) + crowd;
    let more = i64::try_from(work / slots * part / 1_000).unwrap_or(i64::MAX);
    Millis(patience_min.0.saturating_add(more).saturating_mul(2))
}

/// Whether its moment had come before this decision.
fn is_in_line(ledger: &Ledger<'_>, job: &Job) -> bool {
    job.ready.max(job.not_before.unwrap_or(job.ready)) <= ledger.before.now
}

/// Whether the same workers could run both.
fn is_alike(ledger: &Ledger<'_>, job: &Job, other: &Job) -> bool {
    let own = |job: &Job| ledger.job_type(job).and_then(|kind| kind.pool.clone());
    let pool = |job: &Job| job.pool.clone().or_else(|| own(job));
    job.kind == other.kind && job.needs == other.needs && pool(job) == pool(other)
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
    let before = ledger.before;
    let is_wide = other.slots > 1 || other.amounts.values().any(|amount| *amount > 0);
    let keeps = before.policy.reserve && before.policy.order != Order::Rules;
    // Where one worker alone could run it, it may count on limits instead of predictions.
    let delays = |limits_count| would_delay(ledger, other, job, worker, limits_count);
    keeps && is_wide && may_wait_for(ledger, other, worker) && (delays(false) || delays(true))
}

/// Whether `job` on `worker` would delay the start of `other` there.
fn would_delay(
    ledger: &Ledger<'_>,
    other: &Job,
    job: &Job,
    worker: &Worker,
    limits_count: bool,
) -> bool {
    let before = ledger.before;
    // Who has waited for far too long may wait for everybody; for less than this nobody has.
    let patience_min = before.policy.shortest.patience_min.0.saturating_mul(2);
    let waits = limits_count && before.now.since(other.ready).0 >= patience_min;
    let wait_max = if waits { Millis(i64::MAX) } else { before.policy.reserve_wait_max };
    let mut ends: Vec<(Timestamp, &Attempt)> = on(ledger, worker)
        .into_iter()
        .filter_map(|run| Some((expected_end(before.now, run, (limits_count, wait_max))?, run)))
        .collect();
    ends.sort_by_key(|(end, _)| *end);
    if placed_on(ledger, &worker.id) > 0 {
        let all: Vec<&Attempt> = ends.iter().map(|(_, run)| *run).collect();
        let mut room = Room::with(ledger, worker, &all);
        room.slots -= slots_placed_for_ever(ledger, worker);
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
            !(limits_count && run.limit.is_some()) && run.estimate.is_some_and(is_outrun)
        };
        let lends = ends.iter().any(|(end, run)| *end == start && is_late(run));
        let unknown = lends.then_some(Millis(before.policy.reserve_wait_max.0 / 2));
        let length = if limits_count { job.limit.or(job.estimate) } else { job.estimate };
        let end = length.or(unknown).map(|length| before.now + length);
        let is_done = before.now < start && end.is_some_and(|end| end <= start);
        let is_beside = fits_beside(job, other, &room);
        !is_done && !(is_beside && (!limits_count || fits_beside_widest(ledger, job, &room)))
    })
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
    delay(ledger.before, other).is_none()
        && first_reason_anywhere(&earlier, other).is_none()
        && (is_stuck || is_kept_itself)
        && worker.is_serving()
        && could_ever_run(ledger, other, worker)
        && !has_room(ledger, other, worker)
        && limits::quota(&earlier, other, &worker.pool).is_none_or(|meter| meter.allows_one_more())
        && is_within_type_max(&earlier, other, worker)
}

/// Whether `job` fits beside the widest job that waits.
fn fits_beside_widest(ledger: &Ledger<'_>, job: &Job, room: &Room<'_>) -> bool {
    let widest = ledger.before.jobs.iter().map(|wide| wide.slots).max().unwrap_or(0);
    room.slots >= i128::from(widest) + i128::from(job.slots)
}

/// When `run` is expected to end, at its limit if it has one and that counts.
fn expected_end(
    now: Timestamp,
    run: &Attempt,
    (limits_count, wait_max): (bool, Millis),
) -> Option<Timestamp> {
    let ran = now.since(run.started);
    match run.limit.filter(|_| limits_count) {
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
fn slots_placed_for_ever(ledger: &Ledger<'_>, worker: &Worker) -> i128 {
    let waits = ledger.before.policy.reserve_wait_max > Millis::ZERO;
    let placed = ledger.placements.iter().filter(|placed| placed.worker.id == worker.id);
    let jobs = placed.map(|placed| placed.job).filter(|job| job.estimate.is_none() && !waits);
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
