//! A setting is changed by what it says now: whoever changes it at the same time sees what the one
//! before made of it, whichever scheduler was asked.

use store::{Error, Setting, SettingKind, Store};

/// How often it is tried when others are quicker.
const TRIES_MAX: usize = 100;

/// Lets `change` say what becomes of a setting's document, and keeps that; begins again if another
/// was quicker. The inner error is what `change` has against it.
pub(crate) async fn revise<E: Send>(
    store: &dyn Store,
    (kind, name): (SettingKind, &str),
    change: impl Fn(Option<&str>) -> Result<String, E> + Send + Sync,
) -> Result<Result<String, E>, Error> {
    for _ in 0..TRIES_MAX {
        let settings = store.settings().await?.into_iter();
        let known = settings.filter(|one| one.kind == kind).find(|one| one.name == name);
        let was = known.and_then(|one| one.document);
        let document = match change(was.as_deref()) {
            Ok(document) => document,
            Err(problem) => return Ok(Err(problem)),
        };
        let (name, new) = (name.to_owned(), Some(document.clone()));
        let setting = Setting { kind, name, document: new };
        if store.replace(was, setting).await? {
            return Ok(Ok(document));
        }
    }
    let cause = format!("others changed it {TRIES_MAX} times meanwhile");
    Err(Error::Unavailable { doing: "change a setting", cause })
}
