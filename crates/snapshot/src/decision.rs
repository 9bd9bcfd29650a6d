//! Decisions as JSON.

use model::{Action, Decision, Placement};
use serde::Serialize;

use crate::document::SignedNumber;

/// A decision in its JSON form.
#[derive(Serialize)]
pub(crate) struct Document<'a> {
    actions: Vec<ActionDocument<'a>>,
    holds: Vec<HoldDocument<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum ActionDocument<'a> {
    Place(PlaceDocument<'a>),
    Preempt {
        victim: String,
        worker: String,
        #[serde(rename = "for")]
        preemptor: String,
    },
    Defer {
        job: String,
        until_ms: i64,
    },
}

#[derive(Serialize)]
struct PlaceDocument<'a> {
    job: String,
    worker: String,
    score: SignedNumber,
    points: Vec<PointsDocument<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource: Option<String>,
}

#[derive(Serialize)]
struct PointsDocument<'a> {
    rule: &'a str,
    points: SignedNumber,
}

#[derive(Serialize)]
struct HoldDocument<'a> {
    job: String,
    reason: &'a str,
    detail: &'a str,
}

/// The document of `decision`.
pub(crate) fn document(decision: &Decision) -> Document<'_> {
    let holds = decision.holds.iter().map(|hold| HoldDocument {
        job: hold.job.to_string(),
        reason: hold.reason.name(),
        detail: &hold.detail,
    });
    Document { actions: decision.actions.iter().map(action).collect(), holds: holds.collect() }
}

fn action(action: &Action) -> ActionDocument<'_> {
    match action {
        Action::Place(placement) => ActionDocument::Place(place(placement)),
        Action::Preempt(preempt) => ActionDocument::Preempt {
            victim: preempt.victim.to_string(),
            worker: preempt.worker.to_string(),
            preemptor: preempt.preemptor.to_string(),
        },
        Action::Defer(defer) => {
            ActionDocument::Defer { job: defer.job.to_string(), until_ms: defer.until.0 }
        }
    }
}

fn place(placement: &Placement) -> PlaceDocument<'_> {
    let points = placement
        .points
        .iter()
        .map(|each| PointsDocument { rule: each.rule.name(), points: SignedNumber(each.points) });
    PlaceDocument {
        job: placement.job.to_string(),
        worker: placement.worker.to_string(),
        score: SignedNumber(placement.score),
        points: points.collect(),
        resource: placement.resource.as_ref().map(ToString::to_string),
    }
}
