//! The guarantees of a lane.

#![allow(clippy::unwrap_used, reason = "these are tests, also what is not in a test itself")]

mod lane;
mod turn;
mod sieve;
mod descriptor;
