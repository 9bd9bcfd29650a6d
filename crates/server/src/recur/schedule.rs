//! A recurring job: when, and what.

use ::detect::{CatchUp, every};
use croner::Cron;
use jiff::tz::TimeZone;
use model::maxima::DURATION_MS_MAX;
use model::{Millis, Timestamp};
use prost::Message as _;
use proto::{Invalid, v1};
use serde::{Deserialize, Serialize};
use store::{Setting, SettingKind};

/// Moments that may be caught up with, if nobody says how many.
const CATCH_UP_DEFAULT: u32 = 10;
const CATCH_UP_MAX: u32 = 1_000;
/// The shortest interval.
const EVERY_MIN: Millis = Millis(1_000);

/// The label that says which schedule a job is of.
const LABEL: &str = "schedule";

/// A recurring job, as it is kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Schedule {
    /// A cron expression; empty if it has an interval.
    pub(crate) cron: String,
    pub(crate) every_ms: Option<i64>,
    /// An IANA name.
    pub(crate) time_zone: String,
    pub(crate) catch_up: CatchUp,
    pub(crate) catch_up_max: u32,
    pub(crate) is_paused: bool,
    /// Intervals are counted from here.
    pub(crate) anchor_ms: i64,
    /// Moments before this do not count: it was not there, or paused.
    pub(crate) since_ms: i64,
    /// The job, as it came over the wire.
    spec: Vec<u8>,
}

/// When it is due: what was read of it once, so that it need not be read each time.
#[derive(Clone, Debug)]
pub(crate) enum Beat {
    Cron(Box<Cron>, TimeZone),
    Every(Timestamp, Millis),
}

impl Beat {
    /// The first moment after this one.
    pub(crate) fn next(&self, after: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Every(anchor, length) => every(*anchor, *length, after),
            Self::Cron(cron, zone) => {
                let after = jiff::Timestamp::from_millisecond(after.0).ok()?;
                let next = cron.find_next_occurrence(&after.to_zoned(zone.clone()), false);
                Some(Timestamp(next.ok()?.timestamp().as_millisecond()))
            }
        }
    }
}

impl Schedule {
    /// What somebody asked for, from now on.
    pub(crate) fn checked(schedule: &v1::Schedule, now: Timestamp) -> Result<Self, Invalid> {
        let catch_up = match schedule.catch_up.as_str() {
            "none" => CatchUp::None,
            "" | "one" => CatchUp::One,
            "all" => CatchUp::All,
            other => {
                let problem = format!("is `{other}`, which is none of `none`, `one`, `all`");
                return Err(Invalid::new("catch_up", problem));
            }
        };
        let catch_up_max = match schedule.catch_up_max {
            0 => CATCH_UP_DEFAULT,
            n if n <= CATCH_UP_MAX => n,
            n => {
                let problem = format!("is {n}, which is not between 1 and {CATCH_UP_MAX}");
                return Err(Invalid::new("catch_up_max", problem));
            }
        };
        let every_ms = schedule.every_ms.map(|ms| i64::try_from(ms).unwrap_or(i64::MAX));
        if every_ms.is_some() != schedule.cron.is_empty() {
            return Err(Invalid::new(
                "cron",
                "and `every_ms`: one of them is needed, and not both",
            ));
        }
        let spec = schedule.job.as_ref().ok_or_else(|| Invalid::new("job", "is missing"))?;
        let zone = if schedule.time_zone.is_empty() { "UTC" } else { &schedule.time_zone };
        let checked = Self {
            cron: schedule.cron.clone(),
            every_ms,
            time_zone: zone.to_owned(),
            catch_up,
            catch_up_max,
            is_paused: schedule.paused,
            anchor_ms: now.0,
            since_ms: now.0,
            spec: spec.encode_to_vec(),
        };
        checked.beat()?;
        Ok(checked)
    }

    /// When it is due.
    pub(crate) fn beat(&self) -> Result<Beat, Invalid> {
        if let Some(ms) = self.every_ms {
            if !(EVERY_MIN.0..=DURATION_MS_MAX).contains(&ms) {
                let problem =
                    format!("is {ms}, which is not between {} and {DURATION_MS_MAX}", EVERY_MIN.0);
                return Err(Invalid::new("every_ms", problem));
            }
            return Ok(Beat::Every(Timestamp(self.anchor_ms), Millis(ms)));
        }
        let zone = TimeZone::get(&self.time_zone).map_err(|_| {
            let problem = format!(
                "is `{}`, which is no time zone; write it as in `Europe/Berlin`",
                self.time_zone
            );
            Invalid::new("time_zone", problem)
        })?;
        let cron: Cron = self.cron.parse().map_err(|error| {
            Invalid::new("cron", format!("is `{}`, which cannot be read: {error}", self.cron))
        })?;
        Ok(Beat::Cron(Box::new(cron), zone))
    }

