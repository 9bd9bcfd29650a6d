//! One fast machine instead of many slow ones.
//!
//! A machine as fast as all slots together, that may set jobs aside for others, does the jobs with
//! most weight for their area first. The mean moment at which it worked on a job, and half the
//! job's length, add up to no more than the end of the job in any schedule, summed by weight.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::number::float;
use crate::workload::Job;

/// The least weighted sum of ends of jobs, given by arrival, on slots that together do so much, and
/// of which the fastest is so fast.
pub(crate) fn weighted_ends(
    jobs: &[&Job],
    (slots, fastest): (f64, f64),
    weight: impl Fn(&Job) -> f64,
) -> f64 {
    if slots <= 0.0 {
        return 0.0;
    }
    let order = order(jobs, &weight);
    let mut left: Vec<f64> = jobs.iter().map(|job| float(job.area().into()) / slots).collect();
    let mut machine = Machine { waiting: BinaryHeap::new(), now: 0.0, busy: vec![0.0; jobs.len()] };
    for (ix, job) in jobs.iter().enumerate() {
        machine.work(&mut left, float(job.arrival.0.into()));
        machine.waiting.push(Reverse((order[ix], ix)));
    }
    machine.work(&mut left, f64::INFINITY);
    let ends = jobs.iter().zip(&machine.busy).map(|(job, busy)| {
        let time = float(job.area().into()) / slots;
        // What takes no time is done when it arrives.
        let mean = if time > 0.0 { busy / time } else { float(job.arrival.0.into()) };
        let end = mean + float(job.duration.0.into()) / fastest / 2.0;
        weight(job) * end
    });
    ends.sum()
}

/// The place of each job by weight for its area; the heaviest is first.
fn order(jobs: &[&Job], weight: &impl Fn(&Job) -> f64) -> Vec<usize> {
    let density = |job: &Job| weight(job) / float(job.area().max(1).into());
    let densities: Vec<f64> = jobs.iter().map(|job| density(job)).collect();
    let mut sorted: Vec<usize> = (0..jobs.len()).collect();
    sorted.sort_by(|one, two| densities[*two].total_cmp(&densities[*one]).then(one.cmp(two)));
    let mut order = vec![0; jobs.len()];
    for (place, ix) in sorted.into_iter().enumerate() {
        order[ix] = place;
    }
    order
}

struct Machine {
    waiting: BinaryHeap<Reverse<(usize, usize)>>,
    now: f64,
    /// For each job, the sum of the moments at which it was worked on.
    busy: Vec<f64>,
}

impl Machine {
    /// Works until a moment, on the first job that waits.
    fn work(&mut self, left: &mut [f64], until: f64) {
        while self.now < until {
            let Some(Reverse((_, ix))) = self.waiting.peek().copied() else {
                self.now = until;
                return;
            };
            let time = left[ix].min(until - self.now);
            self.busy[ix] += time * (self.now + time / 2.0);
            self.now += time;
            if left[ix] <= time {
                left[ix] = 0.0;
                self.waiting.pop();
            } else {
                left[ix] -= time;
            }
        }
    }
}
