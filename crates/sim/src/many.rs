//! Several schedulers, each with slots of its own, that see everything else as it was.
//!
//! Workers are dealt to the schedulers in turn, and so are the quotas of tenants, so that they hold
//! whatever the others do. What happens to the queue and on others' workers is news to a scheduler
//! after a while; until then it may ask for a job that another has taken. It loses, sees that the
//! job is gone, and looks again.
//!
//! Each decides for the whole fleet as it sees it, does its own part of that, and *leaves* the rest
//! to the others, who see much the same. So nobody puts a job on a slot that many could use while
//! another has a better one free. What nobody has done by the time it would be heard of, a
//! scheduler does itself if it can.

use std::collections::VecDeque;

use model::{Millis, Policy, Timestamp};

use crate::engine::{Loss, Scheduler, Seat};
use crate::fleet::Fleet;
use crate::preset::{Options, Part, Preset, Shown};
use crate::workload::Workload;

/// Several worlds at work.
pub struct Many<'a> {
    parts: Vec<Mind<'a>>,
    n_workers: usize,
    /// How old what they see of the queue is.
    age: Millis,
    /// What happened, and when it is seen.
    news: VecDeque<(Timestamp, News)>,
    /// Who has each job; nobody while it waits.
    owners: Vec<Option<u16>>,
    /// Who is the first to look; in turn, so that nobody always is.
    first: usize,
    stops: Vec<usize>,
    n_conflicts: u64,
}

/// One of the schedulers.
struct Mind<'a> {
    part: Part,
    preset: Preset<'a>,
    /// Jobs that are left to others, and until when.
    left: VecDeque<(Timestamp, usize)>,
}

/// What happened.
#[derive(Clone, Copy, Debug)]
struct News {
    what: What,
    /// Who made it happen, and knows it already.
    by: Option<u16>,
}

#[derive(Clone, Copy, Debug)]
enum What {
    /// A job waits.
    Waits(usize),
    /// It was taken to a worker.
    Taken(Seat),
    /// It ended after it ran for so long.
    Ended(usize, Millis),
    /// Its attempt came to nothing.
    Lost(usize, Loss),
    /// A worker is gone.
    Left(usize),
    /// It is back.
    Joined(usize),
}

impl<'a> Many<'a> {
    /// So many worlds, that see what is not theirs as it was `age` ago.
    pub fn new(
        workload: &'a Workload,
        fleet: &'a Fleet,
        policy: &Policy,
        options: Options,
        (n_schedulers, age): (u16, Millis),
    ) -> Self {
        let of = usize::from(n_schedulers.max(1));
        let mind = |index| {
            let part = Part { index, of };
            let preset = Preset::of_part(workload, fleet, policy.clone(), options, part);
            Mind { part, preset, left: VecDeque::new() }
        };
        Self {
            parts: (0..of).map(mind).collect(),
            n_workers: fleet.workers.len(),
            age,
            news: VecDeque::new(),
            owners: vec![None; workload.jobs.len()],
            first: 0,
            stops: Vec::new(),
            n_conflicts: 0,
        }
    }

    fn hear(&mut self, now: Timestamp) {
        while let Some((_, News { what, by })) =
            self.news.front().copied().filter(|(at, _)| *at <= now)
        {
            self.news.pop_front();
            let parts = self.parts.iter_mut().enumerate();
            for (_, mind) in parts.filter(|(ix, _)| by.map(usize::from) != Some(*ix)) {
                mind.hear(what, now);
            }
        }
    }

    fn tell(&mut self, now: Timestamp, what: What, by: Option<u16>) {
        self.news.push_back((now + self.age, News { what, by }));
    }

    /// One scheduler looks until it loses nothing.
    fn look(&mut self, ix: usize, now: Timestamp, seats: &mut Vec<Seat>) {
        let owner = u16::try_from(ix).expect("there are few schedulers");
        // By then it is heard of, if it is done.
        let heard = now + Millis(self.age.0 + 1);
        let is_late = self.parts[ix].take_back_left(now, &self.owners);
        if is_late {
            self.parts[ix].show_others(self.n_workers, Shown::AsTaken);
        }
        loop {
            let mut has_lost = false;
            for seat in self.parts[ix].preset.pass(now) {
                if !self.parts[ix].part.has(seat.worker) {
                    self.parts[ix].left.push_back((heard, seat.job));
                    continue;
                }
                if self.owners[seat.job].is_some() {
                    self.parts[ix].preset.take_back(seat.job, now);
                    self.n_conflicts += 1;
                    has_lost = true;
                    continue;
                }
                self.owners[seat.job] = Some(owner);
                self.tell(now, What::Taken(seat), Some(owner));
                seats.push(seat);
            }
            self.stops.append(&mut self.parts[ix].preset.stops());
            if !has_lost {
                break;
            }
        }
        if is_late {
            self.parts[ix].show_others(self.n_workers, Shown::AsItIs);
        }
    }

