//! How commands talk to a scheduler.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::anyhow;
use clap::Args;
use proto::v1::admin_client::AdminClient;
use proto::v1::detection_client::DetectionClient;
use proto::v1::jobs_client::JobsClient;
use proto::v1::schedules_client::SchedulesClient;
use proto::{Bearer, Wire, v1};
use tonic::transport::Channel;
use tonic::{Code, Status};

use crate::print::Failure;
use crate::settings::ADDRESS;

/// Bytes in one message, either way.
const MESSAGE_BYTES_MAX: usize = 16 << 20;

/// What a token is, for those who have none.
const TOKEN: &str = "a token is a line of text that `maitre token new` wrote";

/// A client for jobs.
pub(crate) type Jobs = JobsClient<Wire>;
/// A client for operators.
pub(crate) type Admin = AdminClient<Wire>;

/// Which scheduler to talk to.
#[derive(Args, Clone, Default)]
#[command(next_help_heading = "Connection")]
pub(crate) struct Target {
    /// The scheduler's address; `https://…` is encrypted.
    #[arg(long, global = true, env = "MAITRE_SERVER", hide_env_values = true)]
    #[arg(value_name = "ADDRESS", default_value = ADDRESS)]
    pub(crate) server: String,
    /// A file with the token to show; or the token itself in `MAITRE_TOKEN`.
    #[arg(long, global = true, env = "MAITRE_TOKEN_FILE", hide_env_values = true)]
    #[arg(value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Who vouches for an `https` scheduler, as PEM; otherwise those that the
    /// system trusts.
    #[arg(long, global = true, env = "MAITRE_CA", hide_env_values = true, value_name = "FILE")]
    ca: Option<PathBuf>,
}

impl Target {
    /// The scheduler at an address, for whoever needs no token.
    pub(crate) fn at(server: String) -> Self {
        Self { server, ..Self::default() }
    }

    /// A client for jobs.
    pub(crate) async fn jobs(&self) -> Result<Jobs, Failure> {
        let client = JobsClient::with_interceptor(self.connect().await?, self.bearer()?);
        Ok(client
            .max_decoding_message_size(MESSAGE_BYTES_MAX)
            .max_encoding_message_size(MESSAGE_BYTES_MAX))
    }

    /// A client for operators.
    pub(crate) async fn admin(&self) -> Result<Admin, Failure> {
        let client = AdminClient::with_interceptor(self.connect().await?, self.bearer()?);
        Ok(client.max_decoding_message_size(MESSAGE_BYTES_MAX))
    }

    /// A client for work that workers find.
    pub(crate) async fn detection(&self) -> Result<DetectionClient<Wire>, Failure> {
        let client = DetectionClient::with_interceptor(self.connect().await?, self.bearer()?);
        Ok(client.max_decoding_message_size(MESSAGE_BYTES_MAX))
    }

    /// A client for jobs that recur.
    pub(crate) async fn schedules(&self) -> Result<SchedulesClient<Wire>, Failure> {
        let client = SchedulesClient::with_interceptor(self.connect().await?, self.bearer()?);
        Ok(client.max_decoding_message_size(MESSAGE_BYTES_MAX))
    }

    /// The token to show: of the file that is named, or of the environment.
    pub(crate) fn token(&self) -> Result<Option<String>, Failure> {
        let Some(path) = &self.token_file else { return Ok(std::env::var("MAITRE_TOKEN").ok()) };
        let token = read(path, TOKEN)?;
        if token.trim().is_empty() {
            let error = format!("the token file `{}` is empty", path.display());
            return Err(Failure::Input { error, hint: Some(TOKEN.to_owned()) });
        }
        Ok(Some(token))
    }

    /// Who vouches for the scheduler, if not only those that the system trusts.
    pub(crate) fn ca_pem(&self) -> Result<Option<String>, Failure> {
        let read = |path: &PathBuf| read(path, "`--ca` names a PEM file of certificates");
        self.ca.as_ref().map(read).transpose()
    }

