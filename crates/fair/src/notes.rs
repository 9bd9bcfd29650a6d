//! Notes of the jobs: each appends a line when it starts, and a line when it ends.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use faults::passed_ms;

use crate::Error;

/// The name of the script beside the notes.
pub(crate) const SCRIPT_NAME: &str = "job.sh";
/// The name of the notes.
const NOTES_NAME: &str = "notes";
/// Arguments: slots, stated milliseconds, the same as seconds, exit code. A line is written in one
/// go, so that many jobs can append to one file. `/proc/uptime` costs the shell no process.
pub(crate) const SCRIPT: &str = "\
slots=$1 ms=$2
note() {
    read -r up rest < /proc/uptime
    echo \"$1 $MAITRE_TENANT $MAITRE_JOB $USER $slots $ms $up\" >> \"${0%/*}/notes\"
}
trap 'note end; exit 1' TERM
note start
sleep \"$3\"
note end
exit \"$4\"
";
/// A slot that waited longer than this for its next job was idle. A shorter wait counts as time of
/// the next job. The scheduler counts a slot as in use until it hears of an end, and while the
/// worker starts a shell. A tenant with short jobs causes more of that time.
const GAP_MS_MAX: i64 = 250;

/// The event of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Start,
    End,
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) what: What,
    pub(crate) tenant: String,
    pub(crate) job: u64,
    pub(crate) worker: String,
    pub(crate) slots: i64,
    /// Milliseconds that the job sleeps.
    pub(crate) stated_ms: i64,
    /// Milliseconds since 1970.
    pub(crate) at_ms: i64,
}

/// One attempt, as its notes tell it. Moments are milliseconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) tenant: String,
    pub(crate) job: u64,
    pub(crate) worker: String,
    pub(crate) slots: i64,
    /// When its slot was free for it, at most [`GAP_MS_MAX`] before the start.
    pub(crate) from_ms: i64,
    pub(crate) start_ms: i64,
    /// An attempt without an end counts for as long as it stated.
    pub(crate) end_ms: i64,
}

/// The notes that were read so far.
#[derive(Debug)]
pub(crate) struct Notes {
    path: PathBuf,
    boot_ms: i64,
    n_bytes: u64,
    pub(crate) all: Vec<Note>,
}

impl Notes {
    pub(crate) fn new(dir: &Path) -> Result<Self, Error> {
        let boot_ms = faults::boot_ms()?;
        Ok(Self { path: dir.join(NOTES_NAME), boot_ms, n_bytes: 0, all: Vec::new() })
    }

    /// Reads the lines that were appended since the last call.
    pub(crate) fn read(&mut self) -> Result<(), Error> {
        let mut text = String::new();
        let read = File::open(&self.path).and_then(|mut file| {
            file.seek(SeekFrom::Start(self.n_bytes))?;
            file.read_to_string(&mut text)
        });
        match read {
            // No job has started yet.
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            read => drop(read.map_err(Error::system("read the notes"))?),
        }
        for line in text.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
            let note = parse(line, self.boot_ms);
            let unread = || faults::Error::Line { line: line.to_owned() };
            self.all.push(note.ok_or_else(unread)?);
            self.n_bytes += u64::try_from(line.len()).unwrap_or(0);
        }
        Ok(())
    }

    /// The moment of the newest note. `None` before the first.
    pub(crate) fn newest_ms(&self) -> Option<i64> {
        self.all.iter().map(|note| note.at_ms).max()
    }

    pub(crate) fn n_starts(&self) -> usize {
        self.starts().count()
    }

    pub(crate) fn n_starts_of(&self, tenant: &str) -> usize {
        self.starts().filter(|note| note.tenant == tenant).count()
    }

    fn starts(&self) -> impl Iterator<Item = &Note> {
        self.all.iter().filter(|note| note.what == What::Start)
    }
}

fn parse(line: &str, boot_ms: i64) -> Option<Note> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [what, tenant, job, worker, slots, stated_ms, up] = words[..] else { return None };
    let what = match what {
        "start" => What::Start,
        "end" => What::End,
        _ => return None,
    };
    Some(Note {
        what,
        tenant: tenant.to_owned(),
        job: job.parse().ok()?,
        worker: worker.to_owned(),
        slots: slots.parse().ok()?,
        stated_ms: stated_ms.parse().ok()?,
        at_ms: boot_ms + passed_ms(up)?,
    })
}

