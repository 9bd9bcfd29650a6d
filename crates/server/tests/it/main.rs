//! A real scheduler on a real port, with a clock that a test moves, a store that fails when a test
//! says so, and workers that say what a test has them say.

mod store;
mod puppet;
mod site;
mod meet;
mod inventory;
mod learn;
mod submit;
mod offers;
mod ends;
mod leases;
mod heartbeat;
mod restart;
mod moments;
mod foresight;
mod detection;
mod recurring;
mod stale;
mod tasks;
mod doors;
