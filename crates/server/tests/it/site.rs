//! A scheduler of its own for each test, and what asks it.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use model::{JobId, Millis, Record};
use proto::v1;
use proto::v1::admin_client::AdminClient;
use proto::v1::detection_client::DetectionClient;
use proto::v1::jobs_client::JobsClient;
use serde_json::Value;
use server::Config;
use store::conformance::Time;
use store::{Memory, Options, Past, Store as _};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tonic::transport::Channel;

use crate::puppet::Puppet;
use crate::store::Faulty;

/// Nothing in here takes so long, however busy the machine is.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

/// A scheduler that runs in this process.
pub(crate) struct Site {
    pub(crate) time: Time,
    pub(crate) store: Arc<Faulty>,
    pub(crate) config: Config,
    pub(crate) channel: Channel,
    url: String,
    ca_pem: String,
    pub(crate) jobs: JobsClient<Channel>,
    pub(crate) admin: AdminClient<Channel>,
    pub(crate) detection: DetectionClient<Channel>,
    running: Option<Running>,
}

impl Site {
    /// A scheduler as it is by default, on a store that lasts as long as the test.
    pub(crate) async fn start() -> Self {
        Self::with(Config::default()).await
    }

    /// The clock goes when a test says so, and starts do not wait for that.
    pub(crate) async fn with(config: Config) -> Self {
        Self::sealed(Config { start_pause: Millis::ZERO, ..config }, "").await
    }

    /// One that this vouches for.
    pub(crate) async fn sealed(config: Config, ca_pem: &str) -> Self {
        let time = Time::new();
        let options = Options {
            clock: Some(time.clock()),
            log_bytes_max: config.limits.log_bytes_max,
            jobs_max: config.limits.jobs_max,
            tenant_jobs_max: config.limits.tenant_jobs_max,
            patience: config.patience,
            ..Options::default()
        };
        let store = Arc::new(Faulty::new(Memory::new(options)));
        let listen = ([127, 0, 0, 1], 0).into();
        let config = Config { listen, shutdown_grace: Millis(100), seed: Some(7), ..config };
        let (url, running) = launch(&config, &store, || {}).await;
        let channel = connect(&url, ca_pem).await;
        let (jobs, admin) = (JobsClient::new(channel.clone()), AdminClient::new(channel.clone()));
        let detection = DetectionClient::new(channel.clone());
        let (ca_pem, running) = (ca_pem.to_owned(), Some(running));
        Self { time, store, config, channel, url, ca_pem, jobs, admin, detection, running }
    }

    /// Another scheduler beside this one, on the same store.
    pub(crate) async fn another(&self) -> Self {
        let store = Arc::new(self.store.again());
        let (url, running) = launch(&self.config, &store, || {}).await;
        let channel = connect(&url, &self.ca_pem).await;
        Self {
            time: self.time.clone(),
            store,
            config: self.config.clone(),
            jobs: JobsClient::new(channel.clone()),
            admin: AdminClient::new(channel.clone()),
            detection: DetectionClient::new(channel.clone()),
            channel,
            url,
            ca_pem: self.ca_pem.clone(),
            running: Some(running),
        }
    }

    pub(crate) async fn stop(&mut self) {
        let (stop, ended) = self.running.take().expect("it runs");
        stop.send(()).expect("it listens");
        ended.await.expect("it does not panic").expect("it stops cleanly");
    }

    /// Starts another scheduler on the same store.
    pub(crate) async fn go(&mut self) {
        let running = launch(&self.config, &self.store, || {}).await;
        self.follow(running).await;
    }

    /// The same; answers of a method of the store wait once the world is built.
    pub(crate) async fn go_holding(&mut self, method: &'static str) {
        let running = launch(&self.config, &self.store, || self.store.hold(method)).await;
        self.follow(running).await;
    }

    async fn follow(&mut self, (url, running): (String, Running)) {
        let channel = connect(&url, &self.ca_pem).await;
        self.jobs = JobsClient::new(channel.clone());
        self.admin = AdminClient::new(channel.clone());
        self.detection = DetectionClient::new(channel.clone());
        (self.url, self.channel, self.running) = (url, channel, Some(running));
    }

    /// A worker of this name that takes any type.
    pub(crate) async fn worker(&self, name: &str) -> Puppet {
        self.worker_with(hello(name)).await
    }

    pub(crate) async fn worker_with(&self, hello: v1::Hello) -> Puppet {
        Puppet::connect(self, hello).await.expect("it is let in")
    }

