//! Clients that submit and cancel jobs, and log the answers.

use std::path::PathBuf;
use std::time::Duration;

use checker::{Asked, Op, Outcome};
use proto::v1;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::clock::now_ms;
use crate::job::{Manner, asked, spec};
use crate::notebook::{Answer, Notebook, settle};
use crate::rpc::Rpc;
use crate::stage::{CAPPED, NARROW, Stage};
use crate::{Chance, Error};

/// Concurrent clients.
const CLIENTS: u32 = 3;
/// The time for which a client repeats a request after the last fault.
const INSIST: Duration = Duration::from_mins(2);
/// The pause before a client repeats a request.
const AGAIN: Duration = Duration::from_millis(30);
/// Jobs that a client remembers, to cancel or to depend on.
const KNOWN_MAX: usize = 30;

/// Running clients.
pub(crate) struct Load {
    clients: JoinSet<Result<(), Error>>,
    stop: watch::Sender<bool>,
}

impl Load {
    /// Starts clients, each with a pause of about `pause_ms` after each request.
    pub(crate) fn start(stage: &Stage, pause_ms: u64, chance: &mut Chance) -> Result<Self, Error> {
        Self::with((2, 8), stage, pause_ms, chance)
    }

    /// The same, with jobs that run longer than a short lease.
    pub(crate) fn start_slow(
        stage: &Stage,
        pause_ms: u64,
        chance: &mut Chance,
    ) -> Result<Self, Error> {
        Self::with((2, 30), stage, pause_ms, chance)
    }

    fn with(
        tenths: (u64, u64),
        stage: &Stage,
        pause_ms: u64,
        chance: &mut Chance,
    ) -> Result<Self, Error> {
        let (stop, stopped) = watch::channel(false);
        let mut clients = JoinSet::new();
        for number in 0..CLIENTS {
            let mut client = Client {
                rpc: stage.rpc(),
                chance: chance.branch(),
                notebook: Notebook::open(number, &stage.log_of(number))?,
                runs: stage.runs(),
                known: Vec::new(),
                prefix: format!("{number}-{:08x}", chance.draw() >> 32),
                n_keys: 0,
                tenths,
            };
            let stopped = stopped.clone();
            clients.spawn(async move {
                while !*stopped.borrow() {
                    client.act().await?;
                    sleep(Duration::from_millis(client.chance.between(1, pause_ms * 2))).await;
                }
                Ok(())
            });
        }
        Ok(Self { clients, stop })
    }

    /// Lets each client finish its request, so that all requests have an answer.
    pub(crate) async fn stop(mut self) -> Result<(), Error> {
        let _ = self.stop.send(true);
        while let Some(ended) = self.clients.join_next().await {
            ended.map_err(|error| Error::Ended {
                who: "a client".to_owned(),
                how: error.to_string(),
            })??;
        }
        Ok(())
    }
}

struct Client {
    rpc: Rpc,
    chance: Chance,
    notebook: Notebook,
    runs: PathBuf,
    /// Jobs that it submitted, newest last.
    known: Vec<(String, u64)>,
    prefix: String,
    n_keys: u32,
    /// The shortest and the longest run time of slow jobs, in tenths of a second.
    tenths: (u64, u64),
}

impl Client {
    /// Makes one request.
    async fn act(&mut self) -> Result<(), Error> {
        if !self.known.is_empty() && self.chance.is_one_in(8) {
            return self.cancel().await;
        }
        self.n_keys += 1;
        let key = format!("{}-{}", self.prefix, self.n_keys);
        let request = self.request(key);
        let ids = self.insist(Op::Submit, &request).await?;
        let tenant = request.jobs[0].tenant.clone();
        self.known.extend(ids.into_iter().map(|id| (tenant.clone(), id)));
        let n_old = self.known.len().saturating_sub(KNOWN_MAX);
        self.known.drain(..n_old);
        if self.chance.is_one_in(6) {
            // Repeats the request, as a client does that did not receive the answer.
            self.insist(Op::Submit, &request).await?;
        }
        if self.chance.is_one_in(10) {
            let mut other = request.clone();
            other.jobs[0].priority += 1;
            self.insist(Op::Conflict, &other).await?;
        }
        Ok(())
    }

