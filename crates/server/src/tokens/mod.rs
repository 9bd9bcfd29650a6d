//! Tokens: who may do what.
//!
//! A token is 256 random bits, so it cannot be guessed, and a plain SHA-256 of it is as good as a
//! slow hash: there is no dictionary to go through. Only that digest is kept. A token that comes
//! in is digested and looked up by its digest: how long the lookup takes says nothing about
//! tokens that are kept, because nobody can choose digests.

mod scope;
mod table;

use std::fmt::Write as _;

use model::maxima::NAME_BYTES_MAX;
use model::{Millis, TenantId, Timestamp};
use proto::{Invalid, v1};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use store::{Setting, SettingKind};

pub use scope::Scope;
pub(crate) use table::{Bearer, Denied, Tokens};

use crate::secret::Secret;

/// What every token begins with, so that people and scanners know one when they see it.
const PREFIX: &str = "maitre_";
/// Hexadecimal digits of a digest that name a token.
const ID_DIGITS: usize = 12;
/// Tokens that there may be.
pub(crate) const TOKENS_MAX: usize = 10_000;

/// What is kept of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// Of the token itself, in hexadecimal digits.
    pub(crate) digest: String,
    /// For people.
    pub name: String,
    /// What it allows.
    pub grant: Grant,
    /// When it was made.
    pub created: Timestamp,
    /// When it is good for nothing any more.
    pub expires: Option<Timestamp>,
}

/// What somebody may do, and for whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Whose jobs; `None` means everybody's.
    pub tenant: Option<TenantId>,
    /// What may be done.
    pub scopes: Vec<Scope>,
}

impl Grant {
    /// Everything, for everybody.
    pub(crate) fn everything() -> Self {
        Self { tenant: None, scopes: vec![Scope::Admin] }
    }

    pub(crate) fn allows(&self, scope: Scope) -> bool {
        self.scopes.iter().any(|own| own.includes(scope))
    }

    /// Whether it reaches jobs of this tenant.
    pub(crate) fn reaches(&self, tenant: &TenantId) -> bool {
        self.tenant.as_ref().is_none_or(|own| own == tenant)
    }

    /// Whether whoever has this may give away `other`.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        other.scopes.iter().all(|scope| self.allows(*scope))
            && self.tenant.as_ref().is_none_or(|own| other.tenant.as_ref() == Some(own))
    }
}

/// What a token is kept as. Its digest is the name of the setting.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    tenant: Option<String>,
    scopes: Vec<String>,
    created_ms: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_ms: Option<i64>,
}

impl Token {
    /// A new token, and what is to be kept of it.
    pub fn make(
        name: &str,
        grant: Grant,
        (now, lasts): (Timestamp, Option<Millis>),
    ) -> Result<(Secret, Self), Invalid> {
        proto::text("name", name, NAME_BYTES_MAX)?;
        check(&grant)?;
        let secret = secret()?;
        let digest = digest(&secret);
        let expires = lasts.map(|lasts| now + lasts);
        Ok((secret, Self { digest, name: name.to_owned(), grant, created: now, expires }))
    }

    /// The token that a file holds.
    pub(crate) fn of_file(text: &str, grant: Grant) -> Self {
        let digest = digest(&Secret::new(text.trim().to_owned()));
        let name = "admin_token_file".to_owned();
        Self { digest, name, grant, created: Timestamp(0), expires: None }
    }

    /// Names it without giving it away.
    pub fn id(&self) -> &str {
        self.digest.get(..ID_DIGITS).unwrap_or(&self.digest)
    }

    /// What its bearer is called where it is written down who did something.
    pub(crate) fn who(&self) -> String {
        let name = if self.name.is_empty() { self.id() } else { &self.name };
        match &self.grant.tenant {
            Some(tenant) => format!("{name} of {tenant}"),
            None => name.to_owned(),
        }
    }

    /// Whether somebody means this one: by its name, or by an id that begins like this.
    pub fn is_called(&self, text: &str) -> bool {
        let is_id = text.len() >= ID_DIGITS && self.digest.starts_with(text);
        !text.is_empty() && (self.name == text || is_id)
    }

    /// As it is shown.
    pub fn shown(&self) -> v1::Token {
        v1::Token {
            id: self.id().to_owned(),
            name: self.name.clone(),
            tenant: self.grant.tenant.as_ref().map(TenantId::to_string).unwrap_or_default(),
            scopes: self.grant.scopes.iter().map(|scope| scope.name().to_owned()).collect(),
            created_ms: self.created.0,
            expires_ms: self.expires.map(|at| at.0),
        }
    }

    /// As it is kept.
    pub fn setting(&self) -> Setting {
        let document = Document {
            name: self.name.clone(),
            tenant: self.grant.tenant.as_ref().map(TenantId::to_string),
            scopes: self.grant.scopes.iter().map(|scope| scope.name().to_owned()).collect(),
            created_ms: self.created.0,
            expires_ms: self.expires.map(|at| at.0),
        };
        let document = serde_json::to_string(&document).expect("names and numbers are JSON");
        Setting { kind: SettingKind::Token, name: self.digest.clone(), document: Some(document) }
    }