/// Puts starts and ends together. `lost` has the moment at which a worker was killed: its attempts
/// ended then.
pub(crate) fn runs(notes: &[Note], lost: &BTreeMap<String, i64>) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    // Indexes of attempts under way, by worker and job.
    let mut under_way: BTreeMap<(&str, u64), usize> = BTreeMap::new();
    // Moments since when each slot of a worker is free, in the order of the ends.
    let mut free: BTreeMap<&str, Vec<i64>> = BTreeMap::new();
    for note in notes {
        let key = (note.worker.as_str(), note.job);
        let own = free.entry(&note.worker).or_default();
        match note.what {
            What::Start => {
                // The job starts when the last slot that it waited for is free.
                let since_ms = own.last().copied().unwrap_or(note.at_ms);
                for _ in 0..note.slots {
                    own.pop();
                }
                under_way.insert(key, runs.len());
                runs.push(Run {
                    tenant: note.tenant.clone(),
                    job: note.job,
                    worker: note.worker.clone(),
                    slots: note.slots,
                    from_ms: since_ms.clamp(note.at_ms - GAP_MS_MAX, note.at_ms),
                    start_ms: note.at_ms,
                    end_ms: note.at_ms + note.stated_ms,
                });
            }
            What::End => {
                own.extend((0..note.slots).map(|_| note.at_ms));
                if let Some(index) = under_way.remove(&key) {
                    runs[index].end_ms = note.at_ms;
                }
            }
        }
    }
    for run in &mut runs {
        let lost_ms = lost.get(&run.worker).filter(|lost_ms| run.start_ms < **lost_ms);
        run.end_ms = lost_ms.map_or(run.end_ms, |lost_ms| run.end_ms.min(*lost_ms));
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notes(text: &str) -> Vec<Note> {
        text.lines().map(|line| parse(line.trim(), 0).unwrap()).collect()
    }

    /// Each run as tenant, from, start and end.
    fn told(text: &str, lost: &BTreeMap<String, i64>) -> Vec<(String, [i64; 3])> {
        let tell = |run: Run| (run.tenant, [run.from_ms, run.start_ms, run.end_ms]);
        runs(&notes(text), lost).into_iter().map(tell).collect()
    }

    #[test]
    fn run_has_gap_before_it_and_ends_with_its_note() {
        let text = "start a 1 w1 1 500 1.00\nend a 1 w1 1 500 1.52\n\
                    start b 2 w1 1 500 1.55\nend b 2 w1 1 500 2.06";
        let expected =
            [("a".to_owned(), [1_000, 1_000, 1_520]), ("b".to_owned(), [1_520, 1_550, 2_060])];
        assert_eq!(told(text, &BTreeMap::new()), expected);
    }

    #[test]
    fn slot_that_was_idle_counts_for_a_quarter_second() {
        let text = "start a 1 w1 1 500 1.00\nend a 1 w1 1 500 1.50\nstart a 2 w1 1 500 9.00";
        assert_eq!(told(text, &BTreeMap::new())[1].1, [8_750, 9_000, 9_500]);
    }

    #[test]
    fn wide_job_waits_from_end_of_last_slot_that_it_takes() {
        let text = "start a 1 w1 1 500 1.00\nstart a 2 w1 1 500 1.00\nend a 1 w1 1 500 1.30\n\
                    end a 2 w1 1 500 1.50\nstart b 3 w1 2 500 1.53\nstart b 4 w1 1 500 1.54";
        assert_eq!(told(text, &BTreeMap::new())[2].1, [1_500, 1_530, 2_030]);
        assert_eq!(told(text, &BTreeMap::new())[3].1, [1_540, 1_540, 2_040]);
    }

    #[test]
    fn attempt_of_killed_worker_ends_when_worker_was_killed() {
        let text = "start a 1 w1 1 500 1.00\nstart a 1 w2 1 500 4.00\nend a 1 w2 1 500 4.50\n\
                    start a 2 w1 1 500 5.00";
        let lost = BTreeMap::from([("w1".to_owned(), 1_200)]);
        let ends: Vec<i64> = told(text, &lost).iter().map(|(_, moments)| moments[2]).collect();
        assert_eq!(ends, [1_200, 4_500, 5_500]);
    }

    #[test]
    fn line_that_makes_no_sense_is_refused() {
        for line in ["", "start a 1 w1 1 500", "begin a 1 w1 1 500 1.00", "end a x w1 1 500 1.00"] {
            assert_eq!(parse(line, 0), None);
        }
    }
}