    /// A submission: one job, a few that depend on each other, or an array.
    fn request(&mut self, idempotency_key: String) -> v1::SubmitRequest {
        let tenants = ["a", "a", "b", CAPPED.0, NARROW.0];
        let tenant = self.chance.pick(&tenants).copied().unwrap_or("a");
        let (mut jobs, mut array) = (vec![self.job(tenant)], 0);
        match self.chance.between(0, 9) {
            0 | 1 => self.chain(&mut jobs, tenant),
            2 => array = 3,
            3 | 4 => jobs[0].dedupe_key = format!("d{}", self.chance.between(0, 2)),
            _ => {}
        }
        v1::SubmitRequest { jobs, idempotency_key, array }
    }

    fn job(&mut self, tenant: &str) -> v1::Spec {
        let manner = match self.chance.between(0, 11) {
            0 | 1 => Manner::Flaky,
            2 => Manner::Failing,
            3 => Manner::Wrong,
            4..=6 => Manner::Slow(self.chance.between(self.tenths.0, self.tenths.1)),
            _ => Manner::Plain,
        };
        let priority = i32::try_from(self.chance.between(0, 5)).unwrap_or(0);
        v1::Spec { priority, ..spec(tenant, manner, &self.runs) }
    }

    /// Two more jobs: one depends on the first, and one on both, or on an earlier one.
    fn chain(&mut self, jobs: &mut Vec<v1::Spec>, tenant: &str) {
        let (mut second, mut third) = (self.job(tenant), self.job(tenant));
        second.after_indexes = vec![0];
        second.run_if_failed = self.chance.is_one_in(2);
        third.after_indexes = vec![0, 1];
        let own = self.known.iter().filter(|(whose, _)| whose == tenant);
        let own: Vec<u64> = own.map(|(_, id)| *id).collect();
        third.after.extend(self.chance.pick(&own));
        jobs.extend([second, third]);
    }

    /// Repeats a request until its outcome is known, and logs every answer.
    async fn insist(&mut self, op: Op, request: &v1::SubmitRequest) -> Result<Vec<u64>, Error> {
        let asked: Vec<Asked> = request.jobs.iter().map(asked).collect();
        let start = Instant::now();
        loop {
            let sent_ms = now_ms();
            let answer = self.rpc.jobs().submit(request.clone()).await;
            let answer = answer.map(|response| {
                let jobs = response.into_inner().jobs;
                let ids = jobs.into_iter().map(|job| job.id).collect();
                Answer { outcome: Outcome::Ok, ids, changed: true, note: String::new() }
            });
            let (answer, is_final) = settle(answer);
            let ids = answer.ids.clone();
            self.notebook.write((op, &request.idempotency_key, sent_ms), answer, asked.clone())?;
            if is_final {
                return Ok(ids);
            }
            again(start).await?;
        }
    }

    async fn cancel(&mut self) -> Result<(), Error> {
        let Some(id) = self.chance.pick(&self.known).map(|(_, id)| *id) else { return Ok(()) };
        let start = Instant::now();
        loop {
            let sent_ms = now_ms();
            let answer = self.rpc.jobs().cancel(v1::CancelRequest { ids: vec![id] }).await;
            let answer = answer.map(|response| {
                let change = response.into_inner().changes.into_iter().next().unwrap_or_default();
                let name = change.state().as_str_name().trim_start_matches("STATE_");
                let note = if change.changed { String::new() } else { name.to_lowercase() };
                let (ids, changed) = (vec![id], change.changed);
                Answer { outcome: Outcome::Ok, ids, changed, note }
            });
            let (answer, is_final) = settle(answer);
            self.notebook.write((Op::Cancel, "", sent_ms), answer, Vec::new())?;
            if is_final {
                return Ok(());
            }
            again(start).await?;
        }
    }
}

/// Waits before a request is repeated, unless it was repeated for too long.
async fn again(start: Instant) -> Result<(), Error> {
    if start.elapsed() > INSIST {
        let what = "a client is answered".to_owned();
        return Err(Error::Late { what, within: INSIST });
    }
    sleep(AGAIN).await;
    Ok(())
}
