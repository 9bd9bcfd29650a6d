//! Every setting of a scheduler, by its permanent name. In the environment it has the same name,
//! in capitals, after `MAITRE_`.

use std::path::PathBuf;

use server::Config;

use super::value::Value;
use crate::place::Place;

/// What settings say together.
#[derive(Clone, Debug)]
pub(crate) struct All {
    /// For the scheduler.
    pub(crate) config: Config,
    /// Where jobs are kept.
    pub(crate) data_dir: PathBuf,
    /// A Postgres in which they are kept instead.
    pub(crate) store: Option<Place>,
}

impl Default for All {
    fn default() -> Self {
        Self { config: Config::default(), data_dir: PathBuf::from("maitre-data"), store: None }
    }
}

/// One setting.
pub(crate) struct Entry {
    /// What it is called.
    pub(crate) key: &'static str,
    /// What it says, in a few words.
    pub(crate) about: &'static str,
    /// Sets it, or says what is wrong with the text.
    pub(super) put: fn(&mut All, &str) -> Result<(), String>,
    /// What it is; secrets are hidden.
    pub(crate) show: fn(&All) -> String,
}

macro_rules! entries {
    ($($key:ident = $($place:tt).+, $about:literal;)*) => {
        /// All of them, in the order in which they are shown.
        pub(crate) const ENTRIES: &[Entry] = &[$(Entry {
            key: stringify!($key),
            about: $about,
            put: |all, text| Value::read(text).map(|value| all.$($place).+ = value),
            show: |all| all.$($place).+.show(),
        }),*];
    };
}

entries! {
    listen = config.listen, "where to listen: gRPC and HTTP";
    data_dir = data_dir, "where jobs are kept";
    store = store, "a Postgres in which they are kept instead";
    tls_cert = config.tls_cert, "certificate and those that vouch for it, PEM";
    tls_key = config.tls_key, "its key, PEM";
    insecure_plaintext = config.insecure_plaintext, "others may connect without TLS";
    admin_token_file = config.admin_token_file, "a token that may do everything";
    heartbeat = config.heartbeat, "workers give a sign of life this often";
    lease = config.lease, "silence after which attempts are lost";
    reconnect = config.reconnect.0, "when a worker connects again, at first";
    reconnect_max = config.reconnect.1, "and at most";
    stale_heartbeat = config.stale_heartbeat,
        "an attempt whose worker is not heard of for so long is given up";
    stale_progress = config.stale_progress,
        "so is one of a type that workers find, if it says nothing";
    expire_every = config.expire_every, "how often leases are looked at";
    averages_every = config.averages_every, "how often averages are counted anew";
    usage_window = config.usage_window, "older usage of tenants is forgiven";
    hints_learned = config.hints_learned, "successful jobs that give a worker its hints";
    stop_grace = config.stop_grace, "what an attempt gets before it is killed";
    shutdown_grace = config.shutdown_grace, "what requests get when it stops";
    retention = config.retention, "finished jobs are kept for so long";
    losses_max = config.patience.losses_max, "workers that a job may take with it";
    jobs_max = config.limits.jobs_max, "unfinished jobs in all";
    tenant_jobs_max = config.limits.tenant_jobs_max, "unfinished jobs of a tenant";
    submission_max = config.limits.submission_max, "jobs in a submission, an array once";
    array_max = config.limits.array_max, "jobs in an array";
    submission_bytes_max = config.limits.submission_bytes_max, "bytes that a submission makes";
    payload_bytes_max = config.limits.payload_bytes_max, "bytes in a payload";
    log_bytes_max = config.limits.log_bytes_max, "bytes of output kept of an attempt";
    message_bytes_max = config.limits.message_bytes_max, "bytes in a message";
    connections_max = config.limits.connections_max, "connections at once";
    requests_max = config.limits.requests_max, "requests at once on a connection";
    watches_max = config.limits.watches_max, "watching, waiting and following at once";
    workers_max = config.limits.workers_max, "workers connected at once";
    metrics_pairs_max = config.metrics_pairs_max, "tenants × types with metrics of their own";
    webhooks = config.webhooks.enabled, "ends of jobs are told to those who ask";
    webhook_secret = config.webhooks.secret, "what they are signed with";
    webhook_private = config.webhooks.private, "private addresses may be told";
    webhook_tries_max = config.webhooks.tries_max, "how often before it is given up";
    webhook_backoff = config.webhooks.backoff, "wait before the second time, doubling";
    webhook_backoff_max = config.webhooks.backoff_max, "and at most";
    webhook_timeout = config.webhooks.timeout, "how long an answer may take";
    webhooks_at_once_max = config.webhooks.at_once_max, "how many are told at once";
    what_if_hours_max = config.what_if.hours_max, "hours that are replayed at most";
    what_if_jobs_max = config.what_if.jobs_max, "jobs that are replayed at most, the newest";
    what_if_timeout = config.what_if.timeout, "a replay that takes longer is given up";
}
