//! What holds for a type, who says so, and how its runs are doing.

use ::detect::{Descriptor, Field, Lane, Phase, Policy};
use proto::v1;
use serde_json::{Map, Value};
use tonic::Status;

use super::super::{Door, answer};
use crate::share::settings::seal;
use crate::status::{KindNow, Question};

impl Door {
    pub(crate) async fn type_now(&self, kind: &str) -> Result<v1::TypeResponse, Status> {
        let now = self.ask(|answer| Question::Kind(kind.to_owned(), answer)).await?;
        let now = now.ok_or_else(|| {
            Status::not_found(format!(
                "there is no type `{kind}` for which something holds: no worker looks for work of \
                 it, and nothing is set; hint: `maitre types` lists types with their jobs, `maitre \
                 set type` sets what holds for one"
            ))
        })?;
        let mut response = described(kind, &now);
        response.now_ms = self.store.now().0;
        (response.schedulers, response.schedulers_current) = self.current(now.seals).await?;
        for (name, leader, lane) in self.lanes().await? {
            let policy = Some(&now.known.now.policy).filter(|policy| policy.lane == name);
            show_lane(&mut response, &lane, &leader, policy);
        }
        Ok(response)
    }

    /// How many schedulers there are, and how many go by what is set now.
    async fn current(&self, seals: Option<Vec<String>>) -> Result<(u32, u32), Status> {
        let Some(seals) = seals else { return Ok((1, 1)) };
        let settings = self.store.settings().await.map_err(|error| answer::failed(&error))?;
        let now = seal(&settings);
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let n_current = seals.iter().filter(|seal| **seal == now).count();
        Ok((count(seals.len()), count(n_current)))
    }
}

fn described(kind: &str, now: &KindNow) -> v1::TypeResponse {
    let known = &now.known;
    let descriptor = known.descriptor.clone().unwrap_or_default();
    let policy = known.now.shown.iter().map(|shown| v1::PolicyValue {
        name: shown.name.to_owned(),
        value: shown.value.clone(),
        origin: shown.origin.name().to_owned(),
        help: shown.help.to_owned(),
    });
    v1::TypeResponse {
        r#type: kind.to_owned(),
        policy: policy.collect(),
        admin: config(&descriptor.admin, &known.now.admin, &known.words.admin),
        worker: config(&descriptor.worker, &known.now.worker, &known.words.worker),
        detectors: now.detectors.clone(),
        elsewhere: now.is_elsewhere,
        prediction: now.skill.map(|skill| v1::TypePrediction {
            typical_ms: skill.typical.0.unsigned_abs(),
            skill_thousandths: u32::try_from(skill.skill).unwrap_or(0),
            judged: skill.n_judged,
        }),
        descriptor_json: known.descriptor.as_ref().map(Descriptor::to_text).unwrap_or_default(),
        display_name: descriptor.display_name,
        description: descriptor.description,
        ..v1::TypeResponse::default()
    }
}

fn config(
    fields: &[Field],
    values: &Map<String, Value>,
    set: &Map<String, Value>,
) -> Vec<v1::ConfigValue> {
    let value = |field: &Field| v1::ConfigValue {
        name: field.name.clone(),
        value: values.get(&field.name).map(ToString::to_string).unwrap_or_default(),
        is_set: set.contains_key(&field.name),
        field_json: serde_json::to_string(field).unwrap_or_default(),
    };
    fields.iter().map(value).collect()
}

/// What a lane says about a type: when it is due, if it is the type's own, and what runs.
fn show_lane(response: &mut v1::TypeResponse, lane: &Lane, leader: &str, policy: Option<&Policy>) {
    let kind = response.r#type.as_str();
    if let Some(policy) = policy {
        response.next_due_ms = lane.due_at(kind, policy).map(|at| at.0);
        response.last_success_ms = lane.succeeded_ms.get(kind).copied();
    }
    let Some(group) = lane.group.as_ref().filter(|group| group.kind == kind) else { return };
    let phase = match group.phase {
        Phase::Detecting { .. } => "detecting",
        Phase::Executing => "executing",
        Phase::Draining { .. } => "draining",
        Phase::Stopping => "stopping",
    };
    response.running = Some(v1::RunningRun {
        run: group.run.clone(),
        phase: phase.to_owned(),
        started_ms: group.started_ms,
        until_ms: group.until_ms,
        worker: group.worker.clone(),
        proposed: group.n_proposed,
        taken: group.n_taken,
        leader: leader.to_owned(),
    });
}
