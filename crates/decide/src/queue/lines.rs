//! Jobs join the line of their like, and leave it.

use std::collections::BTreeMap;

use model::policy::Order;
use model::{Fixed, Millis, Timestamp};

use super::{Head, LENGTH_UNKNOWN, Line, LineKey, Queue, needs_age_order};
use crate::catalogue::Catalogue;
use crate::lanes::LaneKey;
use crate::policies::Policies;
use crate::table::{JobIx, LineIx};

impl Queue {
    pub(super) fn line_up(
        &mut self,
        ix: JobIx,
        catalogue: &mut Catalogue,
        policies: &Policies,
        now: Timestamp,
    ) {
        let waiting = &mut self.jobs[ix];
        let policy = policies.of(catalogue.fit_of(waiting.class).key.pool);
        waiting.timer = waiting.next_change(policy, now);
        if let Some(moment) = waiting.timer {
            self.timers.set(moment, ix);
        }
        if waiting.starts() > now {
            return;
        }
        let mode = waiting.standing.mode(policy, now);
        let key = LineKey {
            class: waiting.class,
            tenant: waiting.tenant,
            mode,
            is_known: policy.order != Order::Shortest || waiting.standing.estimate.is_some(),
            stage: waiting.stage(now),
            ask: waiting.extra().ask,
        };
        waiting.major = waiting.standing.major(policy, mode);
        let order = waiting.order_key();
        let by_age = needs_age_order(policy).then(|| (order.ready, order.id.clone()));
        let cost = waiting.cost;
        let length = waiting.standing.estimate.unwrap_or(LENGTH_UNKNOWN);
        let lasts = waiting.lasts().unwrap_or(LENGTH_UNKNOWN);
        let (standing, head) = (waiting.standing, waiting.head(ix));
        catalogue.holding_mut(key.class).n_in_line += 1;
        let class = &catalogue.classes[key.class];
        self.crowd.add_work(key.tenant, class.key.slots, standing.estimate);
        let berth = class.berth;
        let lane_key = LaneKey::new(&key, berth, policy);
        let line_ix = self.open_line((key, lane_key), &head, catalogue);
        self.jobs[ix].line = Some(line_ix);
        let line = &mut self.lines[line_ix];
        if line.lane.is_some() {
            self.crowd.add((key.tenant, berth), 1);
        }
        if order < line.head.key {
            let old = std::mem::replace(&mut line.head, head);
            if let Some(lane) = line.lane {
                self.lanes.reorder(lane, line_ix, &old.key, order.clone());
            }
        }
        line.cost_min = if line.jobs.is_empty() { cost } else { line.cost_min.min(cost) };
        line.length_min = line.length_min.min(length);
        line.lasts_min = line.lasts_min.min(lasts);
        line.scored_min = line.scored_min.min(standing.length(Millis::ZERO));
        line.ready_min = line.ready_min.min(order.ready);
        line.jobs.insert(order, ix);
        if let Some(by_age) = by_age {
            let oldest = line.oldest();
            line.by_age.insert(by_age, ix);
            self.age_line(line_ix, oldest);
        }
    }

    /// The oldest job of a line may be another than `before`.
    fn age_line(&mut self, ix: LineIx, before: Option<Timestamp>) {
        let line = &self.lines[ix];
        if let (Some(lane), oldest) = (line.lane, line.oldest())
            && oldest != before
        {
            self.lanes.age(lane, ix, before, oldest);
        }
    }

    pub(super) fn step_out(&mut self, ix: JobIx, catalogue: &mut Catalogue) {
        let waiting = &mut self.jobs[ix];
        if waiting.timer.take().is_some() {
            self.timers.cancel();
        }
        let Some(line_ix) = waiting.line.take() else { return };
        let (class, tenant) = (waiting.class, waiting.tenant);
        let estimate = waiting.standing.estimate;
        catalogue.holding_mut(class).n_in_line -= 1;
        self.crowd.remove_work(tenant, catalogue.classes[class].key.slots, estimate);
        let line = &mut self.lines[line_ix];
        if line.lane.is_some() {
            self.crowd.remove((tenant, line.lane_key.berth), 1);
        }
        let key = waiting.order_key();
        let was_head = line.head.job == ix;
        if was_head {
            line.jobs.pop_first();
        } else {
            line.jobs.remove(&key);
        }
        if !line.by_age.is_empty() {
            let oldest = line.oldest();
            line.by_age.remove(&(key.ready, key.id.clone()));
            self.age_line(line_ix, oldest);
        }
        let line = &mut self.lines[line_ix];
        match line.jobs.values().next() {
            None => self.close_line(line_ix, catalogue),
            Some(first) if was_head => {
                line.head = self.jobs[*first].head(*first);
                if let Some(lane) = line.lane {
                    self.lanes.reorder(lane, line_ix, &key, line.head.key.clone());
                }
            }
            Some(_) => {}
        }
    }

    fn open_line(
        &mut self,
        (key, lane_key): (LineKey, LaneKey),
        head: &Head,
        catalogue: &mut Catalogue,
    ) -> LineIx {
        if let Some(ix) = self.line_of.get(&key) {
            return ix;
        }
        let ix = self.lines.insert(Line {
            key,
            jobs: BTreeMap::new(),
            head: head.clone(),
            by_age: BTreeMap::new(),
            cost_min: Fixed::ZERO,
            length_min: LENGTH_UNKNOWN,
            lasts_min: LENGTH_UNKNOWN,
            scored_min: LENGTH_UNKNOWN,
            ready_min: head.key.ready,
            lane_key,
            lane: None,
            place: catalogue.classes[key.class].lines.len(),
            blocked_in: 0,
        });
        catalogue.classes[key.class].lines.push(ix);
        self.line_of.insert(key, ix);
        self.asked.add(&key, ix);
        self.join_lane(ix, catalogue);
        ix
    }

    fn close_line(&mut self, ix: LineIx, catalogue: &mut Catalogue) {
        self.leave_lane(ix, catalogue);
        let line = self.lines.remove(ix);
        let class = &mut catalogue.classes[line.key.class];
        class.lines.swap_remove(line.place);
        if let Some(moved) = class.lines.get(line.place) {
            self.lines[*moved].place = line.place;
        }
        self.line_of.remove(&line.key);
        self.asked.remove(&line.key, ix);
    }

    /// Stands a line beside the others, unless its resource is not to be had.
    pub(super) fn join_lane(&mut self, ix: LineIx, catalogue: &mut Catalogue) {
        let line = &mut self.lines[ix];
        if !self.asked.parks(&line.key) {
            let key = line.head.key.clone();
            let lane = self.lanes.join(line.lane_key, ix, key, &mut catalogue.audiences.berths);
            line.lane = Some(lane);
            self.crowd.add((line.key.tenant, line.lane_key.berth), line.jobs.len());
            self.lanes.age(lane, ix, None, line.oldest());
        }
    }

    pub(super) fn leave_lane(&mut self, ix: LineIx, catalogue: &mut Catalogue) {
        let line = &mut self.lines[ix];
        if let Some(lane) = line.lane.take() {
            self.lanes.age(lane, ix, line.oldest(), None);
            self.lanes.leave(lane, ix, &line.head.key, &mut catalogue.audiences.berths);
            self.crowd.remove((line.key.tenant, line.lane_key.berth), line.jobs.len());
        }
    }
}
