//! A small model of claims, leases and tokens, of which every state is checked. It has two
//! schedulers, two workers (one may die) and two jobs of two attempts each. Messages get lost and
//! come late, and results may come twice. An offer that was not read before the acknowledgement of
//! a later heartbeat is lost, because streams keep their order.
//!
//! A job's fence increases by one with each claim and each expiry, so it is the whole state. A job
//! with an even fence is queued. One with an odd fence is held with token `fence / 2 + 1`.

use std::collections::{HashMap, VecDeque};

const JOBS: usize = 2;
const WORKERS: usize = 2;
const SCHEDULERS: usize = 2;
/// The last time of the clock, which starts at 0.
const CLOCK_MAX: u8 = 1;
/// A job is given up after two lost attempts.
const FENCE_MAX: u8 = 4;
/// More than the number of states, so that a model that grows is noticed.
const STATES_MAX: usize = 3_000_000;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Broken {
    Nothing,
    Guard,
    Token,
    Expiry,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Job {
    fence: u8,
    holder: u8,
    is_done: bool,
}

impl Job {
    const fn token(self) -> u8 {
        self.fence / 2 + 1
    }

    const fn is_held(self) -> bool {
        !self.is_done && self.fence % 2 == 1
    }

    const fn is_over(self) -> bool {
        self.is_done || self.fence == FENCE_MAX
    }
}

/// A job, a token and a worker.
type Word = (u8, u8, u8);

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct State {
    clock: u8,
    jobs: [Job; JOBS],
    /// The job that each scheduler saw queued last, with its fence. Schedulers are interchangeable.
    seen: [Option<(u8, u8)>; SCHEDULERS],
    lease_until: [u8; WORKERS],
    runs: [Option<(u8, u8)>; WORKERS],
    /// The last worker died, and does not return.
    is_dead: bool,
    /// Messages on their way, sorted.
    offers: Vec<Word>,
    /// Sent results, which are never removed: they may come late, twice or not at all. Sorted.
    results: Vec<Word>,
    /// All pairs of a worker and an attempt that it ran.
    ran: Vec<Word>,
    /// A result counted that was not the holder's.
    is_wrong: bool,
}

fn index(n: u8) -> usize {
    usize::from(n)
}

fn insert(words: &mut Vec<Word>, word: Word) {
    if let Err(at) = words.binary_search(&word) {
        words.insert(at, word);
    }
}

/// All possible next states.
fn next(state: &State, broken: Broken) -> Vec<State> {
    let mut all = Vec::new();
    let mut may = |change: &dyn Fn(&mut State)| {
        let mut after = state.clone();
        change(&mut after);
        tidy_up(&mut after);
        if after != *state {
            all.push(after);
        }
    };
    if state.clock < CLOCK_MAX {
        may(&|after| {
            after.clock += 1;
            for worker in 0..WORKERS {
                // A worker stops its run no later than its lease ends.
                if after.lease_until[worker] <= after.clock {
                    after.runs[worker] = None;
                }
            }
        });
    }
    for (job, (one, number)) in state.jobs.iter().zip(0_u8..).enumerate() {
        for scheduler in 0..SCHEDULERS {
            if !one.is_over() && !one.is_held() {
                may(&|after| after.seen[scheduler] = Some((number, one.fence)));
            }
            let Some((_, fence)) = state.seen[scheduler].filter(|seen| seen.0 == number) else {
                continue;
            };
            for holder in 0_u8..2 {
                may(&|after| claim(after, (scheduler, number, holder), fence, broken));
            }
        }
        let is_out = one.is_held() && state.lease_until[index(one.holder)] <= state.clock;
        if is_out && broken != Broken::Expiry {
            may(&|after| after.jobs[job].fence += 1);
        }
        let word = (number, one.token(), one.holder);
        if one.is_held() && is_alive(state, one.holder) && !has(state, word) {
            // The next heartbeat of the worker does not name the attempt.
            may(&|after| after.jobs[job].fence += 1);
        }
    }
    if state.lease_until[WORKERS - 1] <= CLOCK_MAX {
        may(&|after| {
            after.is_dead = true;
            after.runs[WORKERS - 1] = None;
        });
    }
    for (worker, number) in (0..WORKERS).zip(0_u8..) {
        if !is_alive(state, number) {
            continue;
        }
        may(&|after| {
            after.lease_until[worker] = after.clock + 1;
            after.offers.retain(|(_, _, to)| *to != number);
        });
        if let Some((job, token)) = state.runs[worker] {
            may(&|after| {
                after.runs[worker] = None;
                insert(&mut after.results, (job, token, number));
            });
        }
    }
    for offer in &state.offers {
        may(&|after| start(after, *offer));
    }
    for result in &state.results {
        may(&|after| end(after, *result, broken));
    }
    all
}

/// Removes data that can have no effect any more.
fn tidy_up(after: &mut State) {
    let jobs = after.jobs;
    let is_open = |word: &Word| !jobs[index(word.0)].is_over();
    after.offers.retain(is_open);
    after.results.retain(is_open);
    after.seen.sort_unstable();
}

fn is_alive(state: &State, worker: u8) -> bool {
    !state.is_dead || index(worker) + 1 < WORKERS
}

/// Whether the worker has the attempt, has completed it, or may still get it.
fn has(state: &State, word: Word) -> bool {
    let (job, token, worker) = word;
    let runs = state.runs[index(worker)] == Some((job, token));
    runs || state.offers.contains(&word) || state.results.contains(&word)
}

fn claim(after: &mut State, (scheduler, job, holder): (usize, u8, u8), fence: u8, broken: Broken) {
    after.seen[scheduler] = None;
    let one = &mut after.jobs[index(job)];
    let is_as_seen = one.fence == fence && !one.is_done;
    if is_as_seen || broken == Broken::Guard {
        *one = Job { fence: fence + 1, holder, is_done: one.is_done };
        insert(&mut after.offers, (job, fence / 2 + 1, holder));
    }
}

fn start(after: &mut State, (job, token, worker): Word) {
    let at = index(worker);
    let is_own = after.lease_until[at] > after.clock && is_alive(after, worker);
    if is_own && after.runs[at].is_none() && !after.ran.contains(&(job, token, worker)) {
        after.runs[at] = Some((job, token));
        insert(&mut after.ran, (job, token, worker));
    }
}

fn end(after: &mut State, (job, token, worker): Word, broken: Broken) {
    let one = &mut after.jobs[index(job)];
    let is_current = one.token() == token && one.holder == worker;
    if one.is_held() && (is_current || broken == Broken::Token) {
        one.is_done = true;
        after.is_wrong |= !is_current;
    }
}

/// The violation in a state.
fn flaw(state: &State) -> Option<&'static str> {
    let twice = |pair: &[Word]| pair[0].0 == pair[1].0 && pair[0].1 == pair[1].1;
    let [one, other] = state.runs;
    if state.ran.windows(2).any(twice) {
        return Some("one token ran twice");
    }
    if one.zip(other).is_some_and(|((one, _), (other, _))| one == other) {
        return Some("two attempts of a job run at once");
    }
    state.is_wrong.then_some("a result counted that was not the holder's")
}

