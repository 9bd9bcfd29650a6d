//! What holds for a type is changed, one value at a time.

use ::detect::Policy;
use proto::{Invalid, v1};
use serde_json::{Map, Value};
use store::SettingKind;
use tonic::Status;

use super::super::guard::Caller;
use super::super::{Door, answer};
use crate::settings::wrong;
use crate::status::{KindNow, Question};

/// What a type's document says in other words than its policy's.
const SHARED: [&str; 2] = ["jobs_max", "worker_max"];

impl Door {
    /// Changes a type's document, lets it take effect, and shows that it did.
    pub(crate) async fn change_type(
        &self,
        caller: &Caller,
        kind: &str,
        values: &[(String, String)],
    ) -> Result<v1::TypeResponse, Status> {
        proto::name("type", kind).map_err(invalid)?;
        let now = self.ask(|answer| Question::Kind(kind.to_owned(), answer)).await?;
        let changes = values.to_vec();
        let revised = move |was: Option<&str>| {
            let was = was.and_then(|text| serde_json::from_str(text).ok());
            let mut document: Map<String, Value> = was.unwrap_or_default();
            for (name, value) in &changes {
                change(&mut document, name, value).map_err(invalid)?;
            }
            if let Some(now) = &now {
                check(&document, now).map_err(invalid)?;
            }
            Ok(Value::Object(document).to_string())
        };
        self.revise_whole(SettingKind::Type, kind, revised).await?;
        let set: Vec<String> =
            values.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let what = format!("set {}", set.join(", "));
        self.write_down(caller, ("setting", kind), what).await?;
        self.type_now(kind).await
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it stands where errors are mapped")]
fn invalid(invalid: Invalid) -> Status {
    answer::invalid(&invalid)
}

/// Sets one value of a type's document; an empty one is unset.
fn change(document: &mut Map<String, Value>, name: &str, value: &str) -> Result<(), Invalid> {
    let (place, field) = match name.split_once('.') {
        Some((place @ ("admin" | "worker"), field)) => (Some(place), field),
        Some((place, _)) => {
            let problem = format!("is in `{place}`, which is neither `admin` nor `worker`");
            return Err(Invalid::new(name, problem));
        }
        None if SHARED.contains(&name) => (None, name),
        None => (Some("detection"), name),
    };
    let fields = match place {
        None => document,
        Some(place) => {
            let fields = document.entry(place).or_insert_with(|| Value::Object(Map::new()));
            let problem = || Invalid::new(place, "is not a JSON object");
            fields.as_object_mut().ok_or_else(problem)?
        }
    };
    if value.is_empty() {
        fields.remove(field);
        return Ok(());
    }
    let word = if place.is_none() {
        let number = value.parse::<u32>();
        let problem = || Invalid::new(name, format!("is `{value}`, which is no whole number"));
        number.map_err(|_| problem())?.into()
    } else {
        Value::from(value)
    };
    fields.insert(field.to_owned(), word);
    Ok(())
}

/// Whether a type's document goes with what workers say about the type.
fn check(document: &Map<String, Value>, now: &KindNow) -> Result<(), Invalid> {
    let part =
        |name: &str| document.get(name).and_then(Value::as_object).cloned().unwrap_or_default();
    let descriptor = now.known.descriptor.clone().unwrap_or_default();
    let mut policy = part("detection");
    for shared in SHARED {
        policy.extend(document.get(shared).map(|value| (shared.to_owned(), value.clone())));
    }
    Policy::resolve(&policy, &descriptor.policy).map_err(wrong)?;
    descriptor.admin_values(&part("admin")).map_err(wrong)?;
    descriptor.worker_values(&part("worker")).map_err(wrong)?;
    Ok(())
}
