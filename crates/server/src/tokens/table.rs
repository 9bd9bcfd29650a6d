//! The tokens that hold now, for doors to look at.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use model::Timestamp;
use store::Setting;

use super::{Grant, Scope, Token, digest};
use crate::secret::Secret;

/// Why somebody is not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Denied {
    /// No token came, and one is needed.
    Missing,
    /// It is not known, or no longer.
    Unknown,
}

/// The tokens that hold now, by digest. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Tokens(Arc<RwLock<Table>>);

#[derive(Default)]
struct Table {
    stored: HashMap<String, Entry>,
    /// Not in the store: of a file, or of this process alone.
    given: HashMap<String, Entry>,
    /// Whether a token is needed at all.
    is_on: bool,
}

struct Entry {
    bearer: Bearer,
    expires: Option<Timestamp>,
}

/// Whoever has a token.
#[derive(Clone, Debug)]
pub(crate) struct Bearer {
    /// What they may do.
    pub(crate) grant: Arc<Grant>,
    /// What they are called where it is written down who did something.
    pub(crate) who: Arc<str>,
}

impl Bearer {
    /// Somebody on this machine, where no token is needed.
    fn local() -> Self {
        Self { grant: Arc::new(Grant::everything()), who: Arc::from("local") }
    }
}

impl Tokens {
    /// Adds one that is not stored. With it, nobody is let in without.
    pub(crate) fn give(&self, token: Token) {
        let mut table = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let (digest, entry) = entry(token);
        table.given.insert(digest, entry);
        table.is_on = true;
    }

    /// A token for somebody in this process, whether or not one is needed yet; `None` if the system
    /// has no random numbers.
    pub(crate) fn own(&self, scope: Scope) -> Option<Secret> {
        let mut table = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let grant = Grant { tenant: None, scopes: vec![scope] };
        let (secret, token) = Token::make("", grant, (Timestamp(0), None)).ok()?;
        let (digest, entry) = entry(token);
        table.given.insert(digest, entry);
        Some(secret)
    }

    /// Takes in what the store says now.
    pub(crate) fn read(&self, settings: &[Setting]) {
        let stored: HashMap<String, Entry> =
            settings.iter().filter_map(Token::kept).map(entry).collect();
        let mut table = self.0.write().unwrap_or_else(PoisonError::into_inner);
        table.is_on |= !stored.is_empty();
        table.stored = stored;
    }

    /// Whether a token is needed. Once it is, it stays so: who revokes the last one does not open
    /// the door to everybody.
    pub(crate) fn is_on(&self) -> bool {
        self.0.read().unwrap_or_else(PoisonError::into_inner).is_on
    }

    /// Who has this, and what they may do.
    pub(crate) fn bearer(&self, bearer: Option<&str>, now: Timestamp) -> Result<Bearer, Denied> {
        let table = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let Some(bearer) = bearer else {
            return if table.is_on { Err(Denied::Missing) } else { Ok(Bearer::local()) };
        };
        let digest = digest(&Secret::new(bearer.to_owned()));
        let entry = table.stored.get(&digest).or_else(|| table.given.get(&digest));
        let entry = entry.filter(|entry| entry.expires.is_none_or(|at| now < at));
        match entry {
            Some(entry) => Ok(entry.bearer.clone()),
            // Whoever needs none may bring any.
            None if !table.is_on => Ok(Bearer::local()),
            None => Err(Denied::Unknown),
        }
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tokens")
    }
}

fn entry(token: Token) -> (String, Entry) {
    let (who, expires) = (Arc::from(token.who()), token.expires);
    let bearer = Bearer { grant: Arc::new(token.grant), who };
    (token.digest, Entry { bearer, expires })
}
