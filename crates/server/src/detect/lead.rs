//! Who leads a lane: one scheduler at a time, by a lease in the store.

use std::collections::BTreeSet;

use ::detect::{Lane, Turn, View};
use futures_util::FutureExt as _;
use model::maxima::TYPES_MAX;
use model::{Millis, Timestamp};
use proto::v1;
use proto::v1::server_message::Message;
use store::{Lead, Note};

use super::asked::removals;
use super::note::Activity;
use super::{Led, Other};
use crate::scheduler::{Answer, Scheduler};
use crate::timers::Timer;

/// What a lane is called among all that is led.
pub(crate) const PREFIX: &str = "lane/";

impl Scheduler {
    /// Asks for the lead of every lane that has something to do here and that nobody leads.
    pub(super) fn seek_leads(&mut self, now: Timestamp) {
        for lane in self.lanes_wanted() {
            if self.detection.lanes.contains_key(&lane) {
                continue;
            }
            match self.turn_of(&lane, now) {
                Turn::Begin(_) => self.ask_lead(&lane, now),
                Turn::Elsewhere | Turn::Wait(None) => {}
                Turn::Wait(Some(at)) => self.timers.set(at, Timer::Lane(lane)),
            }
        }
    }

    /// Whose turn it is in a lane that is not led here, as far as is known.
    fn turn_of(&self, lane: &str, now: Timestamp) -> Turn {
        let lead = || Turn::Begin(String::new());
        let Some(other) = self.detection.others.get(lane) else { return lead() };
        if other.until > now {
            return Turn::Wait(Some(other.until));
        }
        if other.lane.group.is_some() || self.is_asked_of(lane) {
            return lead();
        }
        let types = self.types_of(lane);
        other.lane.turn(&View { now, types: &types, is_told: false, n_unfinished: None })
    }

    /// Prolongs what is led, and finds out what others may have let go.
    pub(crate) fn renew_leads(&mut self) {
        let (now, lanes) = (self.store.now(), self.detection.lanes.keys());
        for lane in lanes.cloned().collect::<Vec<String>>() {
            self.detection.not_before.remove(&lane);
            self.ask_lead(&lane, now);
        }
        if self.is_shared() && !self.detection.types.is_empty() {
            self.call(|store| {
                async move { Answer::Lanes(store.leads(PREFIX.to_owned()).await) }.boxed()
            });
        }
        self.publish_next();
        self.detection.is_dirty = true;
    }

    /// How often.
    pub(crate) fn renew_leads_every(&self) -> Millis {
        Millis((self.config.lease.0 / 3).max(1))
    }

    /// All lanes, as they are now.
    pub(crate) fn lanes_seen(&mut self, answer: Result<Vec<Lead>, store::Error>) {
        let Some(leads) = self.ok(answer) else { return };
        let other = |lead: Lead| {
            let name = lead.name.strip_prefix(PREFIX)?.to_owned();
            let lane = serde_json::from_str(&lead.document).unwrap_or_default();
            // What this scheduler let go of is nobody's, whatever was seen a moment ago.
            let is_own = lead.holder == self.detection.holder;
            let until = if is_own { Timestamp(i64::MIN) } else { lead.until };
            Some((name, Other { lane, until }))
        };
        self.detection.others = leads.into_iter().filter_map(other).collect();
        self.detection.is_dirty = true;
    }

    /// Lanes of types that workers here can look for, and lanes in which something runs.
    fn lanes_wanted(&self) -> BTreeSet<String> {
        let known = self.detection.types.iter();
        let described = known.filter(|(_, known)| known.descriptor.is_some());
        let here = described.filter(|(name, _)| !self.detectors(name).is_empty());
        let here = here.map(|(_, known)| known.now.policy.lane.clone());
        let others = self.detection.others.iter();
        let running = others.filter(|(_, other)| other.lane.group.is_some());
        here.chain(running.map(|(lane, _)| lane.clone())).collect()
    }

    fn ask_lead(&mut self, lane: &str, now: Timestamp) {
        let is_early = self.detection.not_before.get(lane).is_some_and(|at| *at > now);
        if is_early || self.detection.letting_go.contains(lane) {
            return;
        }
        // A little less than until leads are seen to again.
        let wait = Millis((self.config.lease.0 / 4).max(1));
        self.detection.not_before.insert(lane.to_owned(), now + wait);
        let (name, lane) = (format!("{PREFIX}{lane}"), lane.to_owned());
        let (holder, length) = (self.detection.holder.clone(), self.config.lease);
        self.call(|store| {
            async move { Answer::Lead(lane, store.lead(name, holder, length).await) }.boxed()
        });
    }

    /// Lets whoever has something to do lead a lane in which nothing is to be done here.
    pub(super) fn let_go(&mut self, name: &str) {
        let Some(led) = self.detection.lanes.remove(name) else { return };
        let other = Other { lane: led.lane, until: Timestamp(i64::MIN) };
        self.detection.others.insert(name.to_owned(), other);
        self.detection.letting_go.insert(name.to_owned());
        let (lead, lane) = (format!("{PREFIX}{name}"), name.to_owned());
        let holder = self.detection.holder.clone();
        self.call(|store| {
            async move { Answer::LetGo(lane, store.lead(lead, holder, Millis::ZERO).await) }.boxed()
        });
    }

