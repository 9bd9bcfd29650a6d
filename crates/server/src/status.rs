//! Questions about the world, answered by its owner.

use std::collections::{BTreeMap, HashMap};

use decide::{LongWait, Skill, TenantStatus, Wanted};
use model::{Fixed, JobId, Name, Record, Snapshot, Spec, Timestamp, WorkerId};
use proto::v1;
use proto::v1::server_message::Message;
use tokio::sync::oneshot;

use crate::detect::{Known, Published};
use crate::explain::Explained;
use crate::foresee::Rehearsal;
use crate::meters::Measures;
use crate::scheduler::Scheduler;

/// A question, and where the answer goes.
pub(crate) enum Question {
    Explain(Box<Record>, oneshot::Sender<Option<Explained>>),
    /// What would become of these jobs.
    Rehearse(Vec<Spec>, oneshot::Sender<Box<Rehearsal>>),
    /// The load, and at most so many of those who wait longest.
    Load(usize, oneshot::Sender<(v1::LoadResponse, Vec<LongWait>)>),
    /// Types by name, and how many workers take any.
    Types(oneshot::Sender<(BTreeMap<String, v1::TypeStatus>, u32)>),
    Snapshot(oneshot::Sender<Box<Snapshot>>),
    Tenants(oneshot::Sender<(Vec<TenantStatus>, Option<Fixed>)>),
    Workers(oneshot::Sender<Vec<v1::WorkerStatus>>),
    Status(oneshot::Sender<Box<v1::StatusResponse>>),
    /// What is known of a type, and who can look for it.
    Kind(String, oneshot::Sender<Option<Box<KindNow>>>),
    /// Ask a worker about a type; which.
    Describe(String, oneshot::Sender<Option<String>>),
    Published(oneshot::Sender<Published>),
    Demand(oneshot::Sender<Vec<Wanted>>),
    Measures(oneshot::Sender<Box<Measures>>),
    /// Tells a worker to drain; how many jobs it has.
    Drain {
        worker: WorkerId,
        how: Leave,
        answer: oneshot::Sender<Option<u32>>,
    },
}

/// What is known of a type.
#[derive(Debug)]
pub(crate) struct KindNow {
    pub(crate) known: Known,
    /// How well lengths of it are predicted; `None` if none of it ended lately.
    pub(crate) skill: Option<Skill>,
    pub(crate) detectors: Vec<String>,
    /// Another scheduler has a worker that could look for it now.
    pub(crate) is_elsewhere: bool,
    /// The seals of the settings that all schedulers go by; `None` if there is but one.
    pub(crate) seals: Option<Vec<String>>,
}

/// Whether a worker that takes no more work is to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leave {
    Stay,
    OnceEmpty,
    Within { grace_ms: u64 },
}

impl Scheduler {
    /// Answers; whoever asked may have stopped listening.
    pub(crate) fn answer(&mut self, question: Question) {
        match question {
            Question::Explain(job, answer) => drop(answer.send(self.explain(&job))),
            Question::Rehearse(specs, answer) => {
                drop(answer.send(Box::new(self.rehearsal(specs))));
            }
            Question::Load(max, answer) => {
                drop(answer.send((self.load(), self.world.longest_waits(max))));
            }
            Question::Types(answer) => drop(answer.send(self.kinds())),
            Question::Snapshot(answer) => drop(answer.send(Box::new(self.snapshot()))),
            Question::Tenants(answer) => {
                drop(answer.send((self.world.tenants(), self.budget_limit)));
            }
            Question::Workers(answer) => drop(answer.send(self.workers())),
            Question::Demand(answer) => drop(answer.send(self.world.wanted())),
            Question::Measures(answer) => drop(answer.send(Box::new(self.measures()))),
            Question::Status(answer) => drop(answer.send(Box::new(self.status()))),
            Question::Kind(kind, answer) => drop(answer.send(self.kind_now(&kind))),
            Question::Describe(kind, answer) => drop(answer.send(self.describe_again(&kind))),
            Question::Published(answer) => drop(answer.send(self.detection.published.clone())),
            Question::Drain { worker, how, answer } => {
                let _ = answer.send(self.drain(&worker, how));
            }
        }
    }

