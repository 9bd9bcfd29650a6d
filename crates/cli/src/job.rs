//! `maitre jobs`, `maitre job` and `maitre why`: what became of jobs.

use clap::Args;
use proto::v1;
use serde_json::json;

use crate::client::{Jobs, Target, job_number, refused};
use crate::filter::{self, FilterOptions};
use crate::print::{self, Failure};
use crate::setting;
use crate::view;

/// Options of `maitre jobs`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  maitre jobs --state queued,blocked
  maitre jobs --tenant acme --type pdf --cause exhausted")]
pub(crate) struct ListOptions {
    /// Older than this job: the next page.
    #[arg(long, value_name = "ID", default_value_t = 0, hide_default_value = true)]
    before: u64,
    /// At most so many.
    #[arg(long, short = 'n', default_value_t = 20)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    max: u32,
    /// For machines.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    filter: FilterOptions,
}

/// What else helps whoever asks why a job waits.
pub(crate) const WHY_HELP: &str = "\
Shows the reason with its evidence and what would change it, then all other
reasons that apply, the nearest workers and what each lacks, how many jobs go
before it and, if the past says so, from when to when it starts. Each reason has
a section in docs/reasons.md.

Examples:
  maitre jobs --state queued,blocked
  maitre why 17
  maitre top --once
  maitre submit --dry-run --need gpu=a100 -- ./train.sh";

/// Options of commands about one job.
#[derive(Args)]
pub(crate) struct OneOptions {
    /// The job.
    #[arg(value_parser = job_number)]
    id: u64,
    /// For machines.
    #[arg(long)]
    json: bool,
}

/// Lists jobs, newest first.
pub(crate) async fn list(options: &ListOptions, target: &Target) -> Result<(), Failure> {
    let (mut client, wanted) = (target.jobs().await?, options.filter.wire()?);
    let response = filter::newest(&mut client, &wanted, options.before, options.max).await?;
    if options.json {
        let jobs: Vec<serde_json::Value> = response.jobs.iter().map(proto::json::job).collect();
        return print::json(&json!({ "jobs": jobs, "next_before": response.next_before }));
    }
    if response.jobs.is_empty() {
        print::note("no jobs");
        return Ok(());
    }
    let now = target.now_ms().await?;
    let rows = response.jobs.iter().map(|job| row(job, now)).collect();
    let header = ["job", "tenant", "type", "state", "priority", "tries", "age", "worker", "error"];
    print::data(&print::table(&header, rows, &[0, 4, 5]))?;
    if response.next_before != 0 {
        let words = std::env::args().skip(1);
        print::note(&format!("more: {}", next_page(words, response.next_before)));
    }
    Ok(())
}

/// The command that lists the page after the one that these words asked for.
fn next_page(words: impl Iterator<Item = String>, before: u64) -> String {
    let mut said = vec!["maitre".to_owned()];
    let mut words = words;
    while let Some(word) = words.next() {
        if word == "--before" {
            words.next();
        } else if !word.starts_with("--before=") {
            let is_plain = !word.contains(|c: char| c.is_whitespace() || "'\"$*;&|".contains(c));
            said.push(if is_plain { word } else { format!("'{}'", word.replace('\'', r"'\''")) });
        }
    }
    format!("{} --before {before}", said.join(" "))
}

fn row(job: &v1::Job, now: i64) -> Vec<String> {
    let spec = job.spec.clone().unwrap_or_default();
    vec![
        job.id.to_string(),
        spec.tenant,
        spec.r#type,
        match job.progress.as_ref().filter(|_| job.finished_ms.is_none()) {
            Some(progress) => format!("{}, {}", view::state(job), view::progress(progress)),
            None => view::state(job),
        },
        job.priority.to_string(),
        job.counts.unwrap_or_default().attempts.to_string(),
        view::length((now - job.created_ms).max(0) / 1_000),
        job.worker.clone(),
        job.error.lines().last().unwrap_or_default().to_owned(),
    ]
}

/// A job in a line: how it is, or ended.
pub(crate) fn describe(job: &v1::Job) -> String {
    let worker = Some(&job.worker).filter(|worker| !worker.is_empty());
    let worker = worker.map(|worker| format!(" on {worker}")).unwrap_or_default();
    let length = job.finished_ms.zip(job.ready_ms).map(|(finished, ready)| {
        format!(" after {}", view::length((finished - ready).max(0) / 1_000))
    });
    let error = job.error.lines().last().filter(|_| job.state() != v1::State::Succeeded);
    let error = error.map(|line| format!(": {line}")).unwrap_or_default();
    let (id, state) = (job.id, view::state(job));
    format!("job {id} {state}{worker}{}{error}", length.unwrap_or_default())
}

/// Shows one job: what was asked, where it is, and every attempt.
pub(crate) async fn show(options: &OneOptions, target: &Target) -> Result<(), Failure> {
    let request = v1::GetRequest { id: options.id };
    let response = target.jobs().await?.get(request).await.map_err(|status| refused(&status))?;
    let response = response.into_inner();
    let job = response.job.unwrap_or_default();
    if options.json {
        let mut value = proto::json::job(&job);
        let attempts: Vec<serde_json::Value> =
            response.attempts.iter().map(proto::json::attempt).collect();
        value["past_attempts"] = attempts.into();
        let spec = job.spec.clone().unwrap_or_default();
        value["payload"] = String::from_utf8_lossy(&spec.payload).into();
        return print::json(&value);
    }
    print::data(&print::table(&["field", "value"], fields(&job, target.now_ms().await?), &[]))?;
    if !response.attempts.is_empty() {
        let rows = response.attempts.iter().map(attempt_row).collect();
        let header =
            ["attempt", "worker", "ended as", "ran for", "ram", "cpu", "exit", "why there"];
        print::data(&format!("\n{}", print::table(&header, rows, &[0])))?;
    }
    Ok(())
}

