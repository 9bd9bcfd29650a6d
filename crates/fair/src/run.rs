//! Plays the scenarios of the table, several at once, and prints a row for each as it ends.

use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use cluster::Cluster;
use faults::Chance;
use tokio::sync::{Mutex, Semaphore, mpsc};
use tokio::task::JoinSet;

use crate::Error;
use crate::play::play;
use crate::scenario::{Scenario, Store};
use crate::stage::Stage;
use crate::table::{QUICK, table};
use crate::verdict::{Outcome, Report, header};

/// How long one scenario may take in all, on a busy machine.
const SCENARIO: Duration = Duration::from_mins(5);

/// The scenarios to play, and the program.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The `maitre` program.
    pub program: PathBuf,
    /// The directory that gets one directory for each scenario.
    pub dir: PathBuf,
    /// Names of the scenarios. Empty means all.
    pub only: Vec<String>,
    /// Whether to play only the scenarios for CI.
    pub extent: Extent,
    /// Scenarios that are played at once.
    pub at_once: usize,
    /// A policy to set before the steps of each scenario. `None` leaves the default.
    pub policy: Option<String>,
}

/// Which part of the table is played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// All of it.
    Whole,
    /// The scenarios for CI.
    Quick,
}

/// Plays them. Answers whether all are well.
pub fn run(plan: Plan, print: impl Fn(String)) -> Result<bool, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(Error::system("start a runtime"))?;
    tokio::task::LocalSet::new().block_on(&runtime, play_all(plan, print))
}

async fn play_all(plan: Plan, print: impl Fn(String)) -> Result<bool, Error> {
    let scenarios = chosen(&plan)?;
    let is_shared = |scenario: &Scenario| matches!(scenario.store, Store::Postgres(_));
    let cluster = if cluster::is_there() && scenarios.iter().any(is_shared) {
        Some(tokio::task::spawn_blocking(Cluster::shared).await??)
    } else {
        None
    };
    let played = Rc::new(Played {
        seats: Semaphore::new(plan.at_once),
        chance: Mutex::new(Chance::new(Chance::seed())),
        cluster,
        plan,
    });
    print(header());
    let (send, mut reports) = mpsc::unbounded_channel();
    let mut tasks = JoinSet::new();
    for scenario in scenarios {
        let (played, send) = (Rc::clone(&played), send.clone());
        tasks.spawn_local(async move {
            let report = played.report(&scenario).await;
            // The receiver is dropped only if printing failed.
            let _ = send.send(report);
        });
    }
    drop(send);
    let mut broken: Vec<Report> = Vec::new();
    let mut n_reports = 0;
    while let Some(report) = reports.recv().await {
        n_reports += 1;
        print(report.rows());
        if !report.is_well() {
            broken.push(report);
        }
    }
    while let Some(ended) = tasks.join_next().await {
        ended?;
    }
    for report in &broken {
        print(format!("\n{}", report.details().trim_end()));
    }
    print(format!("\n{n_reports} scenarios, {} not held", broken.len()));
    Ok(broken.is_empty())
}

/// Everything that scenarios share when they are played at once.
struct Played {
    plan: Plan,
    seats: Semaphore,
    /// One source, so that two scenarios never draw the same port.
    chance: Mutex<Chance>,
    cluster: Option<Cluster>,
}

impl Played {
    async fn report(&self, scenario: &Scenario) -> Report {
        let _seat = self.seats.acquire().await;
        let is_shared = matches!(scenario.store, Store::Postgres(_));
        let outcome = if is_shared && self.cluster.is_none() {
            Outcome::Skipped
        } else {
            let late = || faults::Error::Late {
                what: format!("`{}` comes to its end", scenario.name),
                within: SCENARIO,
            };
            let played = tokio::time::timeout(SCENARIO, self.play(scenario)).await;
            played.unwrap_or_else(|_| Err(late().into())).unwrap_or_else(Outcome::Stuck)
        };
        Report { name: scenario.name, claim: scenario.claim, outcome }
    }

    async fn play(&self, scenario: &Scenario) -> Result<Outcome, Error> {
        let dir = self.plan.dir.join(scenario.name);
        let mut chance = self.chance.lock().await.branch();
        let place = (self.plan.program.as_path(), dir.as_path());
        let mut stage = Stage::build(place, scenario, self.cluster.as_ref(), &mut chance).await?;
        if let Some(policy) = &self.plan.policy {
            stage.tell(&["policy", policy]).await?;
        }
        let findings = play(&mut stage, scenario).await?;
        Ok(Outcome::Played(findings, stage.panics()))
    }
}

/// The scenarios that the plan asks for, in the order of the table.
fn chosen(plan: &Plan) -> Result<Vec<Scenario>, Error> {
    let all = table();
    if let Some(name) = plan.only.iter().find(|name| all.iter().all(|one| one.name != **name)) {
        let names: Vec<&str> = all.iter().map(|scenario| scenario.name).collect();
        return Err(Error::Unknown { name: name.clone(), all: names.join(", ") });
    }
    let is_chosen = |scenario: &Scenario| {
        let is_named = plan.only.iter().any(|name| name == scenario.name);
        match plan.extent {
            Extent::Whole => plan.only.is_empty() || is_named,
            Extent::Quick => QUICK.contains(&scenario.name),
        }
    };
    Ok(all.into_iter().filter(is_chosen).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(only: &[&str], extent: Extent) -> Plan {
        Plan {
            program: PathBuf::new(),
            dir: PathBuf::new(),
            only: only.iter().map(|name| (*name).to_owned()).collect(),
            extent,
            at_once: 1,
            policy: None,
        }
    }

    #[test]
    fn plan_without_names_plays_whole_table() {
        assert_eq!(chosen(&plan(&[], Extent::Whole)).unwrap().len(), table().len());
    }

    #[test]
    fn every_scenario_for_ci_is_in_table() {
        assert_eq!(chosen(&plan(&[], Extent::Quick)).unwrap().len(), QUICK.len());
    }

    #[test]
    fn name_that_table_lacks_is_refused_with_all_names() {
        let error = chosen(&plan(&["no-such"], Extent::Whole)).unwrap_err().to_string();
        assert!(table().iter().all(|scenario| error.contains(scenario.name)), "{error}");
    }
}
