//! A worker with a scripted server.

#![allow(clippy::unwrap_used, reason = "these are tests, also what is not in a test itself")]
#![allow(clippy::wildcard_enum_match_arm, reason = "a test picks the message that it is about")]

mod server;
mod world;
mod session;
mod output;
mod detection;
mod attempts;
mod leases;
mod leaving;
mod commands;
mod stops;
mod deaths;
