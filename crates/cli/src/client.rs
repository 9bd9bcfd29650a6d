//! How commands talk to a scheduler.

use std::time::Duration;

use anyhow::anyhow;
use clap::Args;
use proto::v1;
use proto::v1::admin_client::AdminClient;
use proto::v1::detection_client::DetectionClient;
use proto::v1::jobs_client::JobsClient;
use proto::v1::schedules_client::SchedulesClient;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};

use crate::print::Failure;
use crate::settings::ADDRESS;

/// Bytes in one message, either way.
const MESSAGE_BYTES_MAX: usize = 16 << 20;

/// Which scheduler to talk to.
#[derive(Args, Clone)]
pub(crate) struct Target {
    /// The scheduler's address.
    #[arg(long, global = true, env = "MAITRE_SERVER", default_value = ADDRESS)]
    pub(crate) server: String,
}

impl Target {
    /// A client for jobs.
    pub(crate) async fn jobs(&self) -> Result<JobsClient<Channel>, Failure> {
        let client = JobsClient::new(self.connect().await?);
        Ok(client
            .max_decoding_message_size(MESSAGE_BYTES_MAX)
            .max_encoding_message_size(MESSAGE_BYTES_MAX))
    }

    /// A client for operators.
    pub(crate) async fn admin(&self) -> Result<AdminClient<Channel>, Failure> {
        let client = AdminClient::new(self.connect().await?);
        Ok(client.max_decoding_message_size(MESSAGE_BYTES_MAX))
    }

    /// A client for work that workers find.
    pub(crate) async fn detection(&self) -> Result<DetectionClient<Channel>, Failure> {
        let client = DetectionClient::new(self.connect().await?);
        Ok(client.max_decoding_message_size(MESSAGE_BYTES_MAX))
    }

    /// A client for jobs that recur.
    pub(crate) async fn schedules(&self) -> Result<SchedulesClient<Channel>, Failure> {
        let client = SchedulesClient::new(self.connect().await?);
        Ok(client.max_decoding_message_size(MESSAGE_BYTES_MAX))
    }

    /// The scheduler's time, which is the one that counts.
    pub(crate) async fn now_ms(&self) -> Result<i64, Failure> {
        let status = self.admin().await?.status(v1::StatusRequest {}).await;
        Ok(status.map_err(|status| refused(&status))?.into_inner().now_ms)
    }

    /// The address as a URL.
    pub(crate) fn url(&self) -> String {
        if self.server.contains("://") {
            self.server.clone()
        } else {
            format!("http://{}", self.server)
        }
    }

    async fn connect(&self) -> Result<Channel, Failure> {
        let endpoint = Endpoint::from_shared(self.url()).map_err(|error| Failure::Input {
            error: format!("`{}` is not an address: {error}", self.server),
            hint: Some(format!("an address is a host and a port, such as `{ADDRESS}`")),
        })?;
        let endpoint = endpoint
            .connect_timeout(Duration::from_secs(5))
            .tcp_nodelay(true)
            .http2_keep_alive_interval(Duration::from_secs(10));
        endpoint.connect().await.map_err(|error| Failure::Input {
            error: format!("no scheduler answers at `{}`: {}", self.server, cause(&error)),
            hint: Some("start one with `maitre dev`, or name another with `--server`".to_owned()),
        })
    }
}

/// The innermost reason: what the system said.
fn cause(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

/// Runs a command that waits for others.
pub(crate) fn wait<F: Future<Output = Result<(), Failure>>>(command: F) -> Result<(), Failure> {
    runtime()?.block_on(command)
}

/// What runs everything that waits.
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.map_err(|error| Failure::Other(anyhow!(error).context("start the runtime")))
}

/// What a scheduler's refusal means for a person.
pub(crate) fn refused(status: &Status) -> Failure {
    let error = status.message().to_owned();
    match status.code() {
        Code::InvalidArgument
        | Code::NotFound
        | Code::AlreadyExists
        | Code::FailedPrecondition
        | Code::OutOfRange
        | Code::ResourceExhausted => {
            let hint = hint(status).map(str::to_owned);
            Failure::Input { error, hint }
        }
        Code::Unavailable => Failure::Other(anyhow!(
            "the scheduler is not there: {error}\n\nhint: try again; `maitre dev` or \
             `maitre serve` starts one"
        )),
        Code::Unimplemented => Failure::Other(anyhow!(
            "the scheduler does not know this request\n\nhint: it is older than this program; \
             upgrade it"
        )),
        code @ (Code::Ok
        | Code::Cancelled
        | Code::Unknown
        | Code::DeadlineExceeded
        | Code::PermissionDenied
        | Code::Aborted
        | Code::Internal
        | Code::DataLoss
        | Code::Unauthenticated) => Failure::Other(anyhow!("{error} ({code})")),
    }
}

/// What to do about a refusal that does not say it itself.
fn hint(status: &Status) -> Option<&'static str> {
    let (message, code) = (status.message(), status.code());
    let hints = [
        (Code::NotFound, "there is no type", "`maitre types` lists those that are known"),
        (Code::NotFound, "schedule", "`maitre schedule list` lists those that are there"),
        (Code::NotFound, "worker", "`maitre workers` lists those that are there"),
        (Code::NotFound, "", "`maitre jobs` lists those that are there; old ones are forgotten"),
        (Code::AlreadyExists, "idempotency key", "another submission needs another key"),
        (
            Code::ResourceExhausted,
            "unfinished jobs",
            "wait until some are done, or set `tenant_jobs_max` or `jobs_max` higher",
        ),
    ];
    let own = hints.iter().find(|(of, word, _)| *of == code && message.contains(word));
    own.filter(|_| !message.contains("hint: ")).map(|(_, _, hint)| *hint)
}