    /// Another connection to the same scheduler.
    pub(crate) async fn connect(&self) -> Channel {
        connect(&self.url, &self.ca_pem).await
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Lets time pass, and the scheduler see it.
    pub(crate) async fn pass(&self, length: Millis) {
        self.time.pass(length);
        self.turn().await;
    }

    /// Whatever the scheduler had to do at this moment, it has begun.
    pub(crate) async fn turn(&self) {
        // One is answered before the turn that it makes, one after it, and one after what the
        // store said to that.
        for _ in 0..3 {
            self.admin.clone().status(v1::StatusRequest {}).await.expect("it answers");
        }
    }

    pub(crate) async fn counter(&self, name: &str) -> u64 {
        let status = self.admin.clone().status(v1::StatusRequest {}).await.expect("it answers");
        status.into_inner().counters.get(name).copied().unwrap_or(0)
    }

    /// Submits one job; its number.
    pub(crate) async fn submit(&self, spec: v1::Spec) -> u64 {
        self.submit_all(vec![spec]).await[0]
    }

    pub(crate) async fn submit_all(&self, jobs: Vec<v1::Spec>) -> Vec<u64> {
        let request = v1::SubmitRequest { jobs, ..v1::SubmitRequest::default() };
        let response = self.jobs.clone().submit(request).await.expect("it is taken");
        response.into_inner().jobs.iter().map(|job| job.id).collect()
    }

    /// What the store has, whatever the scheduler thinks.
    pub(crate) async fn record(&self, id: u64) -> Record {
        let record = self.store.job(JobId::number(id)).await.expect("the store answers");
        record.expect("the job is there")
    }

    /// The ended attempts of a job.
    pub(crate) async fn past(&self, id: u64) -> Vec<Past> {
        let pasts = self.store.attempts(vec![JobId::number(id)]).await;
        pasts.expect("the store answers").remove(0)
    }

    /// Waits until a job is as it should be.
    pub(crate) async fn record_when(&self, id: u64, is_so: impl Fn(&Record) -> bool) -> Record {
        self.until(&format!("job {id} is as it should be"), async || {
            let record = self.record(id).await;
            is_so(&record).then_some(record)
        })
        .await
    }

    pub(crate) async fn why(&self, id: u64) -> v1::ExplainResponse {
        let request = v1::ExplainRequest { id };
        self.jobs.clone().explain(request).await.expect("it answers").into_inner()
    }

    pub(crate) async fn set(&self, kind: v1::SettingKind, name: &str, json: &str) {
        let (kind, name, json) = (kind.into(), name.to_owned(), json.to_owned());
        let setting = Some(v1::Setting { kind, name, json });
        self.admin.clone().set(v1::SetRequest { setting }).await.expect("it is set");
    }

    /// The world that is decided on.
    pub(crate) async fn world(&self) -> Value {
        let stream = self.admin.clone().snapshot(v1::SnapshotRequest {}).await;
        let mut stream = stream.expect("it answers").into_inner();
        let mut bytes = Vec::new();
        while let Some(response) = stream.message().await.expect("it goes on") {
            bytes.extend(response.piece);
        }
        serde_json::from_slice(&bytes).expect("it is JSON")
    }

    /// Looks until there is something; says what was waited for if it never comes.
    pub(crate) async fn until<T, F: Future<Output = Option<T>>>(
        &self,
        what: &str,
        look: impl Fn() -> F,
    ) -> T {
        let found = async {
            loop {
                if let Some(found) = look().await {
                    return found;
                }
                self.turn().await;
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        let found = tokio::time::timeout(PATIENCE, found).await;
        found.unwrap_or_else(|_| panic!("never: {what}"))
    }
}

/// What tells it to stop, and when it has.
type Running = (oneshot::Sender<()>, JoinHandle<Result<(), server::Error>>);

/// Starts a scheduler; `built` is called before its first turn.
#[expect(clippy::disallowed_methods, reason = "a test owns its tasks")]
async fn launch(config: &Config, store: &Arc<Faulty>, built: impl FnOnce()) -> (String, Running) {
    let store = Arc::clone(store);
    let server = server::start(config.clone(), store).await.expect("it starts");
    // Tests have one thread: the scheduler's own task has not begun.
    built();
    let url = match config.tls_cert {
        Some(_) => format!("https://localhost:{}", server.address.port()),
        None => format!("http://{}", server.address),
    };
    let (stop, stopped) = oneshot::channel();
    let ended = tokio::spawn(server.run(async { drop(stopped.await) }));
    (url, (stop, ended))
}

async fn connect(url: &str, ca_pem: &str) -> Channel {
    let endpoint = proto::endpoint(url, Some(ca_pem.as_bytes())).expect("it is an address");
    endpoint.connect().await.expect("it listens")
}

/// A worker with one slot that takes any type.
pub(crate) fn hello(name: &str) -> v1::Hello {
    v1::Hello {
        worker: name.to_owned(),
        instance: format!("{name}-1"),
        protocol: proto::PROTOCOL,
        slots: 1,
        ..v1::Hello::default()
    }
}

/// A job of one slot.
pub(crate) fn spec() -> v1::Spec {
    v1::Spec { r#type: "t".to_owned(), ..v1::Spec::default() }
}
