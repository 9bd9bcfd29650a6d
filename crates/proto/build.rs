//! Compiles the `.proto` files to Rust without a system `protoc`.

use std::error::Error;
use std::path::PathBuf;
use std::{env, fs};

use prost::Message as _;

const FILES: [&str; 6] = [
    "maitre/v1/job.proto",
    "maitre/v1/worker.proto",
    "maitre/v1/jobs.proto",
    "maitre/v1/admin.proto",
    "maitre/v1/detection.proto",
    "maitre/v1/schedules.proto",
];

fn main() -> Result<(), Box<dyn Error>> {
    let descriptors = protox::compile(FILES, ["proto"])?;
    // Server reflection answers with the same descriptors.
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?);
    fs::write(out.join("descriptors.bin"), descriptors.encode_to_vec())?;
    // Boxed, because otherwise every message to a worker has the size of the largest.
    let builder = tonic_prost_build::configure().boxed(".maitre.v1.Offer.spec");
    // Shared, so that a worker keeps sent output without a copy.
    let builder = builder.bytes(".maitre.v1.LogChunk.bytes");
    builder.compile_fds(descriptors)?;
    println!("cargo::rerun-if-changed=proto");
    Ok(())
}