    fn bearer(&self) -> Result<Bearer, Failure> {
        Bearer::new(self.token()?.as_deref()).map_err(|error| Failure::Input {
            error: error.to_string(),
            hint: Some(TOKEN.to_owned()),
        })
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
        let ca_pem = self.ca_pem()?;
        let endpoint = proto::endpoint(&self.url(), ca_pem.as_deref().map(str::as_bytes));
        let endpoint = endpoint.map_err(|error| Failure::Input {
            error: format!("`{}` is not an address: {}", self.server, cause(&error)),
            hint: Some(format!("an address is a host and a port, such as `{ADDRESS}`")),
        })?;
        let endpoint = endpoint
            .connect_timeout(Duration::from_secs(5))
            .tcp_nodelay(true)
            .http2_keep_alive_interval(Duration::from_secs(10));
        endpoint.connect().await.map_err(|error| Failure::Input {
            error: format!("no scheduler answers at `{}`: {}", self.server, cause(&error)),
            hint: Some(self.hint(&cause(&error)).to_owned()),
        })
    }

    /// What to do about a scheduler that does not answer.
    fn hint(&self, cause: &str) -> &'static str {
        if self.url().starts_with("https://") && cause.contains("InvalidContentType") {
            return "whoever is there speaks without TLS: `http://…`";
        }
        if cause.contains("certificate") {
            return "`--ca FILE` names who vouches for it; its certificate must be for this name";
        }
        "start one with `maitre dev`, or name another with `--server`"
    }
}

/// The number of a job.
pub(crate) fn job_number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "a job is named by its number; `maitre jobs` lists them".to_owned())
}

fn read(path: &Path, hint: &str) -> Result<String, Failure> {
    std::fs::read_to_string(path).map_err(|error| Failure::Input {
        error: format!("cannot read `{}`: {error}", path.display()),
        hint: Some(hint.to_owned()),
    })
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
    let (error, said) = match status.message().split_once("; hint: ") {
        Some((error, hint)) => (error.to_owned(), Some(hint.to_owned())),
        None => (status.message().to_owned(), None),
    };
    match status.code() {
        Code::InvalidArgument
        | Code::NotFound
        | Code::AlreadyExists
        | Code::FailedPrecondition
        | Code::OutOfRange
        | Code::PermissionDenied
        | Code::Unauthenticated
        | Code::ResourceExhausted => {
            let hint = said.or_else(|| hint(status).map(str::to_owned));
            Failure::Input { error, hint }
        }
        // It says so itself, and how soon to ask again.
        Code::Unavailable if status.metadata().contains_key("retry-after") => Failure::Other(
            anyhow!("the scheduler cannot do this now: {error}\n\nhint: try again in a moment"),
        ),
        Code::Unavailable => Failure::Other(anyhow!(
            "the scheduler is not there: {error}\n\nhint: try again; `maitre dev` or \
             `maitre serve` starts one"
        )),
        Code::Unimplemented => Failure::Other(anyhow!(
            "the scheduler does not know this request\n\nhint: it is older than this program; \
             upgrade it"
        )),
        Code::Internal | Code::Unknown if error.contains("h2 protocol error") => {
            Failure::Other(anyhow!(
                "whoever answers is no scheduler that speaks without TLS: {error}\n\nhint: \
                 `--server https://…` if it speaks with TLS"
            ))
        }
        code @ (Code::Ok
        | Code::Cancelled
        | Code::Unknown
        | Code::DeadlineExceeded
        | Code::Aborted
        | Code::Internal
        | Code::DataLoss) => Failure::Other(anyhow!("{error} ({code})")),
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
        (
            Code::InvalidArgument,
            "priority` is",
            "jobs have priority 0 unless they say otherwise; higher is sooner",
        ),
        (
            Code::InvalidArgument,
            "which is private",
            "name a public address, or let an operator set `webhook_private = true` and restart",
        ),
    ];
    let own = hints.iter().find(|(of, word, _)| *of == code && message.contains(word));
    own.filter(|_| !message.contains("hint: ")).map(|(_, _, hint)| *hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_does_not_answer_as_asked_comes_with_a_hint() {
        let hint = |server: &str, cause: &str| Target::at(server.to_owned()).hint(cause);
        let plain = "received corrupt message of type InvalidContentType";
        assert!(hint("https://a:1", plain).contains("`http://…`"));
        let stranger = "invalid peer certificate: UnknownIssuer";
        assert!(hint("https://a:1", stranger).contains("`--ca FILE`"));
        assert!(hint("a:1", "Connection refused").contains("`maitre dev`"));
        let status = Status::internal("h2 protocol error: http2 error");
        assert!(refused(&status).to_string().contains("hint: `--server https://…`"));
    }
}
