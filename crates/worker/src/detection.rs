//! Detection: the worker looks for work of a type.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use model::Timestamp;
use prost::Message as _;
use proto::v1;
use proto::v1::worker_message::Message;
use tokio_util::sync::CancellationToken;

use crate::Failure;
use crate::handler::ended;
use crate::known::{Configuration, Context};
use crate::lock::lock;
use crate::outbox::Outbox;
use crate::shared::Shared;

/// The size of a page, in proposals and in bytes.
const PAGE_MAX: usize = 100;
const PAGE_BYTES_MAX: usize = 256 << 10;
/// The time that a detector has after its stop, before it is dropped.
const PATIENCE: Duration = Duration::from_secs(5);

/// A running detection.
pub type Looking<'a> = Pin<Box<dyn Future<Output = Result<(), Failure>> + Send + 'a>>;

/// Detects work of one type. A function from a [`Detection`] to a future is a detector.
///
/// It should end soon after [`Detection::stopped`]. Proposals count even if it fails later.
pub trait Detector: Send + Sync + 'static {
    /// Runs one detection.
    fn detect(&self, detection: Detection) -> Looking<'_>;
}

impl<F, R> Detector for F
where
    F: Fn(Detection) -> R + Send + Sync + 'static,
    R: Future<Output = Result<(), Failure>> + Send + 'static,
{
    fn detect(&self, detection: Detection) -> Looking<'_> {
        Box::pin(self(detection))
    }
}

/// One unit of work that a detection found.
#[derive(Clone, Debug, Default)]
pub struct Proposal(v1::Proposal);

impl Proposal {
    /// Work with this key. While a job with the same key is unfinished, a further proposal of it
    /// has no effect.
    pub fn new(about: &str) -> Self {
        let spec = Some(v1::Spec { dedupe_key: about.to_owned(), ..v1::Spec::default() });
        Self(v1::Proposal { spec, ..v1::Proposal::default() })
    }

    /// The payload of the job.
    #[must_use]
    pub fn payload(self, payload: impl Into<Vec<u8>>) -> Self {
        let payload = payload.into();
        self.with(|spec| spec.payload = payload)
    }

    /// One line for users.
    #[must_use]
    pub fn summary(mut self, summary: &str) -> Self {
        summary.clone_into(&mut self.0.summary);
        self
    }

    /// Higher starts sooner.
    #[must_use]
    pub fn priority(self, priority: i32) -> Self {
        self.with(|spec| spec.priority = priority)
    }

    /// Adds a label.
    #[must_use]
    pub fn label(self, key: &str, value: &str) -> Self {
        self.with(|spec| drop(spec.labels.insert(key.to_owned(), value.to_owned())))
    }

    /// The earliest start.
    #[must_use]
    pub fn not_before(self, at: Timestamp) -> Self {
        self.with(|spec| spec.not_before_ms = Some(at.0))
    }

    /// The latest start.
    #[must_use]
    pub fn expires(self, at: Timestamp) -> Self {
        self.with(|spec| spec.start_before_ms = Some(at.0))
    }

    /// The expected run time. The run timeout is at least as long.
    #[must_use]
    pub fn estimate(self, length: Duration) -> Self {
        let ms = u64::try_from(length.as_millis()).unwrap_or(u64::MAX);
        self.with(|spec| spec.estimate_ms = Some(ms))
    }

    /// Adds a requirement: this value under this key.
    #[must_use]
    pub fn need(self, key: &str, value: &str) -> Self {
        self.with(|spec| {
            let values = spec.needs.entry(key.to_owned()).or_default();
            values.values.push(value.to_owned());
        })
    }

    fn with(mut self, change: impl FnOnce(&mut v1::Spec)) -> Self {
        change(self.0.spec.get_or_insert_default());
        self
    }
}

/// One detection, as its detector sees it. Clones are the same detection.
#[derive(Clone, Debug)]
pub struct Detection(Arc<Look>);

#[derive(Debug)]
struct Look {
    request: v1::Detect,
    configuration: Arc<Configuration>,
    context: Arc<Context>,
    stop: CancellationToken,
    outbox: Arc<Outbox>,
    page: Mutex<(Vec<v1::Proposal>, usize)>,
    seen: AtomicU64,
    skipped: AtomicU64,
}

impl Detection {
    /// The type.
    pub fn kind(&self) -> &str {
        &self.0.request.r#type
    }

    /// The name of the run.
    pub fn run(&self) -> &str {
        &self.0.request.run
    }

    /// The configuration of the type.
    pub fn configuration(&self) -> &Configuration {
        &self.0.configuration
    }

    /// The context that is published to all workers.
    pub fn context(&self) -> &Context {
        &self.0.context
    }

    /// When the last successful run of this type began.
    pub fn last_success(&self) -> Option<Timestamp> {
        self.0.request.last_success_ms.map(Timestamp)
    }

    /// The limit of proposals. The server rejects further ones.
    pub fn proposals_max(&self) -> usize {
        usize::try_from(self.0.request.proposals_max).unwrap_or(usize::MAX)
    }

    /// Cancelled once the detection should stop.
    pub fn stop_token(&self) -> &CancellationToken {
        &self.0.stop
    }

    /// Waits until the detection should stop.
    pub async fn stopped(&self) {
        self.0.stop.cancelled().await;
    }

    /// Counts objects that were examined, and objects that could not be read.
    pub fn saw(&self, seen: u64, skipped: u64) {
        self.0.seen.fetch_add(seen, Ordering::Relaxed);
        self.0.skipped.fetch_add(skipped, Ordering::Relaxed);
    }

