//! Minute series by HTTP: how much there was of what, minute by minute, for up to a week.

use axum::extract::{Extension, State};
use axum::http::Uri;
use axum::routing::get;
use axum::{Json, Router};
use model::{Millis, Timestamp};
use proto::Invalid;
use serde_json::{Value, json};
use store::Store;
use tonic::Status;

use super::super::guard::Caller;
use super::super::{Door, answer};
use super::body::{Answer, pairs};
use crate::series::{self, By, Document, MINUTE, Means, Named, Steps, Wholes};

/// Steps in one answer.
const STEPS_MAX: i64 = 1_500;
/// A span without a beginning begins so long before its end.
const SPAN: Millis = Millis::from_secs(3600);
/// The longest step.
const STEP_LONGEST: Millis = Millis::from_secs(24 * 3600);
/// The store is asked for so much at a time.
const PART: Millis = Millis::from_secs(6 * 3600);
/// No moment is so far away that it could not be reckoned with.
const MOMENT_MAX: i64 = 1 << 50;

pub(super) fn router() -> Router<Door> {
    Router::new().route("/v1/series", get(series))
}

/// `?from=1800000000000&to=1800003600000&step=1m&by=tenant&tenant=acme`.
async fn series(
    State(door): State<Door>,
    Extension(caller): Extension<Caller>,
    uri: Uri,
) -> Answer {
    let now = door.store.now();
    let asked = Asked::read(&caller, &uri)?.resolved(now)?;
    let steps = read(&*door.store, &asked, now).await?;
    let (named, other) = steps.series();
    let total = steps.total();
    let [p50, p90, p99] = &total.waits_ms;
    let mut totals = json!({
        "queued": means(&total.queued),
        "running": means(&total.running),
    });
    // Of one tenant, what happened is not counted.
    if asked.tenant.is_none() {
        totals["started"] = wholes(&total.started);
        totals["ended"] = wholes(&total.ended);
        totals["failed"] = wholes(&total.failed);
        totals["wait_p50_ms"] = wholes(p50);
        totals["wait_p90_ms"] = wholes(p90);
        totals["wait_p99_ms"] = wholes(p99);
        totals["oldest_wait_ms"] = wholes(&total.oldest_ms);
    }
    let one = |one: &Named| shown(one, asked.by);
    Ok(Json(json!({
        "now_ms": now.0,
        "from_ms": asked.from.0,
        "step_ms": asked.step.0,
        "steps": asked.n_steps,
        "tenant": asked.tenant,
        "total": totals,
        "by": asked.by.map(name_of),
        "series": if asked.by.is_some() { named.iter().map(one).collect() } else { Vec::new() },
        "other": other.as_ref().filter(|_| asked.by.is_some()).map(one),
    })))
}

/// Puts the minutes of a span together, as far back as the store keeps minutes.
async fn read(store: &dyn Store, asked: &Resolved, now: Timestamp) -> Result<Steps, Status> {
    let by = asked.by.unwrap_or(By::Reason);
    let mut steps = Steps::new(asked.from, asked.step, asked.n_steps, by);
    let mut from = asked.from.max(series::begin(now - series::KEPT));
    while from < asked.before {
        let before = asked.before.min(from + PART);
        let minutes = store.minutes(from, before).await.map_err(|error| answer::failed(&error))?;
        for counted in minutes.chunk_by(|one, other| one.at == other.at) {
            // A document of another version that this one cannot read is unknown.
            let documents = counted.iter().filter_map(|one| Document::read(&one.document));
            steps.add(counted[0].at, documents.collect(), asked.tenant.as_deref());
        }
        from = before;
    }
    Ok(steps)
}

/// The parameters of a request. `None` means that the request does not have it.
#[derive(Default)]
struct Asked {
    from: Option<i64>,
    to: Option<i64>,
    step: Option<Millis>,
    by: Option<By>,
    tenant: Option<String>,
}

/// The span that is answered.
struct Resolved {
    from: Timestamp,
    before: Timestamp,
    step: Millis,
    n_steps: usize,
    by: Option<By>,
    tenant: Option<String>,
}

impl Asked {
    fn read(caller: &Caller, uri: &Uri) -> Result<Self, Status> {
        let mut asked = Self::default();
        let mut tenant = String::new();
        for (name, value) in pairs(uri) {
            match name.as_str() {
                "from" => asked.from = Some(moment("from", &value)?),
                "to" => asked.to = Some(moment("to", &value)?),
                "step" => asked.step = Some(step(&value)?),
                "by" => asked.by = Some(by(&value)?),
                "tenant" => tenant = value,
                _ => {
                    let known = "is none of from, to, step, by, tenant; hint: leave it out";
                    return Err(invalid(&name, known));
                }
            }
        }
        caller.own("tenant", &mut tenant)?;
        asked.tenant = (!tenant.is_empty()).then_some(tenant);
        match (&asked.tenant, asked.by) {
            (Some(tenant), Some(by @ (By::Type | By::Pool))) => Err(invalid(
                "by",
                format!(
                    "is `{}`, and of one tenant (`{tenant}`) only `tenant` and `reason` are \
                     counted; hint: use one of these",
                    name_of(by)
                ),
            )),
            _ => Ok(asked),
        }
    }

