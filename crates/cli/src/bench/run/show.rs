//! The figures, for people and for machines.

use serde_json::{Value, json};

use super::figure::{Figure, middle};
use super::load::Load;
use super::{Report, Rounds, Spread, float};
use crate::print;

impl Rounds {
    fn figure(&self, of: impl Fn(&Report) -> f64) -> Figure {
        Figure::of(self.0.iter().map(of))
    }

    pub(crate) fn text(&self) -> String {
        let idle = self.0.first().and_then(|report| report.idle_cpu).map(|_| {
            let idle = self.figure(|report| report.idle_cpu.unwrap_or(0.0) * 100.0).text(2);
            format!("\n`maitre dev`, idle: {idle} % of a core\n")
        });
        let (loads, rates, times) = (self.loads(), self.rates(), self.times());
        format!("{loads}\n{rates}\n{times}{}", idle.unwrap_or_default())
    }

    fn loads(&self) -> String {
        let n_loads = self.0.first().map_or(0, |report| report.loads.len());
        let rows = (0..n_loads).map(|n| {
            let figure = |of: &dyn Fn(&Load, &Report) -> f64| {
                self.figure(|report| of(&report.loads[n], report))
            };
            vec![
                self.0[0].loads[n].n_jobs.to_string(),
                format!("{:.0}", figure(&|load, _| load.submits).middle()),
                figure(&|load, _| load.drains).text(0),
                figure(&|load, report| load.drains / report.raw.lives).text(2),
                figure(&|load, _| load.steady).text(0),
                figure(&|load, report| load.steady / report.loads[0].steady).text(2),
                figure(&|load, _| load.lost).text(2),
                format!("{:.0}", figure(&|load, _| load.held()).middle()),
            ]
        });
        let header = [
            "queued",
            "submits/s",
            "drained/s",
            "/ store",
            "steady/s",
            "/ first",
            "% lost",
            "bytes/job",
        ];
        print::tables(&header, &rows.collect::<Vec<_>>())
    }

    fn rates(&self) -> String {
        let row = |what: &str, of: &dyn Fn(&Report) -> f64| {
            let ratio = self.figure(|report| of(report) / report.raw.lives).text(2);
            vec![what.to_owned(), self.figure(of).text(0), ratio]
        };
        let rows = vec![
            row("store alone: jobs from submission to end", &|report| report.raw.lives),
            row("wire alone: messages on one stream", &|report| report.wire.messages),
            row("a queue drained", &|report| report.loads.first().map_or(0.0, |load| load.drains)),
            row("submitted and done at the same time", &|report| report.together),
        ];
        let callers = self.figure(|report| f64::from(report.raw.callers)).text(0);
        let table = print::table(&["in a second", "", "/ store"], rows, &[1, 2]);
        format!("{table}the store alone did most with {callers} callers side by side\n")
    }

    fn times(&self) -> String {
        let row = |what: &str, of: &dyn Fn(&Report) -> &Spread| {
            vec![
                what.to_owned(),
                self.figure(|report| of(report).micros(50)).text(0),
                self.figure(|report| of(report).micros(99)).text(0),
                self.figure(|report| of(report).micros(50) / report.floor()).text(2),
            ]
        };
        let rows = vec![
            row("store alone: one commit", &|report| &report.raw.commit),
            row("wire alone: one round trip", &|report| &report.wire.round_trip),
            row("submission to start, idle", &|report| &report.idle),
            row("submission to start, at half load", &|report| &report.half),
        ];
        print::table(&["µs", "p50", "p99", "p50 / (commit + trip)"], rows, &[1, 2, 3])
    }

    /// Medians, and each round by itself where there are several.
    pub(crate) fn json(&self) -> Value {
        let rounds: Vec<Value> = self.0.iter().map(Report::json).collect();
        let mut all = middle(&rounds);
        if rounds.len() > 1 {
            all["rounds"] = Value::Array(rounds);
        }
        all
    }
}

impl Load {
    fn held(&self) -> f64 {
        float(u64::try_from(self.bytes_per_job).unwrap_or(u64::MAX))
    }
}

impl Report {
    /// One commit of the store alone and one trip over the wire alone, in microseconds: nothing
    /// durable can start sooner.
    fn floor(&self) -> f64 {
        self.raw.commit.micros(50) + self.wire.round_trip.micros(50)
    }

    fn json(&self) -> Value {
        let rounded = |figure: f64| (figure * 1_000.0).round() / 1_000.0;
        let spread = |spread: &Spread| {
            let (middle, last) = (spread.micros(50), spread.micros(99));
            json!({ "p50_us": rounded(middle), "p99_us": rounded(last) })
        };
        let first = self.loads.first().map_or(0.0, |load| load.steady);
        let loads = self.loads.iter().map(|load| {
            json!({
                "queued": load.n_jobs,
                "submits_per_s": load.submits.round(),
                "drained_per_s": load.drains.round(),
                "drained_of_store": rounded(load.drains / self.raw.lives),
                "steady_per_s": load.steady.round(),
                "steady_of_first": rounded(load.steady / first),
                "claims_lost_percent": rounded(load.lost),
                "bytes_per_job": load.bytes_per_job,
            })
        });
        json!({
            "store": {
                "lives_per_s": self.raw.lives.round(),
                "callers": self.raw.callers,
                "commit": spread(&self.raw.commit),
            },
            "wire": {
                "messages_per_s": self.wire.messages.round(),
                "round_trip": spread(&self.wire.round_trip),
            },
            "loads": loads.collect::<Vec<_>>(),
            "together_per_s": self.together.round(),
            "together_of_store": rounded(self.together / self.raw.lives),
            "start_idle": spread(&self.idle),
            "start_half_load": spread(&self.half),
            "start_idle_of_commit_and_trip": rounded(self.idle.micros(50) / self.floor()),
            "dev_idle_cpu": self.idle_cpu.map(rounded),
        })
    }
}