    fn owner(&mut self, job: usize) -> Option<&mut Preset<'a>> {
        Some(&mut self.parts.get_mut(usize::from(self.owners[job]?))?.preset)
    }

    fn owner_of_worker(&self, worker: usize) -> u16 {
        u16::try_from(worker % self.parts.len()).expect("there are few schedulers")
    }

    fn of_worker(&mut self, worker: usize) -> &mut Preset<'a> {
        let ix = usize::from(self.owner_of_worker(worker));
        &mut self.parts[ix].preset
    }
}

impl Mind<'_> {
    fn hear(&mut self, what: What, now: Timestamp) {
        match what {
            What::Waits(job) => self.preset.queue(job),
            What::Taken(Seat { job, worker }) => {
                self.left.retain(|(_, left)| *left != job);
                self.preset.start_elsewhere(job, worker, now);
            }
            What::Ended(job, ran) => self.preset.end_elsewhere(job, ran, now),
            What::Lost(job, loss) => self.preset.stop_elsewhere(job, loss, now),
            What::Left(worker) => self.preset.leave(worker, now),
            What::Joined(worker) => self.preset.join_elsewhere(worker),
        }
    }

    /// Takes back what was left to others and should have been heard of; whether there was any.
    fn take_back_left(&mut self, now: Timestamp, owners: &[Option<u16>]) -> bool {
        let mut is_any = false;
        while let Some((_, job)) = self.left.front().copied().filter(|(until, _)| *until <= now) {
            self.left.pop_front();
            self.preset.take_back(job, now);
            // Somebody took it since: that is news on its way.
            if owners[job].is_none() {
                self.preset.queue(job);
                is_any = true;
            }
        }
        is_any
    }

    fn show_others(&mut self, n_workers: usize, shown: Shown) {
        for worker in (0..n_workers).filter(|worker| !self.part.has(*worker)) {
            self.preset.show_elsewhere(worker, shown);
        }
    }
}

impl Scheduler for Many<'_> {
    fn arrive(&mut self, job: usize, now: Timestamp) {
        self.tell(now, What::Waits(job), None);
    }

    fn end(&mut self, job: usize, now: Timestamp) {
        let by = self.owners[job];
        if let Some(owner) = self.owner(job) {
            owner.end(job, now);
            let ran = owner.ran(job, now);
            self.tell(now, What::Ended(job, ran), by);
        }
    }

    fn lose(&mut self, job: usize, loss: Loss, now: Timestamp) {
        if let Some(owner) = self.owner(job) {
            owner.stopped(job, loss, now);
        }
        self.tell(now, What::Lost(job, loss), self.owners[job]);
        self.owners[job] = None;
        self.arrive(job, now);
    }

    fn leave(&mut self, worker: usize, now: Timestamp) {
        self.of_worker(worker).leave(worker, now);
        self.tell(now, What::Left(worker), Some(self.owner_of_worker(worker)));
    }

    fn join(&mut self, worker: usize, now: Timestamp) {
        self.of_worker(worker).join(worker, now);
        self.tell(now, What::Joined(worker), Some(self.owner_of_worker(worker)));
    }

    fn keeps(&mut self, worker: usize, labels: &[usize], now: Timestamp) {
        self.of_worker(worker).keeps(worker, labels, now);
    }

    fn pass(&mut self, now: Timestamp) -> Vec<Seat> {
        self.hear(now);
        let mut seats = Vec::new();
        let n_parts = self.parts.len();
        for step in 0..n_parts {
            self.look((self.first + step) % n_parts, now, &mut seats);
        }
        self.first = (self.first + 1) % n_parts;
        seats
    }

    fn stops(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.stops)
    }

    fn n_conflicts(&self) -> u64 {
        self.n_conflicts
    }

    fn wake_at(&self) -> Option<Timestamp> {
        let news = self.news.front().map(|(at, _)| *at);
        let late = self.parts.iter().filter_map(|mind| mind.left.front().map(|(at, _)| *at));
        let own = self.parts.iter().filter_map(|mind| mind.preset.wake_at());
        own.chain(late).chain(news).min()
    }
}
