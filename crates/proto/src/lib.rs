//! The protocol `maitre.v1` in protobuf, and its conversion from and to the model.
//!
//! **Boundary:** the only crate that knows both the fields of the messages and the model. Requests
//! are checked here. An error names the field, the value and the limit.

mod check;
mod spec;
mod job;
mod worker;
mod knock;
pub mod json;

pub use check::{Invalid, name, optional_name, text};
pub use knock::{Bearer, Wire, endpoint};

/// The generated messages and services.
#[allow(
    missing_docs,
    unreachable_pub,
    clippy::all,
    clippy::pedantic,
    clippy::allow_attributes_without_reason,
    clippy::as_conversions,
    clippy::clone_on_ref_ptr,
    clippy::str_to_string,
    clippy::wildcard_enum_match_arm,
    unused_qualifications,
    elided_lifetimes_in_paths,
    reason = "generated"
)]
pub mod v1 {
    tonic::include_proto!("maitre.v1");
}

/// The version of the worker's protocol that this build speaks.
pub const PROTOCOL: u32 = 1;
/// The oldest version of it that this build supports.
pub const PROTOCOL_OLDEST: u32 = 1;
/// The descriptors for server reflection.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
