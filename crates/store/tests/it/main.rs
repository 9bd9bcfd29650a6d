//! The promises of all stores, and the data that survives failures.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a test that fails says where")]

mod conformance;
mod twins;
mod crowd;
mod reopened;
mod backup;
mod refused;
mod full;
mod killed;
mod torn;
mod moved;
mod resumed;
mod older;
mod postgres;
mod sealed;
mod series;
mod place;
mod submit;
