//! Known answers: what an independent simulator found for the same workloads.

mod bench;
mod small;
mod het;
mod kth;
mod openb;
mod preset;
mod quality;
mod conditions;
mod random;
mod shares;
