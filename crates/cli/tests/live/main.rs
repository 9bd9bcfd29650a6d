//! A scheduler and workers, as a person meets them: real processes, a real disk.

mod site;
mod first;
mod features;
mod operate;
mod inputs;
mod machines;
mod memory;
mod recover;
mod lists;
mod unprivileged;
mod bulk;
mod overview;
mod shared;
mod watched;
mod patient;
mod unusable;
mod copies;
mod across;
mod role;
mod moving;
mod janitor;
mod lanes;
mod doors;
mod browser;
mod board;
