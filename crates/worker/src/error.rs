//! What can end a worker.

use std::io;

/// Why a worker could not be built, or does not come back. A broken connection is not among
/// these: a worker comes back from that.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// What was given to the builder may not be so: name the field, and change it.
    #[error(transparent)]
    Invalid(#[from] proto::Invalid),
    /// The server's address cannot be read.
    #[error("`{address}` is not the address of a server")]
    Address {
        /// As it was given.
        address: String,
        /// What is wrong with it.
        source: tonic::transport::Error,
    },
    /// The server speaks another version of the protocol: update one of the two.
    #[error(
        "the server speaks version {theirs} of the worker's protocol, \
         this worker versions {oldest} to {newest}; update the older one of the two"
    )]
    Protocol {
        /// What the server answered.
        theirs: u32,
        /// The oldest that we understand.
        oldest: u32,
        /// The newest that we understand.
        newest: u32,
    },
    /// The server will not have this worker, and would not if it came back.
    #[error("the server does not take this worker: {message}")]
    Refused {
        /// In the server's words.
        message: String,
    },
    /// The machine does not give what a worker needs to start.
    #[error("could not get {what} from the system")]
    System {
        /// What we asked for.
        what: &'static str,
        /// Why not.
        source: io::Error,
    },
}
