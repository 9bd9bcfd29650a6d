//! Large files are compressed.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use worker::{Attempt, Descriptor, Detection, Done, Failure, Field, FieldKind, Outcome, Proposal};

use crate::Place;
use crate::tree::{COMPRESSED, Found, PARTIAL, ends_in, failed, files, inside};

/// Bytes that are read at a time.
const CHUNK: usize = 64 << 10;
/// What compressing takes at least, in bytes a second, for estimates.
const SPEED: u64 = 1 << 20;
/// Files that are proposed before a rest.
const FOUND_AT_ONCE: usize = 100;

pub(crate) fn descriptor() -> Descriptor {
    Descriptor::new("Compress", "compresses files over a size")
        .admin(
            Field::new("size_min", FieldKind::Whole)
                .default(1 << 20)
                .range(1.0, 1e12)
                .help("files of so many bytes or more are compressed"),
        )
        .worker(
            Field::new("pause", FieldKind::Length)
                .default("0s")
                .range(0.0, 60.0)
                .help("a rest after every 64 KiB, so that others can use the disk"),
        )
        .worker(
            Field::new("look_pause", FieldKind::Length)
                .default("0s")
                .range(0.0, 60.0)
                .help("a rest after every 100 files that are found, for the same reason"),
        )
        .policy("interval", "10m")
        .policy("jobs_max", 3)
        .policy("worker_max", 1)
        .policy("retries_max", 1)
}

/// Proposes every file that is large and not compressed, the largest first.
pub(crate) async fn look(place: Arc<Place>, detection: Detection) -> Result<(), Failure> {
    place.note("looks compress").map_err(failed("write", &place.folder))?;
    let folder = place.folder.clone();
    let looked = tokio::task::spawn_blocking(move || files(&folder)).await;
    let looked = looked.map_err(|error| Failure::transient(error.to_string()))?;
    let (found, n_skipped) = looked.map_err(failed("look at", &place.folder))?;
    let size_min = detection.configuration().admin["size_min"].as_u64().unwrap_or(u64::MAX);
    detection.saw(u64::try_from(found.len()).unwrap_or(u64::MAX), n_skipped);
    let is_left = |file: &Found| !ends_in(&file.path, COMPRESSED) && !ends_in(&file.path, PARTIAL);
    let large = found.into_iter().filter(|file| is_left(file) && file.bytes >= size_min);
    let pause = length(&detection.configuration().worker["look_pause"]);
    for (n, file) in large.enumerate() {
        if n > 0 && n % FOUND_AT_ONCE == 0 {
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = detection.stopped() => return Err(Failure::transient("it was told to stop")),
            }
        }
        let mebibytes = file.bytes >> 20;
        let proposal = Proposal::new(&file.path)
            .payload(file.path.clone())
            .summary(&format!("compress {mebibytes} MiB"))
            .priority(i32::try_from(mebibytes.min(1_000)).unwrap_or(1_000))
            .estimate(Duration::from_secs(file.bytes / SPEED));
        detection.propose(proposal).await;
    }
    Ok(())
}

/// Compresses a file beside itself, then removes it. Done twice, it is done once.
pub(crate) fn run(place: &Place, attempt: &Attempt) -> Outcome {
    let name = String::from_utf8_lossy(attempt.payload()).into_owned();
    let path = inside(&place.folder, &name)?;
    let target = inside(&place.folder, &format!("{name}.{COMPRESSED}"))?;
    place.note(&format!("compresses {name}")).map_err(failed("write", &path))?;
    if !path.exists() && target.exists() {
        return Ok(Done::with_result("it was compressed already"));
    }
    // A part of its own for each attempt: an earlier one may not have noticed that it ended.
    let number = attempt.number();
    let part = inside(&place.folder, &format!("{name}.{number}.{PARTIAL}"))?;
    let written = compress(attempt, &path, &part);
    let written = written.inspect_err(|_| drop(fs::remove_file(&part)))?;
    fs::rename(&part, &target).map_err(failed("rename", &part))?;
    fs::remove_file(&path).map_err(failed("remove", &path))?;
    Ok(Done::with_result(format!("{written} bytes read")))
}

fn compress(attempt: &Attempt, path: &Path, part: &Path) -> Result<u64, Failure> {
    let pause = length(&attempt.configuration().worker["pause"]);
    let mut source = File::open(path).map_err(failed("open", path))?;
    let n_bytes = source.metadata().map_err(failed("look at", path))?.len();
    let target = File::create(part).map_err(failed("create", part))?;
    let mut target = GzEncoder::new(target, Compression::fast());
    let (mut chunk, mut n_read) = (vec![0; CHUNK], 0_u64);
    loop {
        let n = source.read(&mut chunk).map_err(failed("read", path))?;
        if n == 0 {
            break;
        }
        target.write_all(&chunk[..n]).map_err(failed("write", part))?;
        n_read += u64::try_from(n).unwrap_or(0);
        let percent = n_read * 100 / n_bytes.max(1);
        let fraction = f64::from(u32::try_from(percent).unwrap_or(100)) / 100.0;
        attempt.stage(fraction, &format!("{} KiB read", n_read >> 10), "compressing");
        if attempt.is_stopped() {
            return Err(Failure::transient("it was told to stop"));
        }
        std::thread::sleep(pause);
    }
    attempt.stage(1.0, "", "writing");
    let file = target.finish().map_err(failed("finish", part))?;
    file.sync_all().map_err(failed("write", part))?;
    Ok(n_read)
}

/// A length of time, as it is configured.
fn length(value: &serde_json::Value) -> Duration {
    humantime::parse_duration(value.as_str().unwrap_or_default()).unwrap_or_default()
}
