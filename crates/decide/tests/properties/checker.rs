//! Tests of the checker itself: it catches every kind of wrong decision, and accepts right ones.

mod stage;
mod accepted;
mod answers;
mod placements;
mod limits;
mod resources;
mod preemption;
mod holds;
mod purposes;
mod pools;
mod greedy;
