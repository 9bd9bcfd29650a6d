//! Each test gives the checker a history with one violation, which it must find.

mod sound;
mod doctored;
mod forgotten;
mod evicted;
mod calm;
mod output;
mod several;
