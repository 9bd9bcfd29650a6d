//! Known answers: what an independent simulator found for the same workloads.

mod bench;
mod het;
mod kth;
mod preset;
