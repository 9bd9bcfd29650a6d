//! Rules about the job alone. They make the order of jobs; `crate::order` computes them, as a key
//! that does not change with time.

use model::policy::Rule;

use crate::rule::{Judge, Sheet};

pub(super) const PRIORITY: Sheet = Sheet {
    rule: Rule::Priority,
    rewards: "The submitter's priority, clamped to ±16: 1024 for each step in `aging`; in \
              `balanced`, sixteen steps give back half of what the length takes",
    range: "-16384 … 16384 in `aging`",
    judge: Judge::Order,
};

pub(super) const AGE: Sheet = Sheet {
    rule: Rule::Age,
    rewards: "A job that has been ready for long: 16 for each second in `aging`, 1 in `balanced`, \
              without end",
    range: "0 …",
    judge: Judge::Order,
};

pub(super) const RARITY: Sheet = Sheet {
    rule: Rule::Rarity,
    rewards: "A job that few free slots could run: 500 divided by their number",
    range: "0 … 500",
    judge: Judge::Order,
};

pub(super) const ON_DEMAND: Sheet = Sheet {
    rule: Rule::OnDemand,
    rewards: "A job that a person waits for: 4096, and 32 for each second up to an hour, in \
              `aging`; in `balanced`, four fifths of what the length takes",
    range: "0 … 119296 in `aging`",
    judge: Judge::Order,
};

pub(super) const LENGTH: Sheet = Sheet {
    rule: Rule::Length,
    rewards: "Short jobs: a job ages as if it had become ready later by 400 times its length",
    range: "… 0",
    judge: Judge::Order,
};
