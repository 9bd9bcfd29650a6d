//! Words in which the table describes a scenario.

use serde_json::{Map, Value};

/// Milliseconds of warm-up before a window, for each millisecond of a mean job: four jobs in a row.
const WARM_LENGTHS: i64 = 4;

/// One fleet and what happens to it, in order.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The name for `--only`.
    pub name: &'static str,
    /// The sentence that the scenario proves.
    pub claim: &'static str,
    pub(crate) store: Store,
    pub(crate) workers: Vec<Offer>,
    pub(crate) steps: Vec<Step>,
}

/// The store of the schedulers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Store {
    /// One scheduler with a file of its own.
    Sqlite,
    /// This many schedulers on one Postgres.
    Postgres(usize),
}

/// The slots and attributes of a worker.
#[derive(Clone, Debug)]
pub(crate) struct Offer {
    pub(crate) slots: u32,
    /// Worker attributes, as `--has` reads them.
    pub(crate) has: Option<&'static str>,
    /// Whether the worker starts with the scenario. Otherwise a step starts it.
    pub(crate) start: Start,
}

/// When a worker starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// Before the first step.
    First,
    /// By a step.
    Later,
}

/// One thing to do, or to wait for.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Runs `maitre` with these words.
    Tell(Vec<String>),
    /// Submits jobs.
    Submit(Load),
    /// Cancels all jobs of a tenant.
    Cancel(&'static str),
    /// Waits until the notes show this many more starts, whichever tenant has them. Jobs may start
    /// before this step does, so there must be more jobs than that.
    Starts(usize),
    /// Waits until the notes show this many starts of a tenant since the scenario began.
    StartsOf(&'static str, usize),
    /// Kills a scheduler by `SIGKILL`.
    KillScheduler(usize),
    /// Starts a scheduler, and waits until it answers.
    StartScheduler(usize),
    /// Kills a worker by `SIGKILL`.
    KillWorker(usize),
    /// Starts a worker.
    StartWorker(usize),
    /// Opens a window after this warm-up.
    Open {
        /// Milliseconds from now to the first moment of the window.
        warm_ms: i64,
    },
    /// Waits for the end of the window, and judges it.
    Close(Due),
}

/// The shares that a window must show.
#[derive(Clone, Debug)]
pub(crate) struct Due {
    /// Milliseconds of the window.
    pub(crate) ms: i64,
    /// Milliseconds of the longest job in the window. Rounding is derived from them.
    pub(crate) longest_ms: i64,
    /// The parts of the slot-time in use, by tenant. Each other tenant is due none.
    pub(crate) parts: Vec<(&'static str, i64)>,
}

/// Jobs of one tenant that are alike.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    pub(crate) tenant: &'static str,
    pub(crate) n: usize,
    /// Milliseconds that a job sleeps. The scheduler is not told.
    pub(crate) ms: u64,
    pub(crate) slots: u32,
    pub(crate) exit_code: u8,
    /// More fields of a line of `maitre submit --file`.
    pub(crate) fields: Map<String, Value>,
    /// A field with a different value for each job, in turn, and the number of values.
    pub(crate) keys: Option<(&'static str, usize)>,
    pub(crate) by: By,
}

/// How jobs are submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    /// In this many calls, each with a file of as many jobs.
    Files(usize),
    /// As one job array.
    Array,
}

impl Load {
    /// Jobs of one slot that succeed, in one call.
    pub(crate) fn new(tenant: &'static str, n: usize, ms: u64) -> Self {
        let (fields, keys) = (Map::new(), None);
        Self { tenant, n, ms, slots: 1, exit_code: 0, fields, keys, by: By::Files(1) }
    }

    /// Adds a field to each line.
    pub(crate) fn with(mut self, field: &str, value: impl Into<Value>) -> Self {
        self.fields.insert(field.to_owned(), value.into());
        self
    }

    pub(crate) fn slots(mut self, slots: u32) -> Self {
        self.slots = slots;
        self.with("slots", slots)
    }

    pub(crate) fn exits(mut self, exit_code: u8) -> Self {
        self.exit_code = exit_code;
        self
    }

    pub(crate) fn keys(mut self, field: &'static str, n: usize) -> Self {
        self.keys = Some((field, n));
        self
    }

    pub(crate) fn by(mut self, by: By) -> Self {
        self.by = by;
        self
    }
}

impl Scenario {
    /// One scheduler on `SQLite`, and one worker of eight slots.
    pub(crate) fn new(name: &'static str, claim: &'static str) -> Self {
        let workers = vec![Offer { slots: 8, has: None, start: Start::First }];
        Self { name, claim, store: Store::Sqlite, workers, steps: Vec::new() }
    }

    /// Workers of this many slots each, with these attributes.
    pub(crate) fn workers<const N: usize>(
        mut self,
        workers: [(u32, Option<&'static str>); N],
    ) -> Self {
        let start = Start::First;
        self.workers = workers.map(|(slots, has)| Offer { slots, has, start }).to_vec();
        self
    }

    /// The last worker starts by a step.
    pub(crate) fn last_worker_starts_later(mut self) -> Self {
        if let Some(last) = self.workers.last_mut() {
            last.start = Start::Later;
        }
        self
    }

    /// This many schedulers on one Postgres.
    pub(crate) fn on_postgres(mut self, n_schedulers: usize) -> Self {
        self.store = Store::Postgres(n_schedulers);
        self
    }

    pub(crate) fn step(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    pub(crate) fn tell<const N: usize>(self, words: [&str; N]) -> Self {
        self.step(Step::Tell(words.map(str::to_owned).to_vec()))
    }

    /// Sets a tenant to a document.
    pub(crate) fn tenant(self, tenant: &str, document: &str) -> Self {
        self.tell(["set", "tenant", tenant, document])
    }

    pub(crate) fn submit(self, load: Load) -> Self {
        self.step(Step::Submit(load))
    }

    /// A window after a warm-up of four mean lengths.
    pub(crate) fn measure<const N: usize>(
        self,
        mean_ms: i64,
        (ms, longest_ms): (i64, i64),
        parts: [(&'static str, i64); N],
    ) -> Self {
        let open = Step::Open { warm_ms: WARM_LENGTHS * mean_ms };
        self.step(open).close((ms, longest_ms), parts)
    }

    pub(crate) fn close<const N: usize>(
        self,
        (ms, longest_ms): (i64, i64),
        parts: [(&'static str, i64); N],
    ) -> Self {
        self.step(Step::Close(Due { ms, longest_ms, parts: parts.to_vec() }))
    }
}
