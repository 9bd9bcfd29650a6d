//! Who leads a lane: one scheduler at a time, by a lease in the store.

use std::collections::BTreeSet;

use ::detect::Lane;
use futures_util::FutureExt as _;
use model::Millis;
use model::maxima::TYPES_MAX;
use proto::v1;
use proto::v1::server_message::Message;
use store::{Lead, Note};

use super::Led;
use super::note::Activity;
use crate::scheduler::{Answer, Scheduler};

/// What a lane is called among all that is led.
pub(crate) const PREFIX: &str = "lane/";

impl Scheduler {
    /// Asks for the lead of every lane that has something to do here and is not led.
    pub(super) fn seek_leads(&mut self) {
        for lane in self.lanes_wanted() {
            if !self.detection.lanes.contains_key(&lane) {
                self.ask_lead(&lane);
            }
        }
    }

    /// Prolongs what is led, and asks for what others may have let go.
    pub(crate) fn renew_leads(&mut self) {
        let mut lanes = self.lanes_wanted();
        lanes.extend(self.detection.lanes.keys().cloned());
        self.detection.asking.clear();
        for lane in lanes {
            self.ask_lead(&lane);
        }
        self.detection.is_dirty = true;
    }

    /// How often.
    pub(crate) fn renew_leads_every(&self) -> Millis {
        Millis((self.config.lease.0 / 3).max(1))
    }

    /// Lanes of types that workers here can look for.
    fn lanes_wanted(&self) -> BTreeSet<String> {
        let known = self.detection.types.iter();
        let described = known.filter(|(_, known)| known.descriptor.is_some());
        let here = described.filter(|(name, _)| !self.detectors(name).is_empty());
        here.map(|(_, known)| known.now.policy.lane.clone()).collect()
    }

    fn ask_lead(&mut self, lane: &str) {
        if !self.detection.asking.insert(lane.to_owned()) {
            return;
        }
        let (name, lane) = (format!("{PREFIX}{lane}"), lane.to_owned());
        let (holder, length) = (self.detection.holder.clone(), self.config.lease);
        self.call(|store| {
            async move { Answer::Lead(lane, store.lead(name, holder, length).await) }.boxed()
        });
    }

    /// The store says who leads.
    pub(crate) fn lead(&mut self, name: String, answer: Result<Option<Lead>, store::Error>) {
        // One that failed, or that another has, is asked for again with the next round of leads.
        let Some(lead) = self.ok(answer) else { return };
        let Some(lead) = lead else {
            self.lose_lane(&name);
            return;
        };
        self.detection.is_dirty = true;
        self.detection.asking.remove(&name);
        let known = self.detection.lanes.get_mut(&name).filter(|led| led.token == lead.token);
        if let Some(led) = known {
            led.until = lead.until;
            return;
        }
        let mut lane: Lane = serde_json::from_str(&lead.document).unwrap_or_default();
        let run = lane.group.as_ref().map(|group| group.run.clone());
        lane.inherit();
        let what = match run {
            Some(run) => format!("leads lane `{name}`, and goes on with run {run}"),
            None => format!("leads lane `{name}`"),
        };
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
        };
        self.detection.lanes.insert(name, led);
        let holder = self.detection.holder.clone();
        self.write_down(&Activity::new("lane", &holder, "", what));
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
        self.call(move |store| {
            async move {
                let noted = if notes.is_empty() { Ok(()) } else { store.note(notes).await };
                let kept = match noted {
                    Ok(()) => store.keep(lead, token, document).await,
                    Err(error) => Err(error),
                };
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
        if let Some(led) = self.detection.lanes.get_mut(name) {
            led.is_busy = false;
            led.is_unkept |= answer.is_none();
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
