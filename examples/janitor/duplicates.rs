//! Of files that are the same, one is kept.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};
use worker::{Attempt, Descriptor, Detection, Done, Failure, Field, FieldKind, Outcome, Proposal};

use crate::Place;
use crate::tree::{Found, PARTIAL, ends_in, failed, files, inside};

pub(crate) fn descriptor() -> Descriptor {
    Descriptor::new("Duplicates", "removes files that are there twice")
        .admin(
            Field::new("size_min", FieldKind::Whole)
                .default(1)
                .range(1.0, 1e12)
                .help("smaller files may be there twice"),
        )
        .policy("interval", "1h")
        .policy("jobs_max", 2)
}

/// Proposes to remove every file that is the same as one before it.
pub(crate) async fn look(place: Arc<Place>, detection: Detection) -> Result<(), Failure> {
    place.note("looks duplicates").map_err(failed("write", &place.folder))?;
    let size_min = detection.configuration().admin["size_min"].as_u64().unwrap_or(u64::MAX);
    let folder = place.folder.clone();
    let looked = tokio::task::spawn_blocking(move || same(&folder, size_min)).await;
    let looked = looked.map_err(|error| Failure::transient(error.to_string()))?;
    let (groups, n_files, n_skipped) = looked.map_err(failed("look at", &place.folder))?;
    detection.saw(n_files, n_skipped);
    for paths in groups {
        for path in &paths[1..] {
            let payload = serde_json::json!({ "path": path, "same_as": paths[0] });
            let proposal = Proposal::new(path)
                .payload(payload.to_string())
                .summary(&format!("the same as {}", paths[0]));
            detection.propose(proposal).await;
        }
    }
    Ok(())
}

/// Paths of files that are the same, and how many files were looked at and left out.
fn same(folder: &Path, size_min: u64) -> io::Result<(Vec<Vec<String>>, u64, u64)> {
    let (found, mut n_skipped) = files(folder)?;
    let n_files = u64::try_from(found.len()).unwrap_or(u64::MAX);
    let mut by_size: BTreeMap<u64, Vec<Found>> = BTreeMap::new();
    let whole = found.into_iter().filter(|file| !ends_in(&file.path, PARTIAL));
    for file in whole.filter(|file| file.bytes >= size_min) {
        by_size.entry(file.bytes).or_default().push(file);
    }
    let mut groups: BTreeMap<Vec<u8>, Vec<String>> = BTreeMap::new();
    for file in by_size.into_values().filter(|files| files.len() > 1).flatten() {
        match digest(&folder.join(&file.path)) {
            Ok(digest) => groups.entry(digest).or_default().push(file.path),
            Err(_) => n_skipped += 1,
        }
    }
    let groups = groups.into_values().filter(|paths| paths.len() > 1).collect();
    Ok((groups, n_files, n_skipped))
}

fn digest(path: &Path) -> io::Result<Vec<u8>> {
    let (mut file, mut hasher) = (File::open(path)?, Sha256::new());
    let mut chunk = vec![0; 64 << 10];
    loop {
        match file.read(&mut chunk)? {
            0 => return Ok(hasher.finalize().to_vec()),
            n => hasher.update(&chunk[..n]),
        }
    }
}

/// Removes a file, if it still is the same as the one that is kept.
pub(crate) fn run(place: &Place, attempt: &Attempt) -> Outcome {
    let payload: serde_json::Value = serde_json::from_slice(attempt.payload())
        .map_err(|error| Failure::permanent(format!("the payload is not JSON: {error}")))?;
    let name = payload["path"].as_str().unwrap_or_default();
    let path = inside(&place.folder, name)?;
    let kept = inside(&place.folder, payload["same_as"].as_str().unwrap_or_default())?;
    place.note(&format!("removes {name}")).map_err(failed("write", &path))?;
    attempt.stage(0.1, "", "comparing");
    if !path.exists() {
        return Ok(Done::with_result("it was gone already"));
    }
    let are_same = digest(&path).map_err(failed("read", &path))?
        == digest(&kept).map_err(failed("read", &kept))?;
    if !are_same {
        return Ok(Done::with_result("it is not the same any more"));
    }
    fs::remove_file(&path).map_err(failed("remove", &path))?;
    attempt.stage(1.0, "", "removed");
    Ok(Done::new())
}
