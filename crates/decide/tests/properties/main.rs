//! What holds for every decision, on random worlds, for every preset.

mod worlds;
mod checker;
mod decisions;
mod parts;
mod events;
mod stories;
mod shares;
mod deficits;
mod starvation;
