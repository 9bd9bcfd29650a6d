//! The next type of a lane, and its detector.

use std::collections::{BTreeMap, BTreeSet};

use model::Timestamp;

use crate::lane::policy_of;
use crate::{Group, Lane, Phase, Turn, Type, View};

impl Lane {
    /// The next type: a requested one, else the first due one after the type of the last run, in
    /// the order of their names.
    pub fn turn(&self, view: &View<'_>) -> Turn {
        let ready = || view.types.iter().filter(|(_, kind)| kind.can_begin());
        let is_due = |(name, kind): &(&String, &Type)| {
            self.due_at(name, &kind.policy).is_none_or(|at| at <= view.now)
        };
        let asked = ready().find(|(name, _)| self.asked.contains(*name));
        let after = || ready().filter(is_due).find(|(name, _)| **name > self.last);
        let found = asked.or_else(after).or_else(|| ready().find(is_due));
        match found {
            Some((name, kind)) if kind.has_room() => Turn::Begin(name.clone()),
            Some(_) => Turn::Elsewhere,
            None => Turn::Wait(self.next_due(view)),
        }
    }

    /// When the next type is due that has a detector here. A type that is due already waits for
    /// something else than the time.
    fn next_due(&self, view: &View<'_>) -> Option<Timestamp> {
        let can_ever = |kind: &Type| kind.policy.is_enabled && !kind.detectors.is_empty();
        let types = view.types.iter().filter(|(_, kind)| can_ever(kind));
        let due = types.filter_map(|(name, kind)| self.due_at(name, &kind.policy));
        due.filter(|at| *at > view.now).min()
    }

    pub(crate) fn begin(&mut self, lane: &str, kind: &str, view: &View<'_>) {
        let policy = policy_of(view, kind);
        self.n_runs += 1;
        self.began_ms.insert(kind.to_owned(), view.now.0);
        kind.clone_into(&mut self.last);
        self.group = Some(Group {
            kind: kind.to_owned(),
            run: format!("{lane}/{}", self.n_runs),
            started_ms: view.now.0,
            until_ms: (view.now + policy.runtime_max).0,
            is_asked: self.asked.remove(kind),
            phase: Phase::Detecting { since_ms: None, tried: BTreeSet::new() },
            worker: String::new(),
            error: String::new(),
            is_out_of_time: false,
            n_proposed: 0,
            n_taken: 0,
            refused: BTreeMap::new(),
        });
        self.choose(view);
    }

    /// Selects the detector: the last one as long as it is healthy, else the next by name. If no
    /// worker is left, the detection is over.
    pub(crate) fn choose(&mut self, view: &View<'_>) {
        let Some(group) = &mut self.group else { return };
        let Phase::Detecting { since_ms, tried } = &mut group.phase else { return };
        let kind = view.types.get(&group.kind);
        let can = kind.map(|kind| kind.detectors.as_slice()).unwrap_or_default().iter();
        let mut can: Vec<&str> = can
            .filter(|one| one.has_room && !tried.contains(&one.worker))
            .map(|one| one.worker.as_str())
            .collect();
        can.sort_unstable();
        let last = self.detectors.get(&group.kind).map(String::as_str).unwrap_or_default();
        let chosen = can.iter().find(|worker| **worker >= last).or_else(|| can.first());
        if let Some(chosen) = chosen {
            *since_ms = Some(view.now.0);
            (*chosen).clone_into(&mut group.worker);
            self.detectors.insert(group.kind.clone(), (*chosen).to_owned());
        } else {
            if group.error.is_empty() {
                "no worker was there to look".clone_into(&mut group.error);
            }
            group.phase = Phase::Executing;
        }
    }
}

impl Type {
    /// Whether a run could begin now, on this scheduler or on a peer.
    fn can_begin(&self) -> bool {
        self.policy.is_enabled && (self.has_room() || self.is_elsewhere)
    }

    fn has_room(&self) -> bool {
        self.detectors.iter().any(|one| one.has_room)
    }
}
