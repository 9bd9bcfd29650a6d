//! `maitre submit` and `maitre run`: jobs in.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use proto::v1;
use tonic::Response;

use crate::away::{self, Away};
use crate::bulk;
use crate::client::{Jobs, Target, refused};
use crate::foresee;
use crate::job::describe;
use crate::logs;
use crate::print::{self, Failure};
use crate::spec::JobOptions;

/// How long one request waits for jobs before it is made again.
const WAIT_MS: u64 = 60_000;

/// Options of `maitre submit`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  maitre submit -- echo hello
  maitre submit --need gpu=a100 --priority 5 --wait -- ./train.sh
  maitre submit --array 100 -- ./part.sh    (each reads MAITRE_ARRAY_INDEX)
  maitre submit --after 17 -- ./report.sh
  maitre submit --dry-run --need gpu=a100 -- ./train.sh
  maitre submit --file jobs.jsonl --priority 5
  maitre submit --type pdf --payload '{\"file\": \"a.txt\"}'

Lines of a file are JSON; flags hold for every line that does not say otherwise:
  {\"name\": \"a\", \"command\": [\"make\"], \"needs\": {\"os\": \"linux\"}}
  {\"command\": [\"./report\"], \"after\": [\"a\", 17], \"labels\": {\"team\": \"red\"}}")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct Options {
    #[command(flatten)]
    job: JobOptions,
    /// A person waits for the result.
    #[arg(long)]
    on_demand: bool,
    /// Run it so many times.
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    array: u32,
    /// Start once these jobs have succeeded.
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    after: Vec<u64>,
    /// Start also if they did not succeed.
    #[arg(long, requires = "after")]
    even_if_failed: bool,
    /// Keep it in the queue until it is released.
    #[arg(long)]
    hold: bool,
    /// Submit this once, however often it is sent.
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
    /// Say where it would go, or why it would wait; submit nothing.
    #[arg(long, conflicts_with_all = ["wait", "file"])]
    dry_run: bool,
    /// Submit a job for each line of JSON in this file; `-` is the standard input.
    #[arg(long, short, value_name = "FILE")]
    #[arg(conflicts_with_all = ["command", "payload", "array", "after", "environment"])]
    file: Option<PathBuf>,
    /// Wait until all is done; exit code 1 if a job did not succeed, 125 if that
    /// is not known.
    #[arg(long)]
    wait: bool,
    /// For machines.
    #[arg(long)]
    json: bool,
}

/// Options of `maitre run`.
#[derive(Args)]
#[command(after_help = "\
Example:
  maitre run -- sh -c 'echo working; sleep 1; exit 3'; echo $?")]
pub(crate) struct RunOptions {
    #[command(flatten)]
    job: JobOptions,
    /// For machines: one JSON object a line, its output first and the job last.
    #[arg(long)]
    json: bool,
}

/// Submits, and says which jobs these are.
pub(crate) async fn submit(options: &Options, target: &Target) -> Result<(), Failure> {
    let mut client = target.jobs().await?;
    let now_ms = target.now_ms().await?;
    if let Some(path) = &options.file {
        return submit_file(options, &mut client, path, now_ms).await;
    }
    let spec = options.complete(options.job.spec(now_ms)?);
    let idempotency_key = options.key()?.unwrap_or_default();
    let request = v1::SubmitRequest { jobs: vec![spec], idempotency_key, array: options.array };
    if options.dry_run {
        let response = client.dry_run(request).await.map_err(|status| refused(&status))?;
        return foresee::tell(&response.into_inner().jobs, options.json);
    }
    let jobs = send(&mut client, request).await?;
    if options.wait {
        let waited = wait_for(&mut client, &jobs, options.json).await;
        return waited.map_err(|failure| away::submitted(&jobs, &failure));
    }
    if options.json {
        let jobs: Vec<serde_json::Value> = jobs.iter().map(submitted).collect();
        return print::json(&jobs);
    }
    let lines: Vec<String> = jobs.iter().map(line).collect();
    print::data(&lines.join("\n"))
}

async fn submit_file(
    options: &Options,
    client: &mut Jobs,
    path: &Path,
    now_ms: i64,
) -> Result<(), Failure> {
    let key = options.key()?;
    let given = bulk::Given {
        path,
        base: options.complete(options.job.base(now_ms)?),
        now_ms,
        idempotency_key: key.as_deref(),
        // Whoever waits wants to hear of ends.
        json: options.json && !options.wait,
    };
    let jobs = bulk::submit(client, &given).await?;
    if options.wait {
        let waited = wait_for(client, &jobs, options.json).await;
        return waited.map_err(|failure| away::submitted(&jobs, &failure));
    }
    if options.json { Ok(()) } else { print::data(&bulk::summary(&jobs)) }
}

impl Options {
    /// Who waits for jobs has a key for them: so they are kept, whatever their type says.
    fn key(&self) -> Result<Option<String>, Failure> {
        if self.idempotency_key.is_some() || !self.wait {
            return Ok(self.idempotency_key.clone());
        }
        drawn_key().map(Some)
    }

    /// What only `submit` can say of a job.
    fn complete(&self, spec: v1::Spec) -> v1::Spec {
        v1::Spec {
            on_demand: self.on_demand,
            on_hold: self.hold,
            after: self.after.clone(),
            run_if_failed: self.even_if_failed,
            ..spec
        }
    }
}

/// A key that nobody else has: what is submitted under it is kept, whatever its type says.
pub(crate) fn drawn_key() -> Result<String, Failure> {
    let draw = getrandom::u64().context("draw a key")?;
    Ok(format!("drawn-{draw:016x}"))
}

fn line(job: &v1::Submitted) -> String {
    if job.is_new {
        format!("job {}", job.id)
    } else {
        format!("job {} (was there before)", job.id)
    }
}

fn submitted(job: &v1::Submitted) -> serde_json::Value {
    let state = proto::json::state_name(job.state());
    serde_json::json!({ "id": job.id, "is_new": job.is_new, "state": state })
}

async fn send(
    client: &mut Jobs,
    request: v1::SubmitRequest,
) -> Result<Vec<v1::Submitted>, Failure> {
    let response = client.submit(request).await.map_err(|status| refused(&status))?;
    Ok(response.into_inner().jobs)
}

/// Waits until all are final, and tells how each ended.
async fn wait_for(client: &mut Jobs, jobs: &[v1::Submitted], json: bool) -> Result<(), Failure> {
    let mut ended = Vec::with_capacity(jobs.len());
    for ids in jobs.chunks(model::maxima::IDS_MAX) {
        let ids: Vec<u64> = ids.iter().map(|job| job.id).collect();
        ended.extend(final_jobs(client, ids).await?);
    }
    if json {
        let values: Vec<serde_json::Value> = ended.iter().map(proto::json::job).collect();
        print::json(&values)?;
    } else {
        let lines: Vec<String> = ended.iter().map(describe).collect();
        print::data(&lines.join("\n"))?;
    }
    let n_failed = ended.iter().filter(|job| job.state() != v1::State::Succeeded).count();
    if n_failed == 0 { Ok(()) } else { Err(Failure::Exit(1)) }
}

/// The jobs, once all of them are final.
pub(crate) async fn final_jobs(client: &mut Jobs, ids: Vec<u64>) -> Result<Vec<v1::Job>, Failure> {
    let mut away = Away::default();
    loop {
        let request = v1::WaitRequest { ids: ids.clone(), timeout_ms: WAIT_MS };
        match client.wait(request).await.map(Response::into_inner) {
            Ok(response) if response.all_final => return Ok(response.jobs),
            Ok(_) => away.is_over(),
            Err(status) => away.bear(&status).await?,
        }
    }
}

/// Submits a command that somebody waits for, shows its output, and ends as it ends.
pub(crate) async fn run(options: &RunOptions, target: &Target) -> Result<(), Failure> {
    let mut client = target.jobs().await?;
    let mut spec = options.job.spec(target.now_ms().await?)?;
    spec.on_demand = true;
    let request = v1::SubmitRequest { jobs: vec![spec], ..v1::SubmitRequest::default() };
    let jobs = send(&mut client, request).await?;
    let Some(id) = jobs.first().map(|job| job.id) else { return Ok(()) };
    let ran = ran(&mut client, id, options.json).await;
    ran.map_err(|failure| away::submitted(&jobs, &failure))
}

/// Shows a job's output, and ends as it ends.
async fn ran(client: &mut Jobs, id: u64, json: bool) -> Result<(), Failure> {
    logs::follow(client, id, json).await?;
    let ended = final_jobs(client, vec![id]).await?;
    let Some(job) = ended.first() else { return Ok(()) };
    if json {
        print::data(&proto::json::job(job).to_string())?;
    }
    if job.state() == v1::State::Succeeded {
        return Ok(());
    }
    if !json {
        print::note(&describe(job));
    }
    let code = job.exit_code.and_then(|code| u8::try_from(code).ok()).filter(|code| *code != 0);
    Err(Failure::Exit(code.unwrap_or(1)))
}
