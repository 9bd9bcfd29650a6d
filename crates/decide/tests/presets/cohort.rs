//! To do.
