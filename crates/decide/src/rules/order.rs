//! Rules about the job alone. They make the order of jobs; `crate::order` computes them, as a key
//! that does not change with time.

use model::policy::Rule;

use crate::rule::{Judge, Sheet};

pub(super) const PRIORITY: Sheet = Sheet {
    rule: Rule::Priority,
    rewards: "The submitter's priority from -16 to 16, in `aging`: 1024 for each step",
    range: "-16384 … 16384 in `aging`",
    judge: Judge::Order,
};

pub(super) const AGE: Sheet = Sheet {
    rule: Rule::Age,
    rewards: "Jobs that have been ready for long, in `aging`: 16 for each second, without a limit",
    range: "0 …",
    judge: Judge::Order,
};

pub(super) const RARITY: Sheet = Sheet {
    rule: Rule::Rarity,
    rewards: "Jobs that few free slots could run: 500 divided by their number",
    range: "0 … 500",
    judge: Judge::Order,
};

pub(super) const ON_DEMAND: Sheet = Sheet {
    rule: Rule::OnDemand,
    rewards: "Interactive jobs, in `aging`: 4096, and 32 for each second up to an hour",
    range: "0 … 119296 in `aging`",
    judge: Judge::Order,
};

pub(super) const LENGTH: Sheet = Sheet {
    rule: Rule::Length,
    rewards: "Short jobs: -1 for each second of the expected length",
    range: "… 0",
    judge: Judge::Order,
};
