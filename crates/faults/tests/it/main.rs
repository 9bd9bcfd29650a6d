//! The checker is shown histories in which one thing is wrong, and must find that one.

mod sound;
mod doctored;
mod forgotten;
mod evicted;
mod calm;
mod output;
mod several;
