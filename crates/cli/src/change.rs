//! `maitre cancel`, `retry`, `hold`, `release` and `priority`: jobs that people change.

use std::fmt::Write as _;

use clap::Args;
use indicatif::ProgressBar;
use model::State;
use model::maxima::IDS_MAX;
use proto::v1;
use serde_json::{Value, json};

use crate::client::{Jobs, Target, job_number, refused};
use crate::filter::{self, FilterOptions};
use crate::print::{self, Failure};

/// Options of commands that change jobs.
#[derive(Args, Default)]
pub(crate) struct Options {
    /// The jobs; or say by filters which.
    #[arg(value_parser = job_number)]
    ids: Vec<u64>,
    /// Every job that this can change.
    #[arg(long, conflicts_with = "ids")]
    all: bool,
    /// Do not ask before many are changed.
    #[arg(long, short)]
    yes: bool,
    /// For machines.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    filter: FilterOptions,
}

impl Options {
    /// These jobs, or all that a filter lets through.
    pub(crate) fn of(ids: &[u64], filter: FilterOptions, yes: bool, json: bool) -> Self {
        Self { ids: ids.to_vec(), filter, yes, json, all: false }
    }
}

/// Options of `maitre priority`.
#[derive(Args)]
pub(crate) struct PriorityOptions {
    /// Higher is sooner, from -1000 to 1000.
    #[arg(allow_negative_numbers = true)]
    priority: i32,
    #[command(flatten)]
    jobs: Options,
}

/// What is done to jobs.
#[derive(Clone, Copy)]
enum Change {
    Cancel,
    Retry,
    Hold,
    Release,
    Priority(i32),
}

/// Calls jobs off.
pub(crate) async fn cancel(options: &Options, target: &Target) -> Result<(), Failure> {
    change(options, target, Change::Cancel).await
}

/// Takes up jobs again.
pub(crate) async fn retry(options: &Options, target: &Target) -> Result<(), Failure> {
    change(options, target, Change::Retry).await
}

/// Keeps jobs in the queue.
pub(crate) async fn hold(options: &Options, target: &Target) -> Result<(), Failure> {
    change(options, target, Change::Hold).await
}

/// Lets jobs go again.
pub(crate) async fn release(options: &Options, target: &Target) -> Result<(), Failure> {
    change(options, target, Change::Release).await
}

/// Gives jobs another priority.
pub(crate) async fn priority(options: &PriorityOptions, target: &Target) -> Result<(), Failure> {
    change(&options.jobs, target, Change::Priority(options.priority)).await
}

async fn change(options: &Options, target: &Target, change: Change) -> Result<(), Failure> {
    let filter = options.filter.wire()?;
    let is_filtered = options.all || filter != v1::JobFilter::default();
    match (options.ids.is_empty(), is_filtered) {
        (true, false) => Err(Failure::Input {
            error: "no job is named".to_owned(),
            hint: Some("name jobs by their ids, by filters such as `--tenant`, or `--all`".into()),
        }),
        (false, true) => Err(Failure::Input {
            error: "jobs are named both by their ids and by filters".to_owned(),
            hint: Some("use one or the other".to_owned()),
        }),
        (false, false) => {
            let changes = change.ask(&mut target.jobs().await?, &options.ids).await?;
            tell_each(options, change, &changes)
        }
        (true, true) => change_filtered(options, target, change, filter).await,
    }
}

/// Finds the jobs, says how many they are, asks, and changes them a batch at a time.
async fn change_filtered(
    options: &Options,
    target: &Target,
    change: Change,
    mut filter: v1::JobFilter,
) -> Result<(), Failure> {
    if filter.states.is_empty() {
        filter.states = change.states().iter().map(|one| v1::State::from(*one).into()).collect();
    }
    let mut client = target.jobs().await?;
    let found = filter::all(&mut client, &filter).await?;
    let (ids, what) = (found.iter().map(|(id, _)| *id).collect::<Vec<u64>>(), preview(&found));
    if !ids.is_empty() && !options.yes {
        print::confirm(&format!("{} {what}?", change.verb()))?;
    }
    let changes = change.ask(&mut client, &ids).await?;
    let (changed, unchanged): (Vec<_>, Vec<_>) = changes.iter().partition(|one| one.changed);
    if options.json {
        let unchanged: Vec<Value> = unchanged.into_iter().map(machine).collect();
        let (matched, changed) = (ids.len(), changed.len());
        return print::json(
            &json!({ "matched": matched, "changed": changed, "unchanged": unchanged }),
        );
    }
    let mut said = format!("{what}: {} {}", changed.len(), change.done());
    if let Some(first) = unchanged.first() {
        let (n, id, problem) = (unchanged.len(), first.id, &first.problem);
        let _never_fails = write!(said, ", {n} unchanged (job {id}: {problem})");
    }
    print::data(&said)
}

