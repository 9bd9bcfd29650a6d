//! Clients that submit and cancel jobs through any scheduler, and log the answers.

use std::path::Path;
use std::time::Duration;

use checker::{Asked, Op, Outcome};
use faults::{Answer, Chance, Notebook, now_ms, settle, until};
use proto::v1;
use proto::v1::admin_client::AdminClient;
use proto::v1::jobs_client::JobsClient;
use tokio::time::{Instant, sleep};
use tonic::transport::{Channel, Endpoint};

use crate::Error;
use crate::load::{asked, request, squeeze};

/// The timeout of a request.
const TIMEOUT: Duration = Duration::from_secs(4);
/// The interval of keep-alive pings, and their timeout.
const ALIVE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(2));
/// The pause before a client repeats a request.
const AGAIN_MS: (u64, u64) = (20, 300);
/// The time for which a client repeats a request.
const INSIST: Duration = Duration::from_mins(3);
/// The timeout for the acceptance of a setting.
const SET: Duration = Duration::from_secs(20);
/// The submission with which a client fills a pool for the first time, and the odds of further
/// times.
const SQUEEZE_AT: u32 = 3;
const SQUEEZE_ONE_IN: u64 = 50;
/// The pause in which the jobs of a full pool start.
const SQUEEZE_FOR: Duration = Duration::from_millis(600);
/// Jobs that a client remembers, to cancel or to depend on.
const KNOWN_MAX: usize = 60;

/// A connection that reconnects on demand.
pub(crate) fn channel(port: u16) -> Channel {
    let endpoint = Endpoint::from_shared(format!("http://127.0.0.1:{port}"));
    let endpoint = endpoint.expect("an address with a port is an address");
    let endpoint = endpoint.connect_timeout(TIMEOUT).timeout(TIMEOUT).tcp_nodelay(true);
    let endpoint = endpoint.http2_keep_alive_interval(ALIVE.0).keep_alive_timeout(ALIVE.1);
    endpoint.keep_alive_while_idle(true).connect_lazy()
}

/// Changes a setting as soon as a scheduler accepts it.
pub(crate) async fn set(
    port: u16,
    (kind, name, json): (v1::SettingKind, &str, &str),
) -> Result<(), Error> {
    let setting = v1::Setting { kind: kind.into(), name: name.to_owned(), json: json.to_owned() };
    let request = v1::SetRequest { setting: Some(setting) };
    until("a setting is taken", SET, async || {
        AdminClient::new(channel(port)).set(request.clone()).await.ok()
    })
    .await?;
    Ok(())
}

/// A client that submits jobs.
pub(crate) struct Client {
    jobs: JobsClient<Channel>,
    chance: Chance,
    notebook: Notebook,
    /// Jobs that it submitted, newest last, with their tenants.
    known: Vec<(String, u64)>,
    number: u32,
    prefix: String,
    n_keys: u32,
    n_jobs: usize,
}

impl Client {
    pub(crate) fn new(
        number: u32,
        port: u16,
        log: &Path,
        mut chance: Chance,
    ) -> Result<Self, Error> {
        Ok(Self {
            notebook: Notebook::open(number, log)?,
            jobs: JobsClient::new(channel(port)),
            known: Vec::new(),
            number,
            prefix: format!("{number}-{:08x}", chance.draw() >> 32),
            chance,
            n_keys: 0,
            n_jobs: 0,
        })
    }

    /// Submits `jobs_max` jobs, evenly over the time `within`.
    pub(crate) async fn work(mut self, jobs_max: usize, within: Duration) -> Result<(), Error> {
        let start = Instant::now();
        while self.n_jobs < jobs_max {
            self.act().await?;
            let due = within.mul_f64(part(self.n_jobs, jobs_max));
            sleep(due.saturating_sub(start.elapsed())).await;
        }
        Ok(())
    }

    /// Fills a pool, and does no more.
    pub(crate) async fn squeeze_once(mut self) -> Result<(), Error> {
        self.squeeze().await
    }

    /// Makes one request.
    async fn act(&mut self) -> Result<(), Error> {
        if !self.known.is_empty() && self.chance.is_one_in(6) {
            return self.cancel().await;
        }
        // Each client does so once, at different times, and sometimes again.
        let is_first = self.n_keys == SQUEEZE_AT + SQUEEZE_AT * self.number;
        if is_first || self.chance.is_one_in(SQUEEZE_ONE_IN) {
            return self.squeeze().await;
        }
        let key = self.key();
        let own = self.known.iter().filter(|(tenant, _)| tenant == "a");
        let own: Vec<u64> = own.map(|(_, id)| *id).collect();
        let request = request(&mut self.chance, key, &own);
        self.submit(request).await
    }

