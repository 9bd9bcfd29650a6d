//! The documented maximum of everything that can grow, in one place.
//!
//! The parsers of requests check these and name them in errors. Code behind them need not check
//! again.

/// Bytes in a name: of a job, worker, tenant, type, pool, resource, hint, key or value.
pub const NAME_BYTES_MAX: usize = 256;
/// Bytes in a snapshot.
pub const SNAPSHOT_BYTES_MAX: usize = 4 << 30;
/// Jobs in one scheduler state, queued and running.
pub const JOBS_MAX: usize = 20_000_000;
/// Workers in one scheduler state.
pub const WORKERS_MAX: usize = 200_000;
/// Tenants in one scheduler state.
pub const TENANTS_MAX: usize = 100_000;
/// Named resources in one scheduler state.
pub const RESOURCES_MAX: usize = 1_000_000;
/// Job types with settings of their own.
pub const TYPES_MAX: usize = 10_000;
/// Types that one worker lists.
pub const WORKER_TYPES_MAX: usize = 1_000;
/// Keys in one job's requirements, and in one worker's attributes.
pub const KEYS_MAX: usize = 64;
/// Alternatives for one key of a requirement, and values of one key of a worker.
pub const VALUES_MAX: usize = 64;
/// Consumable amounts named by one job or worker.
pub const AMOUNTS_MAX: usize = 16;
/// Locality labels of one worker.
pub const HINTS_MAX: usize = 1_000;
/// Pools in which one tenant has a quota.
pub const QUOTAS_MAX: usize = 1_000;
/// Slots of one worker, and slots that one job may ask for.
pub const SLOTS_MAX: u32 = 100_000;
/// The bound of a priority, in both directions.
pub const PRIORITY_MAX: i32 = 1_000;
/// Where a score multiplies a priority, it is clamped to ± this. So no priority counts for more
/// than about 17 minutes of waiting.
pub const PRIORITY_SCORED_MAX: i32 = 16;
/// The bound of a rank, in both directions.
pub const RANK_MAX: i32 = 1_000_000;
/// The latest time, in milliseconds: the year 5138.
pub const TIMESTAMP_MS_MAX: i64 = 100_000_000_000_000;
/// The longest duration, in milliseconds: about 317 years.
pub const DURATION_MS_MAX: i64 = 10_000_000_000_000;
/// The largest cost, weight, average, metric or amount.
pub const NUMBER_MAX: i64 = 1_000_000_000_000;
/// Evictions that are remembered.
pub const EVICTIONS_MAX: usize = 1_000_000;
/// Bytes in a job's payload.
pub const PAYLOAD_BYTES_MAX: usize = 256 << 10;
/// Bytes in a job's result.
pub const RESULT_BYTES_MAX: usize = 256 << 10;
/// Bytes in an error message, and in a note about progress.
pub const TEXT_BYTES_MAX: usize = 8 << 10;
/// Bytes in the URL of a webhook.
pub const URL_BYTES_MAX: usize = 2 << 10;
/// Bytes of output in one message.
pub const LOG_CHUNK_BYTES_MAX: usize = 64 << 10;
/// Labels of one job.
pub const LABELS_MAX: usize = 32;
/// Inputs of one job.
pub const INPUTS_MAX: usize = 1_000;
/// Dependencies of one job.
pub const AFTER_MAX: usize = 1_000;
/// Jobs in one submission, without arrays.
pub const SUBMISSION_MAX: usize = 1_000;
/// Bytes of all jobs that one submission makes.
pub const SUBMISSION_BYTES_MAX: usize = 16 << 20;
/// Jobs in one array.
pub const ARRAY_MAX: u32 = 10_000;
/// Attempts of one job that may fail.
pub const ATTEMPTS_MAX: u32 = 100;
/// Jobs that one request may name.
pub const IDS_MAX: usize = 1_000;
/// Jobs on one page.
pub const PAGE_MAX: usize = 500;
/// Input digests that one worker may report.
pub const INVENTORY_MAX: usize = 100_000;
/// Attempts that one worker may have at once, and name in one message.
pub const WORKER_ATTEMPTS_MAX: usize = 100_000;