fn fields(job: &v1::Job, now: i64) -> Vec<Vec<String>> {
    let spec = job.spec.clone().unwrap_or_default();
    let payload = String::from_utf8_lossy(&spec.payload).into_owned();
    let result = job.result.as_deref().map(|result| String::from_utf8_lossy(result).into_owned());
    let progress = job.progress.as_ref();
    let progress = progress.map(view::progress);
    let moment = |ms: Option<i64>| ms.map(|ms| view::ago(ms, now));
    let after: Vec<String> = spec.after.iter().map(ToString::to_string).collect();
    let mut labels: Vec<String> =
        spec.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    labels.sort();
    let wanted = spec.needs.iter().map(|(key, any)| format!("{key}={}", any.values.join("|")));
    let amounts = spec.amounts.iter().map(|(name, amount)| format!("{name}={amount}"));
    let mut needs: Vec<String> = wanted.chain(amounts).collect();
    needs.sort();
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let all = [
        ("job", Some(job.id.to_string())),
        ("state", Some(view::state(job))),
        ("tenant", some(&spec.tenant)),
        ("type", some(&spec.r#type)),
        ("payload", some(&payload)),
        ("priority", Some(job.priority.to_string())),
        ("pool", some(&spec.pool)),
        ("needs", some(&needs.join(", "))),
        ("slots", (spec.slots > 1).then(|| spec.slots.to_string())),
        ("labels", some(&labels.join(", "))),
        ("after", some(&after.join(", "))),
        ("group", some(&spec.group)),
        ("worker", some(&job.worker)),
        ("progress", progress),
        ("submitted", moment(Some(job.created_ms))),
        ("ready", moment(job.ready_ms)),
        ("started", moment(job.started_ms)),
        ("finished", moment(job.finished_ms)),
        ("next try", moment(job.backoff_until_ms.filter(|at| *at > now))),
        ("exit code", job.exit_code.map(|code| code.to_string())),
        ("error", some(&job.error)),
        ("result", result),
    ];
    all.into_iter().filter_map(|(name, value)| Some(vec![name.to_owned(), value?])).collect()
}

fn attempt_row(attempt: &v1::Attempt) -> Vec<String> {
    let measured = attempt.measured.unwrap_or_default();
    let started = attempt.started_ms.unwrap_or(attempt.claimed_ms);
    vec![
        attempt.number.to_string(),
        attempt.worker.clone(),
        proto::json::ending_name(attempt.ending()).to_owned(),
        format!("{} ms", attempt.ended_ms - started),
        measured.ram_peak_mb.map(|mb| format!("{mb} MB")).unwrap_or_default(),
        measured.cpu_ms.map(|ms| format!("{ms} ms")).unwrap_or_default(),
        attempt.exit_code.map(|code| code.to_string()).unwrap_or_default(),
        attempt.why.clone(),
    ]
}

/// Says why a job waits, or why it is where it is.
pub(crate) async fn why(options: &OneOptions, target: &Target) -> Result<(), Failure> {
    let mut client = target.jobs().await?;
    let request = v1::ExplainRequest { id: options.id };
    let response = client.explain(request).await.map_err(|status| refused(&status))?.into_inner();
    if options.json {
        return print::json(&proto::json::why(&response));
    }
    let state = proto::json::state_name(response.state());
    let mut lines = vec![if response.reason.is_empty() {
        let job = client.get(v1::GetRequest { id: options.id }).await;
        let job = job.map_err(|status| refused(&status))?.into_inner().job.unwrap_or_default();
        let because = Some(&response.detail).filter(|detail| !detail.is_empty());
        let because = because.map(|detail| format!("\n{detail}")).unwrap_or_default();
        format!("{}{because}", describe(&job))
    } else {
        format!("job {} is {state}: {}\n{}", response.id, response.reason, response.detail)
    }];
    if response.reason == model::Reason::TenantPaused.name() {
        lines.push(format!("to resume it: {}", resume(&mut client, options.id, target).await?));
    }
    lines.extend(view::also(&response.checks));
    lines.extend(view::nearest(&response.reason, &response.nearest));
    lines.extend(response.ahead.filter(|_| view::passes(&response.reason)).map(view::ahead));
    let start = view::Start {
        about: response.starts_in_ms,
        min: response.starts_in_min_ms,
        max: response.starts_in_max_ms,
    };
    lines.extend(view::start(start, &response.estimate_basis));
    if !response.why_there.is_empty() {
        let what = if response.state() == v1::State::Queued { "last placed" } else { "placed" };
        lines.push(format!("{what} {}", response.why_there));
    }
    print::prose(&lines.join("\n"))
}

/// The command that lets a job's tenant go on. What is set replaces what was set before, so that
/// all of it is in the command.
async fn resume(client: &mut Jobs, id: u64, target: &Target) -> Result<String, Failure> {
    let job = client.get(v1::GetRequest { id }).await.map_err(|status| refused(&status))?;
    let tenant = job.into_inner().job.and_then(|job| job.spec).unwrap_or_default().tenant;
    let document = setting::of_tenant(&tenant, target).await;
    Ok(match document {
        Ok(mut document) => {
            document["active"] = true.into();
            let document = document.to_string().replace('\'', r"'\''");
            format!("maitre set tenant {tenant} '{document}'")
        }
        // Whoever may not see what is set may not set it either.
        Err(_) => "ask whoever may set tenants".to_owned(),
    })
}