/// Checks every state. Returns their number, or a violation.
fn explore(broken: Broken) -> Result<usize, &'static str> {
    let first = State::default();
    let mut numbers: HashMap<State, u32> = HashMap::from([(first.clone(), 0)]);
    let mut before: Vec<Vec<u32>> = vec![Vec::new()];
    let mut is_over = vec![false];
    let mut open = VecDeque::from([first]);
    while let Some(state) = open.pop_front() {
        let number = numbers[&state];
        for after in next(&state, broken) {
            if let Some(flaw) = flaw(&after) {
                return Err(flaw);
            }
            let fresh = u32::try_from(numbers.len()).expect("there are fewer");
            let known = *numbers.entry(after.clone()).or_insert(fresh);
            if known == fresh {
                before.push(Vec::new());
                is_over.push(after.jobs.iter().all(|job| job.is_over()));
                open.push_back(after);
            }
            before[usize::try_from(known).expect("it fits")].push(number);
        }
        assert!(numbers.len() < STATES_MAX, "the model has too many states");
    }
    if can_end(&before, is_over) { Ok(numbers.len()) } else { Err("a job may never end") }
}

/// Whether every state can reach a state in which all jobs are final.
fn can_end(before: &[Vec<u32>], mut is_over: Vec<bool>) -> bool {
    let mut open: Vec<usize> = (0..is_over.len()).filter(|state| is_over[*state]).collect();
    while let Some(state) = open.pop() {
        for earlier in &before[state] {
            let earlier = usize::try_from(*earlier).expect("it fits");
            if !std::mem::replace(&mut is_over[earlier], true) {
                open.push(earlier);
            }
        }
    }
    is_over.into_iter().all(|is_so| is_so)
}

#[test]
fn no_state_of_the_model_is_wrong_and_each_leads_to_an_end() {
    let n_states = explore(Broken::Nothing).unwrap_or_else(|flaw| panic!("{flaw}"));
    println!("{n_states} states");
    assert!(n_states > 10_000, "{n_states} states are no test");
}

#[test]
fn without_a_guard_one_token_is_given_twice() {
    assert!(explore(Broken::Guard).is_err());
}

#[test]
fn without_the_token_a_foreign_result_counts() {
    assert_eq!(explore(Broken::Token), Err("a result counted that was not the holder's"));
}

#[test]
fn without_an_end_of_leases_a_job_may_never_end() {
    assert_eq!(explore(Broken::Expiry), Err("a job may never end"));
}