    /// Others may lead it now.
    pub(crate) fn let_gone(&mut self, name: &str, answer: Result<Option<Lead>, store::Error>) {
        self.detection.letting_go.remove(name);
        self.detection.is_dirty = true;
        // One that is not let go of runs out.
        self.ok(answer);
    }

    /// The store says who leads.
    pub(crate) fn lead(&mut self, name: &str, answer: Result<Option<Lead>, store::Error>) {
        // One that failed, or that another has, is asked for again after a while.
        let Some(lead) = self.ok(answer) else { return };
        let Some(lead) = lead else {
            self.lose_lane(name);
            return;
        };
        self.detection.is_dirty = true;
        self.detection.not_before.remove(name);
        self.detection.others.remove(name);
        let known = self.detection.lanes.get_mut(name).filter(|led| led.token == lead.token);
        if let Some(led) = known {
            led.until = lead.until;
            return;
        }
        let mut lane: Lane = serde_json::from_str(&lead.document).unwrap_or_default();
        let run = lane.group.as_ref().map(|group| group.run.clone());
        lane.inherit();
        let led = Led {
            token: lead.token,
            until: lead.until,
            lane,
            is_busy: false,
            is_unkept: true,
            told: None,
            sieve: None,
            n_pages: 0,
            ended: None,
            n_unfinished: None,
            looked_at: self.store.now(),
            heeded: BTreeSet::new(),
        };
        self.detection.lanes.insert(name.to_owned(), led);
        if let Some(run) = run {
            let what = format!("leads lane `{name}` now, and goes on with run {run}");
            self.write_down(&Activity::new("lane", &self.detection.holder, "", what));
        }
    }

    /// Another leads it now.
    fn lose_lane(&mut self, name: &str) {
        let Some(led) = self.detection.lanes.remove(name) else { return };
        tracing::warn!(lane = name, "another scheduler leads the lane now");
        if let Some((worker, group)) = led.told.zip(led.lane.group)
            && let Some(stream) = self.fleet.stream_of(&worker)
        {
            let reason = "another scheduler leads the lane".to_owned();
            let stop = v1::StopDetection { run: group.run, reason };
            self.send(stream, Message::StopDetection(stop));
        }
    }

    /// Keeps a lane as it is now, after what there is to say about it.
    pub(super) fn keep(&mut self, name: &str, notes: Vec<Note>) {
        let types = self.types_of(name);
        let Some(led) = self.detection.lanes.get_mut(name) else { return };
        (led.is_busy, led.is_unkept) = (true, false);
        // Another scheduler may know types that are not known here, but not any number of them.
        if led.lane.began_ms.len() > TYPES_MAX {
            led.lane.forget_others(&types);
        }
        let (token, lane) = (led.token, name.to_owned());
        let document = serde_json::to_string(&led.lane).expect("its names are strings");
        let lead = format!("{PREFIX}{name}");
        let done = removals(led.heeded.iter().cloned());
        self.call(move |store| {
            async move {
                let noted = if notes.is_empty() { Ok(()) } else { store.note(notes).await };
                let mut kept = match noted {
                    Ok(()) => store.keep(lead, token, document).await,
                    Err(error) => Err(error),
                };
                if kept.as_ref().is_ok_and(|is_kept| *is_kept) && !done.is_empty() {
                    kept = store.set(done).await.map(|()| true);
                }
                Answer::Kept(lane, kept)
            }
            .boxed()
        });
    }

    /// The store has it, or another leads the lane.
    pub(crate) fn kept(&mut self, name: &str, answer: Result<bool, store::Error>) {
        let answer = self.ok(answer);
        if answer == Some(false) {
            self.lose_lane(name);
            return;
        }
        self.detection.is_dirty = true;
        let Some(led) = self.detection.lanes.get_mut(name) else { return };
        led.is_busy = false;
        led.is_unkept |= answer.is_none();
        if answer.is_some() {
            let heeded = std::mem::take(&mut led.heeded);
            self.detection.asked.retain(|asked, _| !heeded.contains(asked));
        }
    }

    /// Lets others lead at once, because this scheduler stops.
    pub(crate) fn let_leads_go(&mut self) {
        let holder = self.detection.holder.clone();
        let lanes = std::mem::take(&mut self.detection.lanes).into_keys();
        let lanes = lanes.map(|lane| format!("{PREFIX}{lane}"));
        let schedules = self.recurring.let_go().map(str::to_owned);
        for name in lanes.chain(schedules) {
            let holder = holder.clone();
            self.call(move |store| {
                async move {
                    Answer::Written(store.lead(name, holder, Millis::ZERO).await.map(drop))
                }
                .boxed()
            });
        }
    }
}
