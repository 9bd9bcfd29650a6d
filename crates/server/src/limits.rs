//! The limit of everything that strangers can make grow: all of them, with their defaults.
//!
//! Whoever meets one is told its name, what it is and what was asked, and nothing of what was
//! asked is done.

use model::maxima::{ARRAY_MAX, PAYLOAD_BYTES_MAX, SUBMISSION_BYTES_MAX, SUBMISSION_MAX};
use prost::Message as _;
use proto::v1;
use tonic::Status;

/// Clients ask so much at once before they are told how much they may: less would be refused, and
/// not wait.
pub(crate) const REQUESTS_MIN: u32 = 100;

/// What may grow how far. The names are those of the settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Unfinished jobs of all tenants together.
    pub jobs_max: u64,
    /// Unfinished jobs of one tenant.
    pub tenant_jobs_max: u64,
    /// Jobs in one submission, an array counted once.
    pub submission_max: usize,
    /// Jobs in one array.
    pub array_max: u32,
    /// Bytes of all jobs that one submission makes.
    pub submission_bytes_max: usize,
    /// Bytes in a job's payload.
    pub payload_bytes_max: usize,
    /// Bytes of output that are kept of one attempt.
    pub log_bytes_max: u64,
    /// Bytes in one message, either way.
    pub message_bytes_max: usize,
    /// Connections at once.
    pub connections_max: usize,
    /// Requests at once on one connection; further ones wait. At least `REQUESTS_MIN`.
    pub requests_max: u32,
    /// Requests at once that stay open: watching, waiting, following output.
    pub watches_max: usize,
    /// Workers connected at once.
    pub workers_max: usize,
}

impl Limits {
    /// What holds if nobody says otherwise.
    pub const DEFAULT: Self = Self {
        jobs_max: 10_000_000,
        tenant_jobs_max: 5_000_000,
        submission_max: SUBMISSION_MAX,
        array_max: ARRAY_MAX,
        submission_bytes_max: SUBMISSION_BYTES_MAX,
        payload_bytes_max: PAYLOAD_BYTES_MAX,
        log_bytes_max: 1 << 20,
        message_bytes_max: 16 << 20,
        connections_max: 20_000,
        requests_max: 1_024,
        watches_max: 10_000,
        workers_max: 10_000,
    };

    /// The first limit that may not be so, and its maximum: beyond it nothing was ever tried.
    pub(crate) fn beyond(&self) -> Option<(&'static str, u64, u64)> {
        let size = |size: usize| u64::try_from(size).unwrap_or(u64::MAX);
        let pairs = [
            ("submission_max", size(self.submission_max), size(SUBMISSION_MAX)),
            ("array_max", u64::from(self.array_max), u64::from(ARRAY_MAX)),
            ("payload_bytes_max", size(self.payload_bytes_max), size(PAYLOAD_BYTES_MAX)),
            ("message_bytes_max", size(self.message_bytes_max), 64 << 20),
            ("submission_bytes_max", size(self.submission_bytes_max), 64 << 20),
        ];
        pairs.into_iter().find(|(_, limit, max)| limit > max)
    }

    /// What whoever submits should know.
    pub(crate) fn told(&self) -> v1::LimitsResponse {
        let size = |size: usize| u64::try_from(size).unwrap_or(u64::MAX);
        v1::LimitsResponse {
            submission_max: size(self.submission_max),
            array_max: u64::from(self.array_max),
            submission_bytes_max: size(self.submission_bytes_max),
            payload_bytes_max: size(self.payload_bytes_max),
            message_bytes_max: size(self.message_bytes_max),
        }
    }

    /// Refuses a submission that asks for more than may be.
    pub(crate) fn submission(&self, request: &v1::SubmitRequest) -> Result<(), Status> {
        let n_jobs = request.jobs.len();
        if n_jobs > self.submission_max {
            return Err(exceeded(
                ("submission_max", self.submission_max),
                format!("`jobs` has {n_jobs} entries"),
                "submit in several batches",
            ));
        }
        if request.array > self.array_max {
            return Err(exceeded(
                ("array_max", self.array_max),
                format!("`array` is {}", request.array),
                "submit several arrays",
            ));
        }
        for (index, job) in request.jobs.iter().enumerate() {
            if job.payload.len() > self.payload_bytes_max {
                return Err(exceeded(
                    ("payload_bytes_max", self.payload_bytes_max),
                    format!("`jobs[{index}].payload` has {} bytes", job.payload.len()),
                    "put it where the worker can read it, and name the place in the payload",
                ));
            }
        }
        self.submission_bytes(request)
    }

    /// All that one submission would make, so that a small request cannot make a large one.
    fn submission_bytes(&self, request: &v1::SubmitRequest) -> Result<(), Status> {
        let n_times = usize::try_from(request.array.max(1)).unwrap_or(usize::MAX);
        let n_bytes: usize = request.jobs.iter().map(v1::Spec::encoded_len).sum();
        let n_bytes = n_bytes.saturating_mul(n_times);
        if n_bytes <= self.submission_bytes_max {
            return Ok(());
        }
        Err(exceeded(
            ("submission_bytes_max", self.submission_bytes_max),
            format!("`jobs` have {n_bytes} bytes in all"),
            "submit in several batches",
        ))
    }
}

/// More was asked than a limit allows; nothing is done.
pub(crate) fn exceeded(
    (name, limit): (&str, impl std::fmt::Display),
    found: impl std::fmt::Display,
    hint: &str,
) -> Status {
    Status::resource_exhausted(format!(
        "{found}, more than `{name}` = {limit}; nothing was done; hint: {hint}"
    ))
}