    /// A step begins at a multiple of its length. The minute that is under way is not told.
    fn resolved(self, now: Timestamp) -> Result<Resolved, Status> {
        let to = self.to.unwrap_or(now.0);
        let from = self.from.unwrap_or(to - SPAN.0);
        if from >= to {
            let problem = format!("is {from}, not before `to` = {to}; hint: make it smaller");
            return Err(invalid("from", problem));
        }
        let step = self.step.unwrap_or_else(|| shortest_step(to - from));
        let first = from.div_euclid(step.0) * step.0;
        let n_steps = (to - first + step.0 - 1) / step.0;
        if n_steps > STEPS_MAX {
            let least = shortest_step(to - from);
            return Err(invalid(
                "step",
                format!(
                    "is `{}`, which makes {n_steps} steps from `from` to `to`, more than \
                     {STEPS_MAX}; hint: use `{}` or longer",
                    detect::shown_length(step),
                    detect::shown_length(least)
                ),
            ));
        }
        let end = Timestamp(to).min(series::begin(now));
        let n_steps = (end.0 - first + step.0 - 1).div_euclid(step.0).max(0);
        Ok(Resolved {
            from: Timestamp(first),
            before: end,
            step,
            n_steps: usize::try_from(n_steps).unwrap_or(0),
            by: self.by,
            tenant: self.tenant,
        })
    }
}

/// The shortest step of whole minutes for a span, with room for a step that is cut.
fn shortest_step(span_ms: i64) -> Millis {
    let n_minutes = span_ms / (MINUTE.0 * (STEPS_MAX - 1)) + 1;
    Millis(n_minutes * MINUTE.0)
}

fn moment(field: &str, text: &str) -> Result<i64, Status> {
    let known = text.parse().ok().filter(|ms: &i64| (0..=MOMENT_MAX).contains(ms));
    known.ok_or_else(|| {
        let problem = "which is no moment in milliseconds since 1970; hint: use digits alone";
        invalid(field, format!("is `{text}`, {problem}"))
    })
}

fn step(text: &str) -> Result<Millis, Status> {
    let length = detect::length(text).map_err(|problem| invalid("step", problem))?;
    let is_whole = length.0 % MINUTE.0 == 0 && (MINUTE..=STEP_LONGEST).contains(&length);
    is_whole.then_some(length).ok_or_else(|| {
        let problem = "which is not whole minutes from `1m` to `1day`; hint: use `1m`";
        invalid("step", format!("is `{text}`, {problem}"))
    })
}

fn by(text: &str) -> Result<By, Status> {
    let all = [By::Tenant, By::Type, By::Pool, By::Reason];
    all.into_iter().find(|by| name_of(*by) == text).ok_or_else(|| {
        let problem = "not one of tenant, type, pool, reason; hint: leave it out for totals alone";
        invalid("by", format!("is `{text}`, {problem}"))
    })
}

const fn name_of(by: By) -> &'static str {
    match by {
        By::Tenant => "tenant",
        By::Type => "type",
        By::Pool => "pool",
        By::Reason => "reason",
    }
}

fn invalid(field: &str, problem: impl Into<String>) -> Status {
    answer::invalid(&Invalid::new(field, problem))
}

fn shown(one: &Named, by: Option<By>) -> Value {
    let mut value = json!({ "name": one.name, "queued": means(&one.queued) });
    if by != Some(By::Reason) {
        value["running"] = means(&one.running);
        value["slots"] = means(&one.slots);
    }
    if by == Some(By::Tenant) && !one.due.is_empty() {
        value["due"] = means(&one.due);
        value["competes"] = means(&one.competes);
    }
    value
}

fn wholes(numbers: &Wholes) -> Value {
    json!(numbers)
}

/// Thousandths as numbers: whole ones without a point.
fn means(thousandths: &Means) -> Value {
    let number = |n: &i64| match n % 1_000 {
        0 => json!(n / 1_000),
        _ => json!(model::Fixed::thousandths(*n).to_f64()),
    };
    thousandths.iter().map(|n| n.as_ref().map_or(Value::Null, number)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_step_of_a_span_keeps_to_the_limit() {
        let day = 24 * 60;
        let steps = [1, 60, day, 7 * day].map(|minutes| shortest_step(minutes * MINUTE.0).0);
        assert_eq!(steps, [1, 1, 1, 7].map(|minutes| minutes * MINUTE.0));
    }

    #[test]
    fn a_span_begins_with_a_whole_step_and_ends_before_the_minute_that_is_under_way() {
        let asked = Asked { step: Some(Millis(600_000)), ..Asked::default() };
        let span = asked.resolved(Timestamp(7_234_567)).expect("it is a span");
        assert_eq!((span.from, span.before), (Timestamp(3_600_000), Timestamp(7_200_000)));
        assert_eq!(span.n_steps, 6);
        let later = Asked { from: Some(8_000_000), to: Some(9_000_000), ..Asked::default() };
        assert_eq!(later.resolved(Timestamp(7_234_567)).expect("it is a span").n_steps, 0);
    }
}
