//! The figures, for people and for machines.

use serde_json::{Value, json};

use super::{Report, Spread};
use crate::print;

impl Report {
    /// One commit of the store alone and one trip over the wire alone, in microseconds: nothing
    /// durable can start sooner.
    fn floor(&self) -> f64 {
        self.raw.commit.micros(50) + self.wire.round_trip.micros(50)
    }

    pub(crate) fn text(&self) -> String {
        let rate = |rate: f64| format!("{rate:.0}");
        let ratio = |ratio: f64| format!("{ratio:.2}");
        let rows = self.loads.iter().map(|load| {
            vec![
                load.n_jobs.to_string(),
                rate(load.submits),
                rate(load.drains),
                ratio(load.drains / self.raw.lives),
                ratio(load.drains / self.loads.first().map_or(load.drains, |first| first.drains)),
                ratio(load.lost),
                load.bytes_per_job.to_string(),
            ]
        });
        let header =
            ["queued", "submits/s", "drained/s", "/ store", "/ first", "% lost", "bytes/job"];
        let loads = print::table(&header, rows.collect(), &[0, 1, 2, 3, 4, 5, 6]);
        let first = self.loads.first().map_or(0.0, |load| load.drains);
        let rates = [
            ("store alone: jobs from submission to end", self.raw.lives),
            ("wire alone: messages on one stream", self.wire.messages),
            ("a queue drained", first),
            ("submitted and done at the same time", self.together),
        ];
        let rates = rates.map(|(what, figure)| {
            vec![what.to_owned(), rate(figure), ratio(figure / self.raw.lives)]
        });
        let rates = print::table(&["in a second", "", "/ store"], rates.to_vec(), &[1, 2]);
        let times = [
            ("store alone: one commit", &self.raw.commit),
            ("wire alone: one round trip", &self.wire.round_trip),
            ("submission to start, idle", &self.idle),
            ("submission to start, at half load", &self.half),
        ];
        let times = times.map(|(what, spread)| {
            let (middle, last) = (spread.micros(50), spread.micros(99));
            vec![what.to_owned(), rate(middle), rate(last), ratio(middle / self.floor())]
        });
        let header = ["µs", "p50", "p99", "p50 / (commit + trip)"];
        let times = print::table(&header, times.to_vec(), &[1, 2, 3]);
        let idle = self.idle_cpu.map_or_else(String::new, |idle| {
            format!("\n`maitre dev`, idle: {:.2} % of a core\n", idle * 100.0)
        });
        format!("{loads}\n{rates}\n{times}{idle}")
    }

    pub(crate) fn json(&self) -> Value {
        let rounded = |figure: f64| (figure * 1_000.0).round() / 1_000.0;
        let spread = |spread: &Spread| {
            let (middle, last) = (spread.micros(50), spread.micros(99));
            json!({ "p50_us": rounded(middle), "p99_us": rounded(last) })
        };
        let loads = self.loads.iter().map(|load| {
            json!({
                "queued": load.n_jobs,
                "submits_per_s": load.submits.round(),
                "drained_per_s": load.drains.round(),
                "drained_of_store": rounded(load.drains / self.raw.lives),
                "claims_lost_percent": rounded(load.lost),
                "bytes_per_job": load.bytes_per_job,
            })
        });
        json!({
            "store": {
                "lives_per_s": self.raw.lives.round(),
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
