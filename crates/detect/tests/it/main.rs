//! What a lane promises.

mod lane;
mod sieve;
mod descriptor;
