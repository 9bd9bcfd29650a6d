//! Errors that end a worker.

use std::io;

/// The reason why a worker could not be built, or gave up. After a broken connection, a worker
/// reconnects instead.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A setting of the builder is invalid: change the named field.
    #[error(transparent)]
    Invalid(#[from] proto::Invalid),
    /// The server's address is invalid.
    #[error("`{address}` is not the address of a server")]
    Address {
        /// The given address.
        address: String,
        /// The problem with it.
        source: tonic::transport::Error,
    },
    /// The server has a different version of the protocol: update one of the two.
    #[error(
        "the server speaks version {theirs} of the worker's protocol, \
         this worker versions {oldest} to {newest}; update the older one of the two"
    )]
    Protocol {
        /// The server's version.
        theirs: u32,
        /// The oldest version that this worker supports.
        oldest: u32,
        /// The newest version that this worker supports.
        newest: u32,
    },
    /// The server rejects this worker, and would reject it again.
    #[error("the server does not take this worker: {message}")]
    Refused {
        /// The server's message.
        message: String,
    },
    /// The machine lacks a resource that the worker needs to start.
    #[error("could not get {what} from the system")]
    System {
        /// The resource.
        what: &'static str,
        /// The error of the system.
        source: io::Error,
    },
}
