//! Jobs that name more sets of workers than a decision tells apart still run where they may, and no
//! slot idles beside one that could use it.

use std::collections::BTreeMap;

use decide::World;
use model::{
    Action, Ended, Event, Fixed, Job, JobId, Name, Preset, TenantId, Timestamp, Worker, WorkerId,
};

const N_HOSTS: usize = 24;
/// Each job names two hosts: more pairs than a decision has sets for.
const N_JOBS: u64 = 276;

fn host(at: usize) -> Name {
    Name::new(&format!("h{at}"))
}

/// The hosts that a job names: each pair once.
fn pair(job: usize) -> [usize; 2] {
    let pairs = (0..N_HOSTS).flat_map(|one| (one + 1..N_HOSTS).map(move |two| [one, two]));
    pairs.cycle().nth(job).expect("pairs come again and again")
}

struct Site {
    world: World,
    now: Timestamp,
    /// Where attempts run, by job.
    running: BTreeMap<JobId, usize>,
    named: BTreeMap<JobId, [usize; 2]>,
}

impl Site {
    fn new(preset: Preset) -> Self {
        let mut world = World::new(preset.policy(), 7);
        for at in 0..N_HOSTS {
            let number = u64::try_from(at).expect("there are few hosts");
            let mut worker = Worker::new(WorkerId::number(number));
            worker.slots = 1;
            worker.has.insert(Name::new("host"), vec![host(at)]);
            world.apply(Event::Joined(Box::new(worker)));
        }
        let (running, named) = (BTreeMap::new(), BTreeMap::new());
        Self { world, now: Timestamp(1_000), running, named }
    }

    fn queue(&mut self, id: u64, hosts: [usize; 2]) {
        let mut job = Job::new(JobId::number(id), TenantId::number(0), self.now);
        job.needs.insert(Name::new("host"), hosts.map(host).to_vec());
        self.named.insert(job.id.clone(), hosts);
        self.world.apply(Event::Queued(Box::new(job)));
    }

    /// Decides, and again for as long as the scheduler asks to be woken.
    fn decide(&mut self) {
        for _ in 0..1_000 {
            for action in self.world.decide(self.now) {
                let Action::Place(placement) = action else { continue };
                let at = (0..N_HOSTS).find(|at| {
                    WorkerId::number(u64::try_from(*at).expect("few")) == placement.worker
                });
                let at = at.expect("it is a worker of the test");
                assert!(self.named[&placement.job].contains(&at), "a job runs where it may not");
                let before = self.running.insert(placement.job, at);
                assert_eq!(before, None, "a job runs once");
            }
            match self.world.wake_at() {
                Some(at) if at < Timestamp(self.now.0 + 1_000) => self.now = at.max(self.now),
                Some(_) | None => return,
            }
        }
        panic!("the scheduler asks to be woken again and again");
    }

    fn end(&mut self, job: JobId) {
        self.now = Timestamp(self.now.0 + 10);
        self.running.remove(&job);
        self.named.remove(&job);
        let (cost, at) = (Fixed::ONE, self.now);
        self.world.apply(Event::Ended(Ended { job, cost, completed: true, at }));
    }

    /// A job that waits although a host that it names is idle.
    fn left_waiting(&self) -> Option<&JobId> {
        let is_idle = |at: &usize| !self.running.values().any(|busy| busy == at);
        let waiting = self.named.iter().filter(|(job, _)| !self.running.contains_key(*job));
        waiting.filter(|(_, hosts)| hosts.iter().any(is_idle)).map(|(job, _)| job).next()
    }
}

#[test]
fn no_host_idles_beside_a_job_that_names_it_however_many_pairs_are_named() {
    for preset in [Preset::Balanced, Preset::FairShare, Preset::PriorityAge, Preset::Aging] {
        let mut site = Site::new(preset);
        for id in 0..N_JOBS {
            site.queue(id, pair(usize::try_from(id).expect("few")));
        }
        site.decide();
        let mut n_ended = 0;
        while let Some(job) = site.running.keys().next_back().cloned() {
            assert_eq!(site.left_waiting(), None, "{} after {n_ended} ends", preset.name());
            site.end(job);
            site.decide();
            n_ended += 1;
        }
        assert_eq!(n_ended, N_JOBS, "{}: every job runs", preset.name());
    }
}

#[test]
fn jobs_for_a_busy_host_do_not_keep_later_ones_from_idle_hosts() {
    let mut site = Site::new(Preset::Balanced);
    for id in 0..N_JOBS {
        site.queue(id, pair(usize::try_from(id).expect("few")));
    }
    site.decide();
    // All hosts are busy. Of those that wait, the first 200 name hosts that stay busy.
    let (first, second) = (N_JOBS, 1_000);
    for id in first..first + 200 {
        site.queue(id, [0, 1]);
    }
    site.queue(second, [22, 23]);
    let on = |site: &Site, at: usize| {
        site.running.iter().find(|own| *own.1 == at).expect("busy").0.clone()
    };
    for job in [on(&site, 22), on(&site, 23)] {
        site.end(job);
    }
    site.decide();
    assert_eq!(site.left_waiting(), None);
}
