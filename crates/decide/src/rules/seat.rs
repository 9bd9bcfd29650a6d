//! Rules about the worker that a job gets. `crate::seat` weighs them.

use model::policy::Rule;

use crate::rule::{Judge, Sheet};

pub(super) const RANK: Sheet = Sheet {
    rule: Rule::Rank,
    rewards: "The operator's order of sampled workers: -10 for each step of rank",
    range: "-10 × rank",
    judge: Judge::Seat,
};

pub(super) const FREE: Sheet = Sheet {
    rule: Rule::Free,
    rewards: "Sampled workers with room: 1 for each free slot",
    range: "1 …",
    judge: Judge::Seat,
};

pub(super) const HINT: Sheet = Sheet {
    rule: Rule::Hint,
    rewards: "Workers with the job's locality label: 5 in a sample, 300 in `balanced`",
    range: "0, 5 or 300",
    judge: Judge::Seat,
};

pub(super) const SPECIALIST: Sheet = Sheet {
    rule: Rule::Specialist,
    rewards: "Workers that run few types, so versatile ones stay free: 400 divided by types",
    range: "0 … 400",
    judge: Judge::Seat,
};

pub(super) const HEADROOM: Sheet = Sheet {
    rule: Rule::Headroom,
    rewards: "The part of the worker's slots that is free",
    range: "0 … 100",
    judge: Judge::Seat,
};

pub(super) const LOAD: Sheet = Sheet {
    rule: Rule::Load,
    rewards: "Workers with unused CPU and memory, by their own measurements",
    range: "0 … 90",
    judge: Judge::Seat,
};
