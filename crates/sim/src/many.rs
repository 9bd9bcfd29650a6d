//! Several schedulers, each with slots of its own, and one queue that each sees as it was.
//!
//! Workers are dealt to the schedulers in turn, and so are the quotas of tenants, so that they hold
//! whatever the others do. What happens to the queue and on others' workers is news to a scheduler
//! after a while; until then it may ask for a job that another has taken. It loses, sees that the
//! job is gone, and looks again.

use std::collections::VecDeque;

use model::{Millis, Policy, Timestamp};

use crate::engine::{Loss, Scheduler, Seat};
use crate::fleet::Fleet;
use crate::preset::{Options, Part, Preset};
use crate::workload::Workload;

/// Several worlds at work.
pub struct Many<'a> {
    parts: Vec<Preset<'a>>,
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

/// What happened to a job.
#[derive(Clone, Copy, Debug)]
struct News {
    job: usize,
    what: What,
    /// Who made it happen, and knows it already.
    by: Option<u16>,
}

#[derive(Clone, Copy, Debug)]
enum What {
    /// It waits.
    Waits,
    /// It was taken.
    Taken,
    /// It ended after it ran for so long.
    Ended(Millis),
    /// Its attempt came to nothing.
    Lost(Loss),
}

impl<'a> Many<'a> {
    /// So many worlds, that see the queue as it was `age` ago.
    pub fn new(
        workload: &'a Workload,
        fleet: &'a Fleet,
        policy: &Policy,
        options: Options,
        (n_schedulers, age): (u16, Millis),
    ) -> Self {
        let of = usize::from(n_schedulers.max(1));
        let part =
            |index| Preset::of_part(workload, fleet, policy.clone(), options, Part { index, of });
        Self {
            parts: (0..of).map(part).collect(),
            age,
            news: VecDeque::new(),
            owners: vec![None; workload.jobs.len()],
            first: 0,
            stops: Vec::new(),
            n_conflicts: 0,
        }
    }

    fn hear(&mut self, now: Timestamp) {
        while let Some((_, news)) = self.news.front().copied().filter(|(at, _)| *at <= now) {
            self.news.pop_front();
            let News { job, what, by } = news;
            let parts = self.parts.iter_mut().enumerate();
            for (_, part) in parts.filter(|(ix, _)| by.map(usize::from) != Some(*ix)) {
                match what {
                    What::Waits => part.queue(job),
                    What::Taken => part.start_elsewhere(job, now),
                    What::Ended(ran) => part.end_elsewhere(job, ran, now),
                    What::Lost(loss) => part.stop_elsewhere(job, loss),
                }
            }
        }
    }

    fn tell(&mut self, now: Timestamp, job: usize, what: What) {
        let by = match what {
            What::Waits => None,
            What::Taken | What::Ended(_) | What::Lost(_) => self.owners[job],
        };
        self.news.push_back((now + self.age, News { job, what, by }));
    }

    /// One scheduler looks until it loses nothing.
    fn look(&mut self, ix: usize, now: Timestamp, seats: &mut Vec<Seat>) {
        let owner = u16::try_from(ix).expect("there are few schedulers");
        loop {
            let mut has_lost = false;
            for seat in self.parts[ix].pass(now) {
                if self.owners[seat.job].is_some() {
                    self.parts[ix].take_back(seat.job);
                    self.n_conflicts += 1;
                    has_lost = true;
                    continue;
                }
                self.owners[seat.job] = Some(owner);
                self.tell(now, seat.job, What::Taken);
                seats.push(seat);
            }
            self.stops.append(&mut self.parts[ix].stops());
            if !has_lost {
                return;
            }
        }
    }

    fn owner(&mut self, job: usize) -> Option<&mut Preset<'a>> {
        self.parts.get_mut(usize::from(self.owners[job]?))
    }

    fn of_worker(&mut self, worker: usize) -> &mut Preset<'a> {
        let ix = worker % self.parts.len();
        &mut self.parts[ix]
    }
}

impl Scheduler for Many<'_> {
    fn arrive(&mut self, job: usize, now: Timestamp) {
        self.tell(now, job, What::Waits);
    }

    fn end(&mut self, job: usize, now: Timestamp) {
        if let Some(owner) = self.owner(job) {
            owner.end(job, now);
            let ran = owner.ran(job, now);
            self.tell(now, job, What::Ended(ran));
        }
    }

    fn lose(&mut self, job: usize, loss: Loss, now: Timestamp) {
        if let Some(owner) = self.owner(job) {
            owner.stopped(job, loss, now);
        }
        self.tell(now, job, What::Lost(loss));
        self.owners[job] = None;
        self.arrive(job, now);
    }

    fn leave(&mut self, worker: usize, now: Timestamp) {
        self.of_worker(worker).leave(worker, now);
    }

    fn join(&mut self, worker: usize, now: Timestamp) {
        self.of_worker(worker).join(worker, now);
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
        self.parts.iter().filter_map(Preset::wake_at).chain(news).min()
    }
}
