//! One page for people to keep, with its pictures beside it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use model::Fixed;
use serde_json::{Value, json};
use sim::report::{self, Picture, Run, Table};
use sim::{Bounds, Fleet, Workload};

use super::frontier::Frontier;
use super::run::Outcome;
use super::{Options, show};
use crate::print::{Failure, count};

/// What a report is made of.
pub(super) struct Report {
    title: String,
    notes: Vec<String>,
    tables: Vec<Table>,
    pictures: Vec<Picture>,
}

impl Report {
    pub(super) fn new(
        options: &Options,
        (workload, fleet): (&Workload, &Fleet),
        bounds: &Bounds,
        outcomes: &[Outcome],
    ) -> Self {
        let titles: Vec<String> = outcomes.iter().map(Outcome::title).collect();
        let runs: Vec<Run<'_>> = titles
            .iter()
            .zip(outcomes)
            .map(|(title, outcome)| Run { name: title, replay: &outcome.replay })
            .collect();
        Self {
            title: format!("What would have happened: {}", options.source.name()),
            notes: notes(options, workload, fleet),
            tables: tables(bounds, outcomes),
            pictures: report::pictures(workload, fleet, &runs),
        }
    }

    /// With what else there is to say, after the first note.
    pub(super) fn noting(mut self, notes: &[String]) -> Self {
        let after = self.notes.len().min(1);
        self.notes.splice(after..after, notes.iter().cloned());
        self
    }

    /// With a table and pictures of the frontier before all others.
    pub(super) fn with_frontier(mut self, frontier: &Frontier, outcomes: &[Outcome]) -> Self {
        let (header, rows) = frontier.cells(outcomes);
        self.tables.insert(0, Table { title: "Frontier".to_owned(), header, rows });
        self.pictures.splice(0..0, frontier.pictures(outcomes));
        self
    }

    /// Writes the page and the pictures; where the page is.
    pub(super) fn write(&self, folder: &Path) -> Result<PathBuf, Failure> {
        let cannot = || format!("cannot make `{}`", folder.display());
        fs::create_dir_all(folder).with_context(cannot)?;
        for picture in &self.pictures {
            super::write(&folder.join(format!("{}.svg", picture.name)), &picture.svg)?;
        }
        let path = folder.join("report.html");
        super::write(&path, &self.page())?;
        Ok(path)
    }

    fn page(&self) -> String {
        report::page(&self.title, &self.notes, &self.tables, &self.pictures)
    }

    /// The parts of it, and the page that they make.
    pub(super) fn json(&self) -> Value {
        let table = |table: &Table| {
            let Table { title, header, rows } = table;
            json!({ "title": title, "header": header, "rows": rows })
        };
        let picture = |picture: &Picture| {
            json!({
                "name": picture.name,
                "title": picture.title,
                "note": picture.note,
                "svg": picture.svg,
            })
        };
        json!({
            "title": self.title,
            "notes": self.notes,
            "tables": self.tables.iter().map(table).collect::<Vec<_>>(),
            "pictures": self.pictures.iter().map(picture).collect::<Vec<_>>(),
            "page": self.page(),
        })
    }
}

fn tables(bounds: &Bounds, outcomes: &[Outcome]) -> Vec<Table> {
    let table = |title: &str, (header, rows): show::Cells| Table {
        title: title.to_owned(),
        header: header.into_iter().map(ToOwned::to_owned).collect(),
        rows,
    };
    let mut tables = vec![
        table("Policies", show::policies(bounds, outcomes)),
        table("By tenant, type and mode", show::parts(outcomes)),
    ];
    let extras = show::extras(bounds, outcomes);
    if extras.0.len() > 1 {
        tables.insert(1, table("Against the bounds", extras));
    }
    tables
}

/// A length of time in a unit that suits it.
fn over(ms: i64) -> String {
    let (unit, length) = match ms {
        ..120_000 => ("seconds", 1_000),
        120_000..7_200_000 => ("minutes", 60_000),
        7_200_000..172_800_000 => ("hours", 3_600_000),
        _ => ("days", 86_400_000),
    };
    format!("{:.1} {unit}", Fixed::ONE.scale(ms, length).to_f64())
}

fn notes(options: &Options, workload: &Workload, fleet: &Fleet) -> Vec<String> {
    let over = over(workload.last_arrival().0);
    let mut notes = vec![
        format!(
            "{} of {} over {over}, on {} with {}. The source of a preset's estimates stands after \
             the colon of its name.",
            count(workload.jobs.len(), "job"),
            count(workload.tenants.len(), "tenant"),
            count(fleet.workers.len(), "worker"),
            count(fleet.slots(), "slot"),
        ),
        "Waits are in seconds, from arrival to the start of the attempt that ended the job. \
         Slowdown is how many times longer a job took than it ran, jobs below 10 s counted as \
         10 s. Used is the part of all slot time up to the last arrival. Shares, the Jain index \
         and lag (slot-seconds) are over the time in which every tenant had something waiting. \
         The last row is what no schedule can beat; × is how many times that it was."
            .to_owned(),
    ];
    if workload.bad.count > 0 {
        let bad = &workload.bad;
        notes.push(format!("Left out: {}: {bad}.", count(bad.count, "bad row")));
    }
    if options.policy.len() + options.compare.len() > report::RUNS_MAX {
        notes.push(format!("Only the first {} policies are drawn.", report::RUNS_MAX));
    }
    notes
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_short_history_is_not_told_in_hours() {
        let over = super::over;
        assert_eq!((over(0).as_str(), over(36_000).as_str()), ("0.0 seconds", "36.0 seconds"));
        assert_eq!(
            (over(5_400_000).as_str(), over(7_200_000).as_str()),
            ("90.0 minutes", "2.0 hours")
        );
        assert_eq!(over(864_000_000), "10.0 days");
    }
}
