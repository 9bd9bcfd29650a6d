//! Tests of every rule.