    fn kind_now(&self, kind: &str) -> Option<Box<KindNow>> {
        let mut skills = self.histories.skills();
        let skill = skills.find(|(name, _)| **name == Name::new(kind)).map(|(_, skill)| skill);
        let known = self.detection.types.get(kind);
        // Nothing needs to be set for jobs to run, and to be learnt from.
        let known = known.cloned().or_else(|| skill.map(|_| Known::default()))?;
        let detectors = self.detectors(kind).into_iter().map(|one| one.worker).collect();
        let (is_elsewhere, seals) = (self.is_elsewhere(kind), self.seals());
        Some(Box::new(KindNow { known, skill, detectors, is_elsewhere, seals }))
    }

    /// The world as it would be decided on now.
    pub(crate) fn snapshot(&self) -> Snapshot {
        Snapshot { now: self.store.now(), ..self.world.snapshot() }
    }

    fn drain(&mut self, worker: &WorkerId, how: Leave) -> Option<u32> {
        let stream = self.fleet.seats.get(worker)?.stream;
        let message = match how {
            Leave::Stay => None,
            Leave::OnceEmpty => Some(Message::Drain(v1::Drain { then_exit: true })),
            Leave::Within { grace_ms } => Some(Message::Shutdown(v1::Shutdown { grace_ms })),
        };
        if let Some((stream, message)) = stream.zip(message) {
            self.send(stream, message);
        }
        u32::try_from(self.jobs.of(worker).len()).ok()
    }

    fn workers(&self) -> Vec<v1::WorkerStatus> {
        let status = |(id, seat): (&WorkerId, &crate::fleet::Seat)| {
            let jobs = self.jobs.of(id);
            let worker = seat.worker(&self.closed);
            v1::WorkerStatus {
                name: id.to_string(),
                pool: worker.pool.to_string(),
                connected: seat.stream.is_some(),
                healthy: worker.healthy,
                draining: worker.draining,
                slots: worker.slots,
                slots_used: self.jobs.slots_of(id),
                types: worker.types.iter().map(ToString::to_string).collect(),
                amounts: worker.amounts.iter().map(|(key, n)| (key.to_string(), *n)).collect(),
                rank: worker.rank,
                hints: worker.hints.iter().map(ToString::to_string).collect(),
                software: seat.software.clone(),
                generation: seat.session.generation,
                heard_ms: seat.heard.0,
                jobs: jobs.iter().filter_map(JobId::as_number).collect(),
                cpu_pct: worker.metrics.cpu_pct.map(Fixed::to_f64),
                ram_free_mb: worker.metrics.ram_free_mb,
                ram_total_mb: worker.metrics.ram_total_mb,
                foreign_slots: seat.foreign_slots,
                slots_held: seat.slots_held,
                detections_used: seat.detections.0,
                detections_total: seat.detections.1,
            }
        };
        self.fleet.seats.iter().map(status).collect()
    }

    fn status(&self) -> v1::StatusResponse {
        let count = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
        let Timestamp(now_ms) = self.store.now();
        let n_queued = self.world.n_queued();
        v1::StatusResponse {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            policy: self.world.given_policy().preset.name().to_owned(),
            started_ms: self.started.0,
            now_ms,
            queued: count(n_queued),
            running: count(self.jobs.len() - n_queued),
            workers: count(self.fleet.n_connected()),
            counters: self.counts(),
        }
    }

    /// What was counted; and, where schedulers share a store, how old what is known of others is.
    fn counts(&self) -> HashMap<String, u64> {
        let counted = self.counters.all().map(|(name, n)| (name.to_owned(), n));
        let age = self.is_shared().then(|| ("others_known_ms".to_owned(), self.staleness_ms()));
        counted.chain(age).collect()
    }
}
