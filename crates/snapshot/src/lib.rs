//! The paper.
