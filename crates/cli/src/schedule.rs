//! `maitre schedule`: jobs that recur.

use clap::{Args, Subcommand};
use proto::v1;
use serde_json::{Value, json};

use crate::client::{Target, refused};
use crate::print::{self, Failure};
use crate::settings::Length;
use crate::spec::{JobOptions, unsigned};
use crate::view;

/// Options of `maitre schedule`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  maitre schedule add n --cron '0 3 * * *' --zone Asia/Tokyo -- ./backup.sh
  maitre schedule add probe --every 30s --catch-up none -- ./probe.sh
  maitre schedule list
  maitre schedule pause n
  maitre schedule run n
  maitre schedule remove n")]
pub(crate) struct Options {
    #[command(subcommand)]
    what: What,
    /// For machines.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum What {
    /// Add a schedule, or change it.
    Add(Box<Add>),
    /// List the schedules.
    List,
    /// Remove a schedule; jobs that it submitted stay.
    Remove(One),
    /// Let it rest; what would be due meanwhile is not caught up with.
    Pause(One),
    /// Let it go on.
    Resume(One),
    /// Submit its job now, besides all that is due.
    Run(One),
}

/// One schedule.
#[derive(Args)]
struct One {
    /// What it is called.
    name: String,
}

/// When, and what.
#[derive(Args)]
struct Add {
    /// What it is called.
    name: String,
    /// A cron expression: minute, hour, day, month, weekday; with seconds before them if you like.
    #[arg(long, value_name = "EXPRESSION", required_unless_present = "every")]
    cron: Option<String>,
    /// An interval, from now on.
    #[arg(long, value_name = "LENGTH", conflicts_with = "cron")]
    every: Option<Length>,
    /// By whose clocks: an IANA name such as `Europe/Berlin`.
    #[arg(long, value_name = "ZONE", default_value = "UTC")]
    zone: String,
    /// What to do about moments that nobody saw: none, one (the last), all (the latest).
    #[arg(long, value_name = "WHICH", default_value = "one")]
    catch_up: String,
    /// With `--catch-up all`: at most so many.
    #[arg(long, value_name = "N", default_value_t = 10)]
    catch_up_max: u32,
    #[command(flatten)]
    job: JobOptions,
}

/// Adds, lists, removes, pauses, resumes or runs.
pub(crate) async fn run(options: &Options, target: &Target) -> Result<(), Failure> {
    let mut client = target.schedules().await?;
    match &options.what {
        What::Add(add) => {
            let request = v1::PutScheduleRequest { schedule: Some(add.schedule()?) };
            let response = client.put_schedule(request).await;
            let response = response.map_err(|status| refused(&status))?;
            one(options, target, response.into_inner()).await
        }
        What::List => {
            let response = client.list_schedules(v1::ListSchedulesRequest {}).await;
            list(options, &response.map_err(|status| refused(&status))?.into_inner())
        }
        What::Remove(One { name }) => {
            let request = v1::RemoveScheduleRequest { name: name.clone() };
            let response = client.remove_schedule(request).await;
            let was_there = response.map_err(|status| refused(&status))?.into_inner().was_there;
            if options.json {
                return print::json(&json!({ "schedule": name, "was_there": was_there }));
            }
            let what = if was_there { "is removed" } else { "was not there" };
            print::data(&format!("schedule {name} {what}"))
        }
        What::Pause(one) => pause(options, target, &one.name, true).await,
        What::Resume(one) => pause(options, target, &one.name, false).await,
        What::Run(One { name }) => {
            let request = v1::RunScheduleRequest { name: name.clone() };
            let response = client.run_schedule(request).await;
            let job = response.map_err(|status| refused(&status))?.into_inner().job;
            if options.json {
                return print::json(&json!({ "schedule": name, "job": job }));
            }
            print::data(&format!("schedule {name} submitted job {job}"))
        }
    }
}

impl Add {
    fn schedule(&self) -> Result<v1::Schedule, Failure> {
        Ok(v1::Schedule {
            name: self.name.clone(),
            cron: self.cron.clone().unwrap_or_default(),
            every_ms: self.every.map(unsigned),
            time_zone: self.zone.clone(),
            catch_up: self.catch_up.clone(),
            catch_up_max: self.catch_up_max,
            paused: false,
            // Delays count from the moment that is due.
            job: Some(self.job.spec(0)?),
        })
    }
}

async fn pause(
    options: &Options,
    target: &Target,
    name: &str,
    paused: bool,
) -> Result<(), Failure> {
    let request = v1::PauseScheduleRequest { name: name.to_owned(), paused };
    let response = target.schedules().await?.pause_schedule(request).await;
    let response = response.map_err(|status| refused(&status))?;
    one(options, target, response.into_inner()).await
}

async fn one(
    options: &Options,
    target: &Target,
    response: v1::ScheduleResponse,
) -> Result<(), Failure> {
    let status = response.schedule.unwrap_or_default();
    if options.json {
        return print::json(&proto::json::schedule(&status));
    }
    let now = target.now_ms().await?;
    let schedule = status.schedule.unwrap_or_default();
    let next = match status.next_ms {
        _ if schedule.paused => "is paused".to_owned(),
        Some(at) => {
            let seconds = (at - now).max(0).saturating_add(999) / 1_000;
            format!("is due in {}", view::length(seconds))
        }
        None => "is never due again".to_owned(),
    };
    print::data(&format!("schedule {} {next}", schedule.name))
}

fn list(options: &Options, response: &v1::ListSchedulesResponse) -> Result<(), Failure> {
    if options.json {
        return print::json(
            &response.schedules.iter().map(proto::json::schedule).collect::<Vec<Value>>(),
        );
    }
    if response.schedules.is_empty() {
        print::note("no schedules\n\nhint: `maitre schedule add --help` shows how to add one");
        return Ok(());
    }
    let rows = response.schedules.iter().map(|one| row(one, response.now_ms)).collect();
    let header = ["schedule", "when", "zone", "next", "last", "job", "catch up", "type"];
    print::data(&print::table(&header, rows, &[]))
}

fn row(status: &v1::ScheduleStatus, now: i64) -> Vec<String> {
    let schedule = status.schedule.clone().unwrap_or_default();
    let when = match schedule.every_ms {
        Some(ms) => format!("every {}", view::length(i64::try_from(ms / 1_000).unwrap_or(0))),
        None => schedule.cron.clone(),
    };
    let ago = |at: Option<i64>| at.map(|at| view::ago(at, now)).unwrap_or_default();
    let next = if schedule.paused { "paused".to_owned() } else { ago(status.next_ms) };
    let job = if status.last_job == 0 { String::new() } else { status.last_job.to_string() };
    let kind = schedule.job.map(|job| job.r#type).unwrap_or_default();
    let last = ago(status.last_ms);
    vec![schedule.name, when, schedule.time_zone, next, last, job, schedule.catch_up, kind]
}
