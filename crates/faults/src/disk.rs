//! Disks that are too small, that fail, or that lose their last writes.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::stage::Place;
use crate::{Chance, Error, kept};

/// Mounts a small disk, reports it, and keeps it until it ends.
const HOLD: &str = "mount -t tmpfs -o size=\"$2\"k,mode=777 tmpfs \"$1\" && echo ready && \
    exec sleep 3600";
/// A write beyond the limit should fail, and not kill the process.
const LIMIT: &str = "trap '' XFSZ; ulimit -f \"$0\"; exec \"$@\"";
/// The unit of a shell's file size limit, in bytes.
const BLOCK: u64 = 512;
/// The size of writes that fill a disk.
const PIECE: usize = 4096;
/// The most bytes that a torn log loses.
const TORN_MAX: u64 = 400_000;

/// A small disk in a namespace of its own, which needs no privileges.
pub(crate) struct SmallDisk {
    holder: Child,
    mounted_at: PathBuf,
}

impl SmallDisk {
    /// `None` if this machine does not allow mounts.
    pub(crate) fn mount(at: &Path, size_kb: u64) -> Result<Option<Self>, Error> {
        fs::create_dir_all(at).map_err(Error::system("make a directory"))?;
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "sh", "-c", HOLD, "sh"]);
        command.arg(at).arg(size_kb.to_string());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let Ok(mut holder) = command.spawn() else { return Ok(None) };
        let mut line = String::new();
        if let Some(said) = holder.stdout.take() {
            let read = BufReader::new(said).read_line(&mut line);
            read.map_err(Error::system("hear of a mount"))?;
        }
        if line.trim() != "ready" {
            let _ = holder.kill();
            let _ = holder.wait();
            return Ok(None);
        }
        Ok(Some(Self { holder, mounted_at: at.to_owned() }))
    }

    /// The access of a scheduler to the disk.
    pub(crate) fn place(&self) -> Place {
        let holder = self.holder.id().to_string();
        let words = ["nsenter", "--preserve-credentials", "--user", "--mount", "--target", &holder];
        Place {
            launch: words.map(Into::into).into(),
            data: self.mounted_at.join("data"),
            seen: self.seen().join("data"),
        }
    }

    /// Fills the disk.
    pub(crate) fn fill(&self) -> Result<(), Error> {
        let mut filler = File::create(self.filler()).map_err(Error::system("fill the disk"))?;
        let piece = [0; PIECE];
        // Byte by byte at the end, so that no byte is left.
        while filler.write_all(&piece).is_ok() {}
        while filler.write_all(&piece[..1]).is_ok() {}
        Ok(())
    }

    /// Frees the space.
    pub(crate) fn make_room(&self) -> Result<(), Error> {
        fs::remove_file(self.filler()).map_err(Error::system("make room"))
    }

    fn filler(&self) -> PathBuf {
        self.seen().join("filler")
    }

    /// The path of the disk from outside of its namespace.
    fn seen(&self) -> PathBuf {
        let inside = self.mounted_at.strip_prefix("/").unwrap_or(&self.mounted_at);
        PathBuf::from(format!("/proc/{}/root", self.holder.id())).join(inside)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

/// The command line before a program that can write `more` bytes, and then no more.
pub(crate) fn limited(data: &Path, more: u64) -> Vec<std::ffi::OsString> {
    let length = |file| fs::metadata(data.join(file)).map_or(0, |file| file.len());
    let longest = kept::FILES.into_iter().map(length).max().unwrap_or(0);
    let blocks = (longest + more).div_ceil(BLOCK).to_string();
    ["sh", "-c", LIMIT, &blocks].map(Into::into).into()
}

/// Truncates the end of the log or writes noise over it, as a disk may that reported a sync too
/// early. The first `keep` bytes stay. Returns a description.
pub(crate) fn tear(data: &Path, keep: u64, chance: &mut Chance) -> Result<String, Error> {
    let path = data.join(kept::FILES[1]);
    let mut torn = || -> std::io::Result<String> {
        let log = Log::read(&fs::read(&path)?);
        // Checkpointed frames are not the end of the log: they are older.
        let copied = HEADER + log.frame * copied_frames(data);
        let bytes = chance.between(0, log.length.saturating_sub(keep.max(copied)).min(TORN_MAX));
        let (length, rest) = (log.length, log.length - bytes);
        let mut file = File::options().write(true).open(&path)?;
        if chance.is_one_in(2) {
            file.set_len(rest)?;
            return Ok(format!("{bytes} of {length} bytes are cut off"));
        }
        file.seek(SeekFrom::Start(rest))?;
        let noise: Vec<u8> = (0..bytes).map(|_| chance.draw().to_le_bytes()[0]).collect();
        file.write_all(&noise)?;
        Ok(format!("{bytes} of {length} bytes are noise"))
    };
    torn().map_err(Error::system("tear the log"))
}

/// The current length of the log.
pub(crate) fn log_length(data: &Path) -> Result<u64, Error> {
    let log = fs::read(data.join(kept::FILES[1])).map_err(Error::system("read the log"))?;
    Ok(Log::read(&log).length)
}

/// The number of checkpointed frames, from the index of the log.
fn copied_frames(data: &Path) -> u64 {
    let index = fs::read(data.join("maitre.db-shm")).unwrap_or_default();
    let count = index.get(96..100).and_then(|bytes| bytes.try_into().ok());
    count.map_or(0, u32::from_ne_bytes).into()
}

/// The bytes before the first frame.
const HEADER: u64 = 32;

/// The valid part of a write-ahead log.
#[derive(Debug, PartialEq, Eq)]
struct Log {
    /// Its bytes up to the end of the last valid frame.
    length: u64,
    /// The bytes of a frame.
    frame: u64,
}

impl Log {
    /// Frames from before a restart of the log may follow the last valid one. Their salts differ
    /// from those of the header.
    fn read(log: &[u8]) -> Self {
        let page = log.get(8..12).and_then(|bytes| bytes.try_into().ok());
        let frame = 24 + usize::try_from(page.map_or(0, u32::from_be_bytes)).unwrap_or(0);
        let frames = log.get(32..).unwrap_or_default().chunks_exact(frame);
        let n = frames.take_while(|frame| Some(&frame[8..16]) == log.get(16..24)).count();
        let bytes = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
        Self { length: HEADER + bytes(n * frame), frame: bytes(frame) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_ends_before_the_frames_of_an_earlier_one() {
        let mut log = vec![0; 32];
        log[8..12].copy_from_slice(&8_u32.to_be_bytes());
        log[16..24].copy_from_slice(b"new salt");
        for salt in [b"new salt", b"new salt", b"old salt", b"new salt"] {
            let mut frame = vec![0; 24 + 8];
            frame[8..16].copy_from_slice(salt);
            log.extend(frame);
        }
        assert_eq!(Log::read(&log), Log { length: 32 + 2 * 32, frame: 32 });
        assert_eq!(Log::read(&log[..32 + 40]).length, 32 + 32);
    }
}