    /// Fills a pool, and then submits more important jobs to it.
    async fn squeeze(&mut self) -> Result<(), Error> {
        let keys = [self.key(), self.key()];
        let [long, short] = squeeze(&mut self.chance, keys);
        self.submit(long).await?;
        sleep(SQUEEZE_FOR).await;
        self.submit(short).await
    }

    /// A new key.
    fn key(&mut self) -> String {
        self.n_keys += 1;
        format!("{}-{}", self.prefix, self.n_keys)
    }

    async fn submit(&mut self, request: v1::SubmitRequest) -> Result<(), Error> {
        let is_named = !request.idempotency_key.is_empty();
        let ids = if is_named {
            self.insist(Op::Submit, &request).await?
        } else {
            self.ask_once(&request).await?
        };
        self.n_jobs += ids.len();
        let tenant = request.jobs[0].tenant.clone();
        self.known.extend(ids.into_iter().map(|id| (tenant.clone(), id)));
        let n_old = self.known.len().saturating_sub(KNOWN_MAX);
        self.known.drain(..n_old);
        if is_named && self.chance.is_one_in(8) {
            // Repeats the request, as a client does that did not receive the answer.
            self.insist(Op::Submit, &request).await?;
        }
        if is_named && self.chance.is_one_in(12) {
            let mut other = request.clone();
            other.jobs[0].priority += 1;
            self.insist(Op::Conflict, &other).await?;
        }
        Ok(())
    }

    /// Repeats a request until its outcome is known, and logs every answer.
    async fn insist(&mut self, op: Op, request: &v1::SubmitRequest) -> Result<Vec<u64>, Error> {
        let start = Instant::now();
        loop {
            let (ids, is_final) = self.ask(op, request).await?;
            if is_final {
                return Ok(ids);
            }
            self.again(start).await?;
        }
    }

    /// Submits without a key. A client that receives no answer must not repeat this.
    async fn ask_once(&mut self, request: &v1::SubmitRequest) -> Result<Vec<u64>, Error> {
        let (ids, is_final) = self.ask(Op::Submit, request).await?;
        if !is_final {
            self.again(Instant::now()).await?;
        }
        Ok(ids)
    }

    /// Makes a request, and logs the answer. Returns the jobs, and whether a repetition is useless.
    async fn ask(
        &mut self,
        op: Op,
        request: &v1::SubmitRequest,
    ) -> Result<(Vec<u64>, bool), Error> {
        let asked: Vec<Asked> = request.jobs.iter().map(asked).collect();
        let sent_ms = now_ms();
        let answer = self.jobs.submit(request.clone()).await.map(|response| {
            let jobs = response.into_inner().jobs;
            let ids = jobs.into_iter().map(|job| job.id).collect();
            Answer { outcome: Outcome::Ok, ids, changed: true, note: String::new() }
        });
        let (answer, is_final) = settle(answer);
        let ids = answer.ids.clone();
        self.notebook.write((op, &request.idempotency_key, sent_ms), answer, asked)?;
        Ok((ids, is_final))
    }

    async fn cancel(&mut self) -> Result<(), Error> {
        let Some(id) = self.chance.pick(&self.known).map(|(_, id)| *id) else { return Ok(()) };
        let start = Instant::now();
        loop {
            let sent_ms = now_ms();
            let answer = self.jobs.cancel(v1::CancelRequest { ids: vec![id] }).await;
            let answer = answer.map(|response| {
                let change = response.into_inner().changes.into_iter().next().unwrap_or_default();
                let (ids, changed, note) = (vec![id], change.changed, final_state(&change));
                Answer { outcome: Outcome::Ok, ids, changed, note }
            });
            let (answer, is_final) = settle(answer);
            self.notebook.write((Op::Cancel, "", sent_ms), answer, Vec::new())?;
            if is_final {
                return Ok(());
            }
            self.again(start).await?;
        }
    }

    /// Waits before a request is repeated, unless it was repeated for too long.
    async fn again(&mut self, start: Instant) -> Result<(), Error> {
        if start.elapsed() > INSIST {
            let what = "a client is answered".to_owned();
            return Err(faults::Error::Late { what, within: INSIST }.into());
        }
        sleep(Duration::from_millis(self.chance.between(AGAIN_MS.0, AGAIN_MS.1))).await;
        Ok(())
    }
}

#[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "it is about a pause")]
fn part(n: usize, of: usize) -> f64 {
    n as f64 / of.max(1) as f64
}

/// The state of a job that a cancellation did not change, if it is final.
fn final_state(change: &v1::Change) -> String {
    use v1::State::{Cancelled, Failed, Succeeded};
    let state = change.state();
    if change.changed || ![Succeeded, Failed, Cancelled].contains(&state) {
        return String::new();
    }
    state.as_str_name().trim_start_matches("STATE_").to_lowercase()
}
