//! Seeds in which nothing may go wrong, seeds in which something is broken and must be found, and
//! all that can happen in a small model of claims, leases and tokens.

mod seeds;
mod model;
