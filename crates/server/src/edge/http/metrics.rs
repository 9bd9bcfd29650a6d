//! `/metrics`: what was measured, as Prometheus reads it. Names are permanent.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Mutex;
use std::time::Duration;

use decide::Wanted;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use store::{Commits, Histogram};

use super::super::Door;
use crate::meters::{Lengths, Measures, Tolls};

pub(super) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// What has no place of its own.
const OTHER: &str = "other";

/// All metrics, as text.
pub(super) fn page(measures: Measures, door: &Door) -> String {
    let all = All {
        series_max: door.config.metrics_pairs_max,
        measures,
        tolls: door.tolls.clone(),
        commits: door.store.commits(),
        n_watching: door.n_watching(),
    };
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Page(Mutex::new(all))));
    let mut page = String::new();
    // Writing to a text cannot fail.
    let _ = text::encode(&mut page, &registry);
    page
}

#[derive(Debug)]
struct All {
    series_max: usize,
    measures: Measures,
    tolls: Tolls,
    commits: Commits,
    n_watching: usize,
}

#[derive(Debug)]
struct Page(Mutex<All>);

impl Collector for Page {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let all = self.0.lock().map_err(|_| fmt::Error)?;
        let mut sheet = Sheet(encoder);
        all.stages(&mut sheet)?;
        all.lengths(&mut sheet)?;
        all.predictions(&mut sheet)?;
        all.fleet(&mut sheet)?;
        all.demand(&mut sheet)?;
        all.reasons(&mut sheet)?;
        all.store(&mut sheet)
    }
}

impl All {
    fn counter(&self, name: &str) -> u64 {
        let counters = &self.measures.counters;
        counters.iter().find(|(known, _)| *known == name).map_or(0, |(_, n)| *n)
    }

    fn stages(&self, sheet: &mut Sheet<'_>) -> fmt::Result {
        let (submitted, refused) = self.tolls.submissions();
        sheet.counter("maitre_jobs_submitted", "Jobs taken in", submitted)?;
        sheet.counter("maitre_submissions_refused", "Submissions that were refused", refused)?;
        let claims = [("won", self.counter("claims_won")), ("lost", self.counter("claims_lost"))];
        sheet.counters(("maitre_claims", "Claims by what became of them", "outcome"), &claims)?;
        sheet.counter("maitre_jobs_succeeded", "Jobs done", self.counter("succeeded"))?;
        sheet.counter("maitre_jobs_failed", "Jobs that are given up", self.counter("failed"))?;
        sheet.counter("maitre_jobs_cancelled", "Jobs called off", self.counter("cancelled"))?;
        let lost = self.counter("leases_lost");
        sheet.counter("maitre_leases_lost", "Attempts whose worker gave no sign of life", lost)?;
        let help = "Everything else that is counted, by name";
        sheet.counters(("maitre_events", help, "event"), &self.measures.counters)?;
        let help = "Ends of jobs that somebody was to be told of";
        sheet.counters(("maitre_webhooks", help, "outcome"), &self.tolls.webhooks())
    }

    fn lengths(&self, sheet: &mut Sheet<'_>) -> fmt::Result {
        let pairs = &self.measures.pairs;
        let known = pairs.known.iter();
        let known = known
            .map(|((tenant, kind), lengths)| ((tenant.to_string(), kind.to_string()), lengths));
        let others =
            pairs.others.iter().map(|lengths| ((OTHER.to_owned(), OTHER.to_owned()), lengths));
        let rows: BTreeMap<(String, String), &Lengths> = known.chain(others).collect();
        let waits = rows.iter().map(|(pair, lengths)| (pair, &lengths.wait));
        let help = "From ready to claimed, of attempts that ended";
        sheet.histograms(("maitre_job_wait_seconds", help), waits)?;
        let runs = rows.iter().map(|(pair, lengths)| (pair, &lengths.run));
        let help = "From claimed to ended, of attempts that ended";
        sheet.histograms(("maitre_job_run_seconds", help), runs)
    }

    fn predictions(&self, sheet: &mut Sheet<'_>) -> fmt::Result {
        let known = self.measures.skills.iter().take(self.series_max);
        let rows: Vec<(String, decide::Skill)> =
            known.map(|(kind, skill)| (kind.to_string(), *skill)).collect();
        let help = "Part of the squared error of one guess for all lengths that is gone, by type";
        let skills = rows.iter().map(|(kind, skill)| (kind.as_str(), skill.skill));
        sheet.parts(("maitre_prediction_skill", help, "type"), skills)?;
        let help = "Runs whose length was predicted before they ended, by type";
        let judged: Vec<(&str, u64)> =
            rows.iter().map(|(kind, skill)| (kind.as_str(), skill.n_judged)).collect();
        sheet.counters(("maitre_predictions_judged", help, "type"), &judged)
    }

