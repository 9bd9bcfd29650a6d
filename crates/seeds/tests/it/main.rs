//! Seeds without violations, seeds with intended bugs that must be found, and an exhaustive check
//! of a small model of claims, leases and tokens.

mod seeds;
mod model;