    /// Proposes work. Waits for room while the server listens.
    pub async fn propose(&self, proposal: Proposal) {
        let mut proposal = proposal.0;
        let spec = proposal.spec.get_or_insert_default();
        if spec.r#type.is_empty() {
            self.kind().clone_into(&mut spec.r#type);
        }
        let page = {
            let mut page = lock(&self.0.page);
            page.1 += proposal.encoded_len();
            page.0.push(proposal);
            let is_full = page.0.len() >= PAGE_MAX || page.1 >= PAGE_BYTES_MAX;
            is_full.then(|| std::mem::take(&mut *page).0)
        };
        if let Some(proposals) = page {
            tokio::select! {
                () = self.0.outbox.page_room() => self.send(proposals),
                () = self.stopped() => {}
            }
        }
    }

    fn send(&self, proposals: Vec<v1::Proposal>) {
        if !proposals.is_empty() && !self.0.stop.is_cancelled() {
            let run = self.run().to_owned();
            self.0.outbox.page(Message::Proposals(v1::Proposals { run, proposals }));
        }
    }

    fn end(&self, end: v1::DetectionEnd, error: String) {
        let rest = std::mem::take(&mut *lock(&self.0.page)).0;
        self.send(rest);
        self.0.outbox.page(Message::Detected(v1::Detected {
            run: self.run().to_owned(),
            end: end.into(),
            error,
            seen: self.0.seen.load(Ordering::Relaxed),
            skipped: self.0.skipped.load(Ordering::Relaxed),
        }));
    }
}

/// The detector of one type.
pub(crate) struct Scout {
    pub(crate) detect_max: u32,
    pub(crate) detector: Arc<dyn Detector>,
}

impl fmt::Debug for Scout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scout").field("detect_max", &self.detect_max).finish_non_exhaustive()
    }
}

/// Running detections, by run.
#[derive(Debug, Default)]
pub(crate) struct Detections(Mutex<BTreeMap<String, (String, CancellationToken)>>);

impl Detections {
    pub(crate) fn n_running(&self) -> usize {
        lock(&self.0).len()
    }

    /// Stops all detections.
    pub(crate) fn stop_all(&self) {
        lock(&self.0).values().for_each(|(_, stop)| stop.cancel());
    }

    pub(crate) fn stop(&self, run: &str) {
        if let Some((_, stop)) = lock(&self.0).get(run) {
            stop.cancel();
        }
    }

    /// Admits a detection, if the type has room.
    fn admit(&self, run: &str, kind: &str, detect_max: u32) -> Option<CancellationToken> {
        let mut here = lock(&self.0);
        let n_alike = here.values().filter(|(other, _)| other == kind).count();
        if u32::try_from(n_alike).map_or(true, |n| n >= detect_max) {
            return None;
        }
        let stop = CancellationToken::new();
        here.insert(run.to_owned(), (kind.to_owned(), stop.clone()));
        Some(stop)
    }

    fn remove(&self, run: &str) {
        lock(&self.0).remove(run);
    }
}

/// The server requests a detection.
pub(crate) fn asked(shared: &Arc<Shared>, request: v1::Detect) {
    let refuse = |end: v1::DetectionEnd, error: &str| {
        let (run, end, error) = (request.run.clone(), end.into(), error.to_owned());
        let detected = v1::Detected { run, end, error, ..v1::Detected::default() };
        shared.outbox.page(Message::Detected(detected));
    };
    let Some(scout) = shared.settings.scouts.get(&request.r#type) else {
        return refuse(v1::DetectionEnd::Failed, "this worker does not look for it");
    };
    if shared.roster.is_leaving() {
        return refuse(v1::DetectionEnd::AtCapacity, "draining");
    }
    let admitted = shared.detections.admit(&request.run, &request.r#type, scout.detect_max);
    let Some(stop) = admitted else {
        return refuse(v1::DetectionEnd::AtCapacity, "at capacity");
    };
    let detection = Detection(Arc::new(Look {
        configuration: shared.known.configuration(&request.r#type),
        context: shared.known.context(),
        request,
        stop,
        outbox: Arc::clone(&shared.outbox),
        page: Mutex::default(),
        seen: AtomicU64::new(0),
        skipped: AtomicU64::new(0),
    }));
    tokio::spawn(look(Arc::clone(shared), detection, Arc::clone(&scout.detector)));
}

async fn look(shared: Arc<Shared>, detection: Detection, detector: Arc<dyn Detector>) {
    let timeout = Duration::from_millis(detection.0.request.timeout_ms);
    let given = detection.clone();
    let mut task = shared.handlers.spawn(async move { detector.detect(given).await });
    let late = async {
        tokio::select! {
            () = detection.stopped() => {}
            () = tokio::time::sleep(timeout) => detection.0.stop.cancel(),
        }
        tokio::time::sleep(PATIENCE).await;
    };
    let looked = tokio::select! {
        joined = &mut task => joined.unwrap_or_else(|error| Err(Failure::transient(ended(error)))),
        () = late => {
            task.abort();
            Err(Failure::transient("it did not stop when it was told to"))
        }
    };
    shared.detections.remove(detection.run());
    match looked {
        _ if detection.0.stop.is_cancelled() => {
            detection.end(v1::DetectionEnd::Stopped, "it was told to stop".to_owned());
        }
        Ok(()) => detection.end(v1::DetectionEnd::Complete, String::new()),
        Err(failure) => detection.end(v1::DetectionEnd::Failed, failure.text),
    }
}