    fn fleet(&self, sheet: &mut Sheet<'_>) -> fmt::Result {
        let mut waiting = BTreeMap::new();
        let mut running = BTreeMap::new();
        for (tenant, n_queued, n_running) in &self.measures.tenants {
            let is_known = waiting.len() < self.series_max;
            let name = if is_known { tenant.to_string() } else { OTHER.to_owned() };
            *waiting.entry(vec![("tenant", name.clone())]).or_insert(0) += u64::from(*n_queued);
            *running.entry(vec![("tenant", name)]).or_insert(0) += u64::from(*n_running);
        }
        sheet.gauges("maitre_jobs_queued", "Jobs that wait", &waiting)?;
        sheet.gauges("maitre_jobs_running", "Jobs that workers have", &running)?;
        let (mut slots, mut workers) = (BTreeMap::new(), BTreeMap::new());
        for pool in self.measures.pools.iter().take(self.series_max) {
            let free = pool.slots.saturating_sub(pool.slots_used);
            for (state, n_slots) in [("used", pool.slots_used), ("free", free)] {
                let labels = vec![("pool", pool.pool.clone()), ("state", state.to_owned())];
                slots.insert(labels, u64::from(n_slots));
            }
            workers.insert(vec![("pool", pool.pool.clone())], u64::from(pool.workers));
        }
        sheet.gauges("maitre_slots", "Slots of workers that take work, by use", &slots)?;
        sheet.gauges("maitre_workers_serving", "Workers that take work", &workers)?;
        let connected = u64::try_from(self.measures.n_workers).unwrap_or(u64::MAX);
        let connected = BTreeMap::from([(Vec::new(), connected)]);
        sheet.gauges("maitre_workers_connected", "Workers that are connected", &connected)?;
        let watching = u64::try_from(self.n_watching).unwrap_or(u64::MAX);
        let watching = BTreeMap::from([(Vec::new(), watching)]);
        sheet.gauges("maitre_watches", "Requests that watch, wait or follow", &watching)?;
        let help = "How old what is known of other schedulers is";
        let age = Duration::from_millis(self.measures.others_age_ms);
        sheet.seconds("maitre_others_age_seconds", help, age)?;
        let help = "How old what is known of what tenants were charged elsewhere is";
        let age = Duration::from_millis(self.measures.usage_age_ms);
        sheet.seconds("maitre_usage_age_seconds", help, age)
    }

    fn demand(&self, sheet: &mut Sheet<'_>) -> fmt::Result {
        let (mut slots, mut unplaceable) = (BTreeMap::new(), BTreeMap::new());
        for wanted in &self.measures.wanted {
            let is_known = slots.len() < self.series_max;
            let labels = if is_known { labels(wanted) } else { other() };
            *slots.entry(labels.clone()).or_insert(0) += wanted.slots_wanted;
            if wanted.slots_fitting == 0 {
                *unplaceable.entry(labels).or_insert(0) += wanted.n_jobs;
            }
        }
        let help = "Slots for jobs that wait, less those that are free and fit, by need";
        sheet.gauges("maitre_slots_wanted", help, &slots)?;
        let help = "Jobs that no worker that is there can run, by need";
        sheet.gauges("maitre_jobs_unplaceable", help, &unplaceable)
    }

    /// At most as many pairs of tenant and type as anywhere here, each with the reasons that there
    /// are; all other pairs are one.
    fn reasons(&self, sheet: &mut Sheet<'_>) -> fmt::Result {
        let (mut pairs, mut counts) = (BTreeSet::new(), BTreeMap::new());
        for waiters in &self.measures.waiters {
            let kind = waiters.kind.as_ref().map(ToString::to_string).unwrap_or_default();
            let mut pair = (waiters.tenant.to_string(), kind);
            if !pairs.contains(&pair) && pairs.len() >= self.series_max {
                pair = (OTHER.to_owned(), OTHER.to_owned());
            } else {
                pairs.insert(pair.clone());
            }
            let reason = waiters.reason.name().to_owned();
            let labels = vec![("reason", reason), ("tenant", pair.0), ("type", pair.1)];
            *counts.entry(labels).or_insert(0) += waiters.n_jobs;
        }
        let help = "Jobs that wait, by the reason that `why` tells of the first of their like";
        sheet.gauges("maitre_jobs_waiting_by_reason", help, &counts)
    }

    fn store(&self, sheet: &mut Sheet<'_>) -> fmt::Result {
        let Commits { sizes, micros } = &self.commits;
        let help = "Requests that shared a commit";
        sheet.histogram(("maitre_commit_requests", help), sizes, 1.0)?;
        sheet.histogram(("maitre_commit_seconds", "What a commit took"), micros, 1e6)
    }
}

