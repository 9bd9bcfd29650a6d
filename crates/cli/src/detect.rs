//! `maitre detect`, `activity` and `context`: work that workers find, now and lately.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use proto::{json, v1};
use serde_json::json;

use crate::client::{Target, refused};
use crate::filter;
use crate::print::{self, Failure};
use crate::view;

/// How often a run is looked at while somebody waits for it.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Options of `maitre detect`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  maitre detect vacuum            as soon as its lane is free
  maitre detect vacuum --wait     and say what came of it
  maitre detect vacuum --cancel   call its run off, with its jobs")]
pub(crate) struct Options {
    /// The type.
    #[arg(value_name = "TYPE")]
    kind: String,
    /// Wait until the run and all its jobs are done.
    #[arg(long)]
    wait: bool,
    /// Call off the run that is under way.
    #[arg(long, conflicts_with = "wait")]
    cancel: bool,
    /// For machines.
    #[arg(long)]
    json: bool,
}

/// Asks for a run now, or calls one off.
pub(crate) async fn detect(options: &Options, target: &Target) -> Result<(), Failure> {
    let kind = &options.kind;
    if options.cancel {
        return cancel(options, target).await;
    }
    let before = if options.wait { runs(target, kind).await? } else { Vec::new() };
    let request = v1::DetectRequest { r#type: kind.clone() };
    let response = target.detection().await?.detect(request).await;
    let is_running = response.map_err(|status| refused(&status))?.into_inner().is_running;
    if !options.wait {
        if options.json {
            return print::json(&json!({ "type": kind, "is_running": is_running }));
        }
        let what = if is_running { "follows the run that is under way" } else { "is asked for" };
        return print::data(&format!("a run of {kind} {what}; see `maitre types history {kind}`"));
    }
    let run = loop {
        let is_new = |run: &v1::RunRecord| run.asked && !before.iter().any(|b| b.run == run.run);
        if let Some(run) = runs(target, kind).await?.into_iter().find(is_new) {
            break run;
        }
        tokio::time::sleep(LOOK_EVERY).await;
    };
    if options.json {
        return print::json(&json::run(&run));
    }
    print::data(&format!(
        "run {} {}: {} proposed, {} taken; {} jobs succeeded, {} failed, {} cancelled{}",
        run.run,
        run.status,
        run.proposed,
        run.taken,
        run.succeeded,
        run.failed,
        run.cancelled,
        if run.error.is_empty() { String::new() } else { format!("\n{}", run.error) },
    ))
}

async fn cancel(options: &Options, target: &Target) -> Result<(), Failure> {
    let request = v1::CancelRunRequest { r#type: options.kind.clone() };
    let response = target.detection().await?.cancel_run(request).await;
    let run = response.map_err(|status| refused(&status))?.into_inner().run;
    if options.json {
        return print::json(&json!({ "type": options.kind, "run": run }));
    }
    print::data(&match run.as_str() {
        "" => format!("no run of {} is under way", options.kind),
        run => format!("run {run} of {} is called off", options.kind),
    })
}

async fn runs(target: &Target, kind: &str) -> Result<Vec<v1::RunRecord>, Failure> {
    let request = v1::RunsRequest { r#type: kind.to_owned() };
    let response = target.detection().await?.runs(request).await;
    Ok(response.map_err(|status| refused(&status))?.into_inner().runs)
}

/// Options of `maitre activity`.
#[derive(Args)]
pub(crate) struct ActivityOptions {
    /// One kind: detection, group, setting, descriptor, stale, lane, schedule, context.
    #[arg(long)]
    kind: Option<String>,
    /// At most so many.
    #[arg(long, short = 'n', default_value_t = 50)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    max: u32,
    /// Older than this number, the last of the page before.
    #[arg(long)]
    before: Option<u64>,
    /// For machines.
    #[arg(long)]
    json: bool,
}

/// Lists what happened.
pub(crate) async fn activity(options: &ActivityOptions, target: &Target) -> Result<(), Failure> {
    let response = options.newest(target).await?;
    if options.json {
        return print::json(&json::activity(&response));
    }
    let now = target.now_ms().await?;
    let row = |one: &v1::ActivityEntry| {
        let words = [&one.kind, &one.who, &one.about, &one.what, &one.why];
        let mut row = vec![view::ago(one.at_ms, now)];
        row.extend(words.into_iter().cloned());
        row
    };
    let rows = response.entries.iter().map(row).collect();
    print::data(&print::table(&["when", "kind", "who", "about", "what", "why"], rows, &[]))?;
    if response.next_before > 0 {
        print::note(&format!("more: maitre activity --before {}", response.next_before));
    }
    Ok(())
}

impl ActivityOptions {
    /// What happened, newest first, in as many pages as it takes.
    async fn newest(&self, target: &Target) -> Result<v1::ActivityResponse, Failure> {
        let mut detection = target.detection().await?;
        let next_before = self.before.unwrap_or(0);
        let mut found = v1::ActivityResponse { entries: Vec::new(), next_before };
        loop {
            let request = v1::ActivityRequest {
                kind: self.kind.clone().unwrap_or_default(),
                before: found.next_before,
                page_size: filter::page_room(self.max, found.entries.len()),
            };
            let older = detection.activity(request).await.map_err(|status| refused(&status))?;
            let older = older.into_inner();
            found.entries.extend(older.entries);
            found.next_before = older.next_before;
            if found.next_before == 0 || filter::page_room(self.max, found.entries.len()) == 0 {
                return Ok(found);
            }
        }
    }
}

/// Options of `maitre context`.
#[derive(Args)]
pub(crate) struct ContextOptions {
    #[command(subcommand)]
    what: Option<ContextWhat>,
    /// For machines.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum ContextWhat {
    /// Publish a JSON object for all workers.
    Set {
        /// A file, or the object itself.
        document: String,
    },
    /// Let a worker publish, and no other.
    Allow {
        /// The worker; nothing means none.
        worker: Option<String>,
    },
}

/// Shows or publishes what all workers are told.
pub(crate) async fn context(options: &ContextOptions, target: &Target) -> Result<(), Failure> {
    let mut detection = target.detection().await?;
    let response = match &options.what {
        None => detection.get_context(v1::GetContextRequest {}).await,
        Some(ContextWhat::Set { document }) => {
            let json = Some(text(document)?);
            detection.put_context(v1::PutContextRequest { json, publisher: None }).await
        }
        Some(ContextWhat::Allow { worker }) => {
            let publisher = Some(worker.clone().unwrap_or_default());
            detection.put_context(v1::PutContextRequest { json: None, publisher }).await
        }
    };
    let context = response.map_err(|status| refused(&status))?.into_inner();
    if options.json {
        return print::json(&json::context(&context));
    }
    let who = match context.publisher.as_str() {
        "" => "operators may publish".to_owned(),
        worker => format!("operators and worker {worker} may publish"),
    };
    print::data(&format!("version {}; {who}\n{}", context.version, context.json))
}

fn text(document: &str) -> Result<String, Failure> {
    if document.trim_start().starts_with('{') {
        return Ok(document.to_owned());
    }
    let path = PathBuf::from(document);
    let read = std::fs::read_to_string(&path).with_context(|| format!("read `{document}`"));
    read.map_err(Failure::Other)
}