/// How many, and in which states.
fn preview(found: &[(u64, v1::State)]) -> String {
    let states = State::ALL.iter().filter_map(|state| {
        let wire = v1::State::from(*state);
        let n = found.iter().filter(|(_, state)| *state == wire).count();
        (n > 0).then(|| format!("{n} {}", state.name()))
    });
    let states = states.collect::<Vec<String>>().join(", ");
    match found.len() {
        0 => "0 jobs".to_owned(),
        1 => format!("1 job ({states})"),
        n => format!("{n} jobs ({states})"),
    }
}

impl Change {
    const fn verb(self) -> &'static str {
        match self {
            Self::Cancel => "cancel",
            Self::Retry => "retry",
            Self::Hold => "hold",
            Self::Release => "release",
            Self::Priority(_) => "change the priority of",
        }
    }

    fn done(self) -> String {
        match self {
            Self::Cancel => "cancelled".to_owned(),
            Self::Retry => "queued again".to_owned(),
            Self::Hold => "on hold".to_owned(),
            Self::Release => "released".to_owned(),
            Self::Priority(priority) => format!("with priority {priority}"),
        }
    }

    /// States in which this changes anything.
    const fn states(self) -> &'static [State] {
        match self {
            Self::Cancel => &[State::Blocked, State::Queued, State::Claimed, State::Running],
            Self::Retry => &[State::Failed, State::Cancelled],
            Self::Hold | Self::Release | Self::Priority(_) => &[State::Blocked, State::Queued],
        }
    }

    async fn ask(self, client: &mut Jobs, ids: &[u64]) -> Result<Vec<v1::Change>, Failure> {
        let bar = ProgressBar::new(u64::try_from(ids.len()).unwrap_or(u64::MAX));
        let mut changes = Vec::with_capacity(ids.len());
        for ids in ids.chunks(IDS_MAX) {
            let answer = self.ask_some(client, ids.to_vec()).await;
            changes.extend(answer.map_err(|status| refused(&status))?.into_inner().changes);
            bar.inc(u64::try_from(ids.len()).unwrap_or(u64::MAX));
        }
        bar.finish_and_clear();
        Ok(changes)
    }

    async fn ask_some(
        self,
        client: &mut Jobs,
        ids: Vec<u64>,
    ) -> Result<tonic::Response<v1::ChangeResponse>, tonic::Status> {
        use v1::amend_request::Change as Amend;
        let amend = match self {
            Self::Cancel => return client.cancel(v1::CancelRequest { ids }).await,
            Self::Retry => return client.retry(v1::RetryRequest { ids }).await,
            Self::Hold => Amend::OnHold(true),
            Self::Release => Amend::OnHold(false),
            Self::Priority(priority) => Amend::Priority(priority),
        };
        client.amend(v1::AmendRequest { ids, change: Some(amend) }).await
    }
}

/// Says of each job what became of it; exit code 1 if one was not changed.
fn tell_each(options: &Options, done: Change, changes: &[v1::Change]) -> Result<(), Failure> {
    if options.json {
        print::json(&changes.iter().map(machine).collect::<Vec<Value>>())?;
    } else {
        let lines = changes.iter().map(|change| {
            let is_live = matches!(change.state(), v1::State::Claimed | v1::State::Running);
            match (change.changed, is_live && matches!(done, Change::Cancel)) {
                (true, true) => format!("job {} stopping", change.id),
                (true, false) => format!("job {} {}", change.id, done.done()),
                (false, _) => format!("job {} unchanged: {}", change.id, change.problem),
            }
        });
        print::data(&lines.collect::<Vec<String>>().join("\n"))?;
    }
    if changes.iter().all(|change| change.changed) { Ok(()) } else { Err(Failure::Exit(1)) }
}

fn machine(change: &v1::Change) -> Value {
    json!({
        "id": change.id,
        "changed": change.changed,
        "state": proto::json::state_name(change.state()),
        "problem": change.problem,
    })
}