type Labels = Vec<(&'static str, String)>;

fn labels(wanted: &Wanted) -> Labels {
    let text =
        |name: &Option<model::Name>| name.as_ref().map(ToString::to_string).unwrap_or_default();
    let need = |(key, values): (&model::Name, &Vec<model::Name>)| {
        let values: Vec<String> = values.iter().map(ToString::to_string).collect();
        format!("{key}={}", values.join("|"))
    };
    let needs: Vec<String> = wanted.needs.iter().map(need).collect();
    let amounts: Vec<String> =
        wanted.amounts.iter().map(|(name, amount)| format!("{name}={amount}")).collect();
    let texts = [
        text(&wanted.kind),
        text(&wanted.pool),
        needs.join(","),
        wanted.slots.to_string(),
        amounts.join(","),
    ];
    WANTED.into_iter().zip(texts).collect()
}

/// What tells jobs apart that want slots: `slots` and `amounts` are those of one job.
const WANTED: [&str; 5] = ["type", "pool", "needs", "slots", "amounts"];

fn other() -> Labels {
    WANTED.map(|label| (label, OTHER.to_owned())).to_vec()
}

/// Writes one metric after the other.
struct Sheet<'a>(DescriptorEncoder<'a>);

impl Sheet<'_> {
    fn begin<'s>(
        &'s mut self,
        name: &'s str,
        help: &str,
        kind: MetricType,
    ) -> Result<MetricEncoder<'s>, fmt::Error> {
        self.0.encode_descriptor(name, help, None, kind)
    }

    fn counter(&mut self, name: &str, help: &str, n: u64) -> fmt::Result {
        self.begin(name, help, MetricType::Counter)?
            .encode_counter::<[(&str, &str); 0], _, u64>(&n, None)
    }

    fn counters(
        &mut self,
        (name, help, label): (&str, &str, &str),
        rows: &[(&str, u64)],
    ) -> fmt::Result {
        let mut metric = self.begin(name, help, MetricType::Counter)?;
        for (value, n) in rows {
            metric
                .encode_family(&[(label, *value)])?
                .encode_counter::<[(&str, &str); 0], _, u64>(n, None)?;
        }
        Ok(())
    }

    fn gauges(&mut self, name: &str, help: &str, rows: &BTreeMap<Labels, u64>) -> fmt::Result {
        let mut metric = self.begin(name, help, MetricType::Gauge)?;
        for (labels, n) in rows {
            let n = i64::try_from(*n).unwrap_or(i64::MAX);
            if labels.is_empty() {
                metric.encode_gauge(&n)?;
            } else {
                metric.encode_family(labels)?.encode_gauge(&n)?;
            }
        }
        Ok(())
    }

    /// Parts of one, given in thousandths.
    fn parts<'r>(
        &mut self,
        (name, help, label): (&str, &str, &str),
        rows: impl Iterator<Item = (&'r str, i64)>,
    ) -> fmt::Result {
        let mut metric = self.begin(name, help, MetricType::Gauge)?;
        for (value, thousandths) in rows {
            let part = model::Fixed::thousandths(thousandths).to_f64();
            metric.encode_family(&[(label, value)])?.encode_gauge(&part)?;
        }
        Ok(())
    }

    fn seconds(&mut self, name: &str, help: &str, length: Duration) -> fmt::Result {
        self.begin(name, help, MetricType::Gauge)?.encode_gauge(&length.as_secs_f64())
    }

    fn histograms<'h>(
        &mut self,
        (name, help): (&str, &str),
        rows: impl Iterator<Item = (&'h (String, String), &'h Histogram)>,
    ) -> fmt::Result {
        let mut metric = self.begin(name, help, MetricType::Histogram)?;
        for ((tenant, kind), histogram) in rows {
            let labels = [("tenant", tenant.as_str()), ("type", kind.as_str())];
            write(&mut metric.encode_family(&labels)?, histogram, 1e3)?;
        }
        Ok(())
    }

    fn histogram(
        &mut self,
        (name, help): (&str, &str),
        histogram: &Histogram,
        unit: f64,
    ) -> fmt::Result {
        write(&mut self.begin(name, help, MetricType::Histogram)?, histogram, unit)
    }
}

/// A histogram whose sizes are in parts of a whole: so many of them are one.
#[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "metrics are floating")]
fn write(metric: &mut MetricEncoder<'_>, histogram: &Histogram, unit: f64) -> fmt::Result {
    let bound = |bound: Option<u64>| bound.map_or(f64::INFINITY, |bound| bound as f64 / unit);
    let buckets: Vec<(f64, u64)> =
        histogram.buckets().map(|(upper, n)| (bound(upper), n)).collect();
    let n_all = buckets.iter().map(|(_, n)| n).sum();
    let sum = histogram.sum() as f64 / unit;
    metric.encode_histogram::<[(&str, &str); 0]>(sum, n_all, &buckets, None)
}
