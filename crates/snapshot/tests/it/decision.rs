//! Decisions as JSON.

use model::policy::Rule;
use model::{
    Action, Decision, Defer, Fixed, Hold, JobId, Name, Placement, Points, Preempt, Reason,
    Timestamp, WorkerId,
};
use serde_json::json;

fn decided() -> Decision {
    let place = |resource: Option<&str>| {
        Action::Place(Placement {
            job: JobId::number(7),
            worker: WorkerId::new("w"),
            score: Fixed::whole(185),
            points: vec![
                Points { rule: Rule::MissingPaths, points: Fixed::thousandths(66_667) },
                Points { rule: Rule::OnDemand, points: Fixed::thousandths(-500) },
            ],
            resource: resource.map(Name::new),
        })
    };
    let preempt = Preempt {
        victim: JobId::number(1),
        worker: WorkerId::number(2),
        preemptor: JobId::new("three"),
    };
    let defer = Defer { job: JobId::number(4), until: Timestamp(9000) };
    let hold = Hold {
        job: JobId::number(4),
        reason: Reason::NoWorkerEver,
        detail: "no worker has \"gpu\"".to_owned(),
    };
    Decision {
        actions: vec![
            place(None),
            place(Some("desk")),
            Action::Preempt(preempt),
            Action::Defer(defer),
        ],
        holds: vec![hold],
    }
}

#[test]
fn a_decision_has_the_documented_shape() {
    let points = json!([{ "rule": "missing-paths", "points": 66.667 },
                        { "rule": "on-demand", "points": -0.5 }]);
    let expected = json!({
        "actions": [
            { "place": { "job": "7", "worker": "w", "score": 185, "points": points } },
            { "place": { "job": "7", "worker": "w", "score": 185, "points": points,
                         "resource": "desk" } },
            { "preempt": { "victim": "1", "worker": "2", "for": "three" } },
            { "defer": { "job": "4", "until_ms": 9000 } },
        ],
        "holds": [{ "job": "4", "reason": "no-worker-ever", "detail": "no worker has \"gpu\"" }],
    });
    assert_eq!(snapshot::decision(&decided()), expected);
}

#[test]
fn no_decision_is_two_empty_lists() {
    let expected = json!({ "actions": [], "holds": [] });
    assert_eq!(snapshot::decision(&Decision::default()), expected);
}

#[test]
fn whole_numbers_have_no_fraction_and_others_no_more_than_three_decimals() {
    let text = snapshot::decision_text(&decided());
    assert!(text.contains("\"score\": 185,"), "{text}");
    assert!(text.contains("\"points\": 66.667\n"), "{text}");
    assert!(text.contains("\"points\": -0.5\n"), "{text}");
}

#[test]
fn the_text_has_the_order_of_the_documentation_and_the_same_value() {
    let text = snapshot::decision_text(&decided());
    let places: Vec<Option<usize>> =
        ["\"job\"", "\"worker\"", "\"score\"", "\"points\""].map(|key| text.find(key)).into();
    assert!(places.is_sorted(), "{text}");
    let value: serde_json::Value = serde_json::from_str(&text).expect("the text is JSON");
    assert_eq!(value, snapshot::decision(&decided()));
}
