//! The result of a scenario, as text.

use std::fmt::{self, Display, Formatter, Write as _};
use std::path::PathBuf;

use serde_json::Value;

use crate::Error;
use crate::share::{OutOfTurn, Share, WHOLE};

/// The result of one window.
#[derive(Debug)]
pub(crate) struct Finding {
    pub(crate) shares: Vec<Share>,
    /// A tenant that ran out of jobs in the window.
    pub(crate) idle: Option<String>,
    /// The start that broke the share, and the worst one.
    pub(crate) out_of_turn: Vec<OutOfTurn>,
    pub(crate) evidence: Option<Evidence>,
}

/// Answers of the scheduler from when a tenant lacked most.
#[derive(Debug)]
pub(crate) struct Evidence {
    /// Milliseconds since the window began.
    pub(crate) after_ms: i64,
    pub(crate) tenant: String,
    pub(crate) lacked_ms: i64,
    pub(crate) snapshot: PathBuf,
    /// The answer of `maitre tenants --json`.
    pub(crate) tenants: Value,
    /// The answer of `maitre why` for a waiting job of the tenant.
    pub(crate) why: String,
}

/// The result of one scenario.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) name: &'static str,
    pub(crate) claim: &'static str,
    pub(crate) outcome: Outcome,
}

#[derive(Debug)]
pub(crate) enum Outcome {
    /// All windows were judged. The second list has the panics.
    Played(Vec<Finding>, Vec<String>),
    /// A step failed.
    Stuck(Error),
    /// There is no Postgres.
    Skipped,
}

impl Finding {
    fn verdict(&self) -> &'static str {
        if self.shares.iter().any(|share| !share.is_held()) {
            "BROKEN"
        } else if self.idle.is_some() {
            "NO BACKLOG"
        } else {
            "held"
        }
    }
}

impl Report {
    /// Whether nothing is wrong with it.
    pub(crate) fn is_well(&self) -> bool {
        match &self.outcome {
            Outcome::Played(findings, panics) => {
                panics.is_empty() && findings.iter().all(|finding| finding.verdict() == "held")
            }
            Outcome::Stuck(_) => false,
            Outcome::Skipped => true,
        }
    }

    /// The rows of the table, one for each window.
    pub(crate) fn rows(&self) -> String {
        let findings = match &self.outcome {
            Outcome::Played(findings, _) => findings,
            Outcome::Stuck(error) => return row([self.name, "", "", &format!("STUCK: {error}")]),
            Outcome::Skipped => return row([self.name, "", "", "skipped: no Postgres"]),
        };
        let rows = findings.iter().enumerate().map(|(nth, finding)| {
            let list = |tell: fn(&Share) -> String| {
                finding.shares.iter().map(tell).collect::<Vec<_>>().join("  ")
            };
            let due = list(|share| {
                let (due, allowed) = (part(share.due), part(share.allowed));
                format!("{} {due} ±{allowed}", share.tenant)
            });
            let given = list(|share| format!("{} {}", share.tenant, part(share.given)));
            row([if nth == 0 { self.name } else { "" }, &due, &given, finding.verdict()])
        });
        rows.collect::<Vec<_>>().join("\n")
    }

    /// All that is known of a failure. Empty if the scenario is well.
    pub(crate) fn details(&self) -> String {
        let Outcome::Played(findings, panics) = &self.outcome else { return String::new() };
        let mut text = String::new();
        for (nth, finding) in (1..).zip(findings) {
            let _ = write!(text, "{}", Details { nth, finding });
        }
        for panic in panics {
            let _ = writeln!(text, "  {panic}");
        }
        if text.is_empty() { text } else { format!("{}: {}\n{text}", self.name, self.claim) }
    }
}

/// The first line of the table.
pub(crate) fn header() -> String {
    row(["SCENARIO", "DUE", "GIVEN", "VERDICT"])
}