    /// The job of a moment. Its own moments are lengths of time after that.
    pub(crate) fn spec(&self, name: &str, due: Timestamp) -> v1::Spec {
        let mut spec = v1::Spec::decode(&*self.spec).unwrap_or_default();
        spec.labels.insert(LABEL.to_owned(), name.to_owned());
        spec.not_before_ms = spec.not_before_ms.map(|ms| due.0.saturating_add(ms));
        spec.start_before_ms = spec.start_before_ms.map(|ms| due.0.saturating_add(ms));
        spec
    }

    /// As it is kept.
    pub(crate) fn setting(&self, name: &str) -> Setting {
        let document = Some(self.document());
        Setting { kind: SettingKind::Schedule, name: name.to_owned(), document }
    }

    pub(crate) fn document(&self) -> String {
        serde_json::to_string(self).expect("its names are strings")
    }

    /// As it was kept.
    pub(crate) fn read(document: &str) -> Result<Self, Invalid> {
        let read = serde_json::from_str(document);
        read.map_err(|error| Invalid::new("schedule", format!("cannot be read: {error}")))
    }

    /// As it is shown.
    pub(crate) fn shown(&self, name: &str) -> v1::Schedule {
        let catch_up = match self.catch_up {
            CatchUp::None => "none",
            CatchUp::One => "one",
            CatchUp::All => "all",
        };
        v1::Schedule {
            name: name.to_owned(),
            cron: self.cron.clone(),
            every_ms: self.every_ms.map(i64::unsigned_abs),
            time_zone: self.time_zone.clone(),
            catch_up: catch_up.to_owned(),
            catch_up_max: self.catch_up_max,
            paused: self.is_paused,
            job: v1::Spec::decode(&*self.spec).ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(cron: &str, zone: &str) -> Result<Schedule, Invalid> {
        let job = Some(v1::Spec { r#type: "t".to_owned(), ..v1::Spec::default() });
        let (cron, time_zone) = (cron.to_owned(), zone.to_owned());
        let wire = v1::Schedule { cron, time_zone, job, ..v1::Schedule::default() };
        Schedule::checked(&wire, Timestamp(0))
    }

    fn moments(cron: &str, zone: &str, from: &str, n: usize) -> Vec<String> {
        let beat = schedule(cron, zone).unwrap().beat().unwrap();
        let from: jiff::Timestamp = from.parse().unwrap();
        let mut at = Timestamp(from.as_millisecond());
        let next = |_| {
            at = beat.next(at).unwrap();
            jiff::Timestamp::from_millisecond(at.0).unwrap().to_string()
        };
        (0..n).map(next).collect()
    }

    #[test]
    fn a_cron_expression_goes_by_the_clocks_of_its_zone() {
        let berlin = moments("0 9 * * *", "Europe/Berlin", "2026-03-27T12:00:00Z", 3);
        // Clocks go forward on the 29th.
        assert_eq!(
            berlin,
            ["2026-03-28T08:00:00Z", "2026-03-29T07:00:00Z", "2026-03-30T07:00:00Z"]
        );
        let utc = moments("0 9 * * *", "", "2026-03-27T12:00:00Z", 2);
        assert_eq!(utc, ["2026-03-28T09:00:00Z", "2026-03-29T09:00:00Z"]);
    }

    #[test]
    fn an_hour_that_comes_twice_or_not_at_all_is_one_moment() {
        let autumn = moments("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", 2);
        assert_eq!(autumn, ["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]);
        let spring = moments("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", 2);
        assert_eq!(spring.last().unwrap(), "2026-03-30T00:30:00Z");
    }

    #[test]
    fn what_is_wrong_is_named_by_its_field() {
        let wrong = |cron, zone| schedule(cron, zone).unwrap_err().to_string();
        assert!(wrong("9 o'clock", "").starts_with("`cron` is `9 o'clock`, which cannot be read"));
        assert!(wrong("0 9 * * *", "Mars/Base").starts_with("`time_zone` is `Mars/Base`, which"));
        assert!(wrong("", "").starts_with("`cron` and `every_ms`: one of them"));
        let job = Some(v1::Spec::default());
        let fast = v1::Schedule { every_ms: Some(10), job, ..v1::Schedule::default() };
        let wrong = Schedule::checked(&fast, Timestamp(0)).unwrap_err().to_string();
        assert!(wrong.starts_with("`every_ms` is 10, which is not between 1000 and"), "{wrong}");
    }
}