    /// What removes it.
    pub fn removal(&self) -> Setting {
        Setting { kind: SettingKind::Token, name: self.digest.clone(), document: None }
    }

    /// The token that a setting keeps; `None` if it is another setting, or not understood: then
    /// it opens nothing.
    pub fn kept(setting: &Setting) -> Option<Self> {
        if setting.kind != SettingKind::Token {
            return None;
        }
        let document: Document = serde_json::from_str(setting.document.as_deref()?).ok()?;
        let scopes: Option<Vec<Scope>> =
            document.scopes.iter().map(|name| Scope::named(name)).collect();
        let tenant = document.tenant.map(|tenant| TenantId::new(&tenant));
        Some(Self {
            digest: setting.name.clone(),
            name: document.name,
            grant: Grant { tenant, scopes: scopes? },
            created: Timestamp(document.created_ms),
            expires: document.expires_ms.map(Timestamp),
        })
    }
}

/// Scopes by their names, as people give them.
pub fn scopes(names: &[String]) -> Result<Vec<Scope>, Invalid> {
    let known: Vec<&str> = Scope::ALL.iter().map(|scope| scope.name()).collect();
    let scope = |name: &String| {
        let hint = || snapshot::did_you_mean(name, &known);
        Scope::named(name)
            .ok_or_else(|| Invalid::new("scopes", format!("has `{name}`, no scope; {}", hint())))
    };
    let mut scopes: Vec<Scope> = names.iter().map(scope).collect::<Result<_, _>>()?;
    scopes.sort_unstable();
    scopes.dedup();
    Ok(scopes)
}

fn check(grant: &Grant) -> Result<(), Invalid> {
    if grant.scopes.is_empty() {
        let known: Vec<&str> = Scope::ALL.iter().map(|scope| scope.name()).collect();
        let problem = format!("is empty; there is {}", known.join(", "));
        return Err(Invalid::new("scopes", problem));
    }
    let wide = grant.scopes.iter().find(|scope| !scope.is_for_tenants());
    if let (Some(tenant), Some(scope)) = (&grant.tenant, wide) {
        let problem = format!(
            "is `{tenant}`, but `{}` is not for one tenant alone; leave the tenant out",
            scope.name()
        );
        return Err(Invalid::new("tenant", problem));
    }
    Ok(())
}

fn secret() -> Result<Secret, Invalid> {
    let mut bytes = [0; 32];
    let none = |error| Invalid::new("secret", format!("has no random numbers: {error}"));
    getrandom::fill(&mut bytes).map_err(none)?;
    Ok(Secret::new(format!("{PREFIX}{}", hexadecimal(&bytes))))
}

fn digest(secret: &Secret) -> String {
    hexadecimal(&Sha256::digest(secret.reveal().as_bytes()))
}

/// Bytes as lower-case hexadecimal digits.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant(tenant: Option<&str>, scopes: &[Scope]) -> Grant {
        Grant { tenant: tenant.map(TenantId::new), scopes: scopes.to_vec() }
    }

    #[test]
    fn what_is_kept_does_not_give_the_token_away() {
        let made = grant(Some("acme"), &[Scope::Submit, Scope::Read]);
        let (secret, token) = Token::make("ci", made, (Timestamp(5), Some(Millis(7)))).unwrap();
        assert_eq!(secret.reveal().len(), PREFIX.len() + 64);
        let setting = token.setting();
        assert!(!format!("{setting:?} {token:?} {secret:?}").contains(secret.reveal()));
        assert_eq!(Token::kept(&setting), Some(token.clone()));
        assert!(token.is_called("ci") && token.is_called(token.id()) && !token.is_called(""));
        assert_eq!(token.expires, Some(Timestamp(12)));
    }

    #[test]
    fn two_tokens_differ() {
        let make = || Token::make("", Grant::everything(), (Timestamp(0), None)).unwrap();
        assert_ne!(make().0.reveal(), make().0.reveal());
    }

    #[test]
    fn workers_and_admins_are_of_no_tenant() {
        for scope in [Scope::Work, Scope::Admin] {
            let refused = Token::make("", grant(Some("a"), &[scope]), (Timestamp(0), None));
            assert_eq!(refused.unwrap_err().field, "tenant");
        }
        let nothing = Token::make("", grant(None, &[]), (Timestamp(0), None));
        assert_eq!(nothing.unwrap_err().field, "scopes");
    }

    #[test]
    fn nobody_gives_away_more_than_they_have() {
        let own = grant(Some("a"), &[Scope::TenantAdmin]);
        assert!(own.covers(&grant(Some("a"), &[Scope::Submit, Scope::TenantAdmin])));
        assert!(!own.covers(&grant(Some("b"), &[Scope::Submit])));
        assert!(!own.covers(&grant(None, &[Scope::Submit])));
        assert!(!own.covers(&grant(Some("a"), &[Scope::Work])));
        assert!(grant(None, &[Scope::TenantAdmin]).covers(&grant(Some("b"), &[Scope::Read])));
        assert!(!grant(None, &[Scope::TenantAdmin]).covers(&grant(None, &[Scope::Admin])));
    }
}