fn row([name, due, given, verdict]: [&str; 4]) -> String {
    format!("{name:<18} {due:<58} {given:<38} {verdict}").trim_end().to_owned()
}

/// A share in thousandths, as a decimal.
fn part(share: i64) -> String {
    format!("{}.{:03}", share / WHOLE, share % WHOLE)
}

/// Slot-milliseconds as slot-seconds.
fn seconds(ms: i64) -> String {
    format!("{}.{}", ms / 1_000, ms.abs() % 1_000 / 100)
}

struct Details<'a> {
    nth: usize,
    finding: &'a Finding,
}

impl Display for Details<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { nth, finding } = self;
        if let Some(tenant) = &finding.idle {
            writeln!(f, "  window {nth}: {tenant} had no job left, so its share proves nothing")?;
        }
        for share in finding.shares.iter().filter(|share| !share.is_held()) {
            let (tenant, due, given) = (&share.tenant, part(share.due), part(share.given));
            let allowed = part(share.allowed);
            writeln!(
                f,
                "  window {nth}: {tenant} was due {due} ±{allowed}, and was given {given}"
            )?;
        }
        for start in &finding.out_of_turn {
            let OutOfTurn { job, tenant, worker, behind, .. } = start;
            let (after, lacked) = (seconds(start.after_ms), seconds(start.lacked_ms));
            writeln!(
                f,
                "  out of turn by the notes: job {job} of {tenant} started on {worker} {after} s \
                 into the window, when {behind} lacked {lacked} slot-seconds"
            )?;
        }
        let Some(evidence) = &finding.evidence else { return Ok(()) };
        let (after, lacked) = (seconds(evidence.after_ms), seconds(evidence.lacked_ms));
        let tenant = &evidence.tenant;
        writeln!(
            f,
            "  the scheduler said {after} s into the window, when {tenant} lacked {lacked} \
             slot-seconds:"
        )?;
        for of in evidence.tenants["tenants"].as_array().into_iter().flatten() {
            let tenant = of["tenant"].as_str().unwrap_or_default();
            writeln!(
                f,
                "    {tenant}: weight {}, {} queued, {} running, {} slots",
                of["weight"], of["queued"], of["running"], of["slots"]
            )?;
        }
        evidence.why.lines().try_for_each(|line| writeln!(f, "    why: {line}"))?;
        writeln!(f, "    snapshot: {}", evidence.snapshot.display())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(tenant: &str, due: i64, given: i64) -> Share {
        Share { tenant: tenant.to_owned(), due, given, allowed: 60 }
    }

    fn report(shares: Vec<Share>, idle: Option<&str>) -> Report {
        let idle = idle.map(str::to_owned);
        let finding = Finding { shares, idle, out_of_turn: Vec::new(), evidence: None };
        let outcome = Outcome::Played(vec![finding], Vec::new());
        Report { name: "two", claim: "Weights hold.", outcome }
    }

    #[test]
    fn share_outside_tolerance_breaks_scenario() {
        let held = report(vec![share("a", 750, 700), share("b", 250, 300)], None);
        assert!(held.is_well() && held.rows().ends_with("held") && held.details().is_empty());
        let broken = report(vec![share("a", 750, 689), share("b", 250, 311)], None);
        assert!(!broken.is_well() && broken.rows().ends_with("BROKEN"));
        assert!(broken.details().contains("a was due 0.750 ±0.060, and was given 0.689"));
    }

    #[test]
    fn window_without_backlog_proves_nothing() {
        let report = report(vec![share("a", 500, 500), share("b", 500, 500)], Some("b"));
        assert!(!report.is_well() && report.rows().ends_with("NO BACKLOG"));
    }

    #[test]
    fn panic_breaks_scenario_whose_shares_are_held() {
        let mut report = report(vec![share("a", 500, 500)], None);
        if let Outcome::Played(_, panics) = &mut report.outcome {
            panics.push("s1: panicked at x".to_owned());
        }
        assert!(!report.is_well() && report.details().contains("panicked"));
    }
}
