//! `maitre submit --file`: many jobs, one in each line of JSON.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, stdin};
use std::path::Path;

use indicatif::{ProgressBar, ProgressStyle};
use model::maxima::SUBMISSION_MAX;
use prost::Message as _;
use proto::v1;

use crate::client::{Jobs, refused};
use crate::lines::{After, Line};
use crate::print::{self, Failure};
use crate::submit::drawn_key;

/// The longest line that is read: a payload, with quotes and escapes, and the rest.
const LINE_BYTES_MAX: u64 = 2 << 20;
/// Bytes of jobs that go to the scheduler at once, if it takes so many.
const BATCH_BYTES: usize = 4 << 20;
/// Bytes of a message that are left for what is around the jobs.
const AROUND_BYTES: usize = 1 << 10;
/// Bytes around each of them, and at most for each job that it waits for.
const AROUND_JOB_BYTES: usize = 8;
const AFTER_BYTES: usize = 12;

/// What all lines have in common.
pub(crate) struct Given<'a> {
    pub(crate) path: &'a Path,
    /// What the flags say of each job.
    pub(crate) base: v1::Spec,
    pub(crate) now_ms: i64,
    pub(crate) idempotency_key: Option<&'a str>,
    pub(crate) json: bool,
}

/// Submits every line, and says which jobs these are.
pub(crate) async fn submit(
    client: &mut Jobs,
    given: &Given<'_>,
) -> Result<Vec<v1::Submitted>, Failure> {
    let n_bytes = check(given)?;
    let most = most(client).await?;
    let bar = bar(n_bytes);
    let mut sender =
        Sender { given, client, most, named: HashMap::new(), sent: Vec::new(), n_batches: 0 };
    let mut batch = Batch::default();
    let outcome = async {
        let mut lines = Lines::open(given.path)?;
        while let Some((number, text)) = lines.next()? {
            let line = read(given, number, &text)?;
            sender.add(&mut batch, number, line).await?;
            bar.inc(u64::try_from(text.len() + 1).unwrap_or(u64::MAX));
            bar.set_message(format!("{} jobs", sender.sent.len()));
        }
        sender.send(&mut batch).await
    }
    .await;
    bar.finish_and_clear();
    if outcome.is_err() && !sender.sent.is_empty() {
        print::note(&format!("submitted before it: {}", summary(&sender.sent)));
    }
    outcome.map(|()| sender.sent)
}

/// Reads a file once before anything of it is sent; what comes by a pipe can be read only once.
fn check(given: &Given<'_>) -> Result<Option<u64>, Failure> {
    let length = std::fs::metadata(given.path).ok().filter(std::fs::Metadata::is_file);
    let Some(length) = length.map(|metadata| metadata.len()) else { return Ok(None) };
    let mut lines = Lines::open(given.path)?;
    while let Some((number, text)) = lines.next()? {
        let line = read(given, number, &text)?;
        line.spec(&given.base, given.now_ms).map_err(|error| wrong(given, number, &error))?;
    }
    Ok(Some(length))
}

fn read(given: &Given<'_>, number: u64, text: &str) -> Result<Line, Failure> {
    Line::parse(text).map_err(|(error, hint)| match (wrong(given, number, &error), hint) {
        (Failure::Input { error, .. }, Some(hint)) => Failure::Input { error, hint: Some(hint) },
        (failure, _) => failure,
    })
}

fn wrong(given: &Given<'_>, number: u64, error: &str) -> Failure {
    Failure::Input {
        error: format!("`{}` line {number}: {error}", given.path.display()),
        hint: Some("docs/operating.md lists what a line may say".to_owned()),
    }
}

fn bar(n_bytes: Option<u64>) -> ProgressBar {
    let template = "{bar:30} {percent:>3} %  {msg}  {eta} left";
    match n_bytes {
        Some(n_bytes) => {
            let style = ProgressStyle::with_template(template);
            let bar = ProgressBar::new(n_bytes);
            if let Ok(style) = style { bar.with_style(style) } else { bar }
        }
        None => ProgressBar::new_spinner(),
    }
}

/// Lines of a file or of the standard input, with their numbers; empty ones are left out.
struct Lines {
    reader: Box<dyn BufRead>,
    number: u64,
}

impl Lines {
    fn open(path: &Path) -> Result<Self, Failure> {
        if path == Path::new("-") {
            return Ok(Self { reader: Box::new(BufReader::new(stdin())), number: 0 });
        }
        let file = File::open(path).map_err(|error| Failure::Input {
            error: format!("cannot read `{}`: {error}", path.display()),
            hint: Some("`-` reads the standard input".to_owned()),
        })?;
        Ok(Self { reader: Box::new(BufReader::new(file)), number: 0 })
    }

    fn next(&mut self) -> Result<Option<(u64, String)>, Failure> {
        loop {
            let mut bytes = Vec::new();
            let mut line = self.reader.by_ref().take(LINE_BYTES_MAX);
            let n_bytes = line.read_until(b'\n', &mut bytes);
            let n_bytes = n_bytes.map_err(|error| Failure::Other(error.into()))?;
            if n_bytes == 0 {
                return Ok(None);
            }
            self.number += 1;
            let problem = |error: String| Failure::Input { error, hint: None };
            if bytes.last() != Some(&b'\n')
                && u64::try_from(n_bytes).is_ok_and(|n| n >= LINE_BYTES_MAX)
            {
                let number = self.number;
                return Err(problem(format!(
                    "line {number} is longer than {LINE_BYTES_MAX} bytes"
                )));
            }
            let text = String::from_utf8(bytes);
            let text = text.map_err(|_| problem(format!("line {} is not UTF-8", self.number)))?;
            if !text.trim().is_empty() {
                return Ok(Some((self.number, text.trim().to_owned())));
            }
        }
    }
}

/// Jobs and bytes that the scheduler takes at once.
struct Most {
    n_jobs: usize,
    n_bytes: usize,
}

/// Asks the scheduler. One that does not know the question is of a version that always took so
/// many.
async fn most(client: &mut Jobs) -> Result<Most, Failure> {
    let limits = match client.limits(v1::LimitsRequest {}).await {
        Ok(answer) => answer.into_inner(),
        Err(status) if status.code() == tonic::Code::Unimplemented => {
            return Ok(Most { n_jobs: SUBMISSION_MAX, n_bytes: BATCH_BYTES });
        }
        Err(status) => return Err(refused(&status)),
    };
    let size = |limit: u64| usize::try_from(limit).unwrap_or(usize::MAX);
    let n_bytes = size(limits.message_bytes_max).saturating_sub(AROUND_BYTES);
    Ok(Most {
        n_jobs: size(limits.submission_max),
        n_bytes: n_bytes.min(size(limits.submission_bytes_max)).min(BATCH_BYTES),
    })
}

/// Jobs that go together: of one tenant, as many as the scheduler takes at once.
#[derive(Default)]
struct Batch {
    tenant: String,
    jobs: Vec<v1::Spec>,
    numbers: Vec<u64>,
    names: HashMap<String, u32>,
    n_bytes: usize,
}

struct Sender<'a> {
    given: &'a Given<'a>,
    client: &'a mut Jobs,
    most: Most,
    /// Lines that have a name, once they are jobs.
    named: HashMap<String, u64>,
    sent: Vec<v1::Submitted>,
    n_batches: usize,
}

impl Sender<'_> {
    /// Puts a job into the batch; sends the batch before if it is full.
    async fn add(&mut self, batch: &mut Batch, number: u64, mut line: Line) -> Result<(), Failure> {
        let given = self.given;
        let (name, after) = (line.name.take(), std::mem::take(&mut line.after));
        let spec = line.spec(&given.base, given.now_ms);
        let mut spec = spec.map_err(|error| wrong(given, number, &error))?;
        let n_bytes = spec.encoded_len() + AROUND_JOB_BYTES + after.len() * AFTER_BYTES;
        let is_full = batch.jobs.len() >= self.most.n_jobs
            || batch.n_bytes + n_bytes > self.most.n_bytes
            || batch.tenant != spec.tenant;
        if is_full {
            self.send(batch).await?;
        }
        for after in after {
            match after {
                After::Id(id) => spec.after.push(id),
                After::Name(name) => match (batch.names.get(&name), self.named.get(&name)) {
                    (Some(index), _) => spec.after_indexes.push(*index),
                    (None, Some(id)) => spec.after.push(*id),
                    (None, None) => {
                        let error =
                            format!("`after` has `{name}`, which no line before it is called");
                        return Err(wrong(given, number, &error));
                    }
                },
            }
        }
        if let Some(name) = name {
            let index = u32::try_from(batch.jobs.len()).unwrap_or(u32::MAX);
            let is_taken = self.named.contains_key(&name);
            if is_taken || batch.names.insert(name.clone(), index).is_some() {
                let error = format!("`name` is `{name}`, as of a line before it");
                return Err(wrong(given, number, &error));
            }
        }
        batch.n_bytes += n_bytes;
        batch.tenant.clone_from(&spec.tenant);
        batch.jobs.push(spec);
        batch.numbers.push(number);
        Ok(())
    }

    async fn send(&mut self, batch: &mut Batch) -> Result<(), Failure> {
        let Batch { jobs, numbers, names, .. } = std::mem::take(batch);
        if jobs.is_empty() {
            return Ok(());
        }
        // The same file again makes the same batches.
        let idempotency_key = match self.given.idempotency_key {
            Some(key) => format!("{key}.{}", self.n_batches),
            None if names.is_empty() => String::new(),
            // Jobs of later batches may wait for these, so that they must be kept.
            None => drawn_key()?,
        };
        let request = v1::SubmitRequest { jobs, idempotency_key, array: 0 };
        let answer = self.client.submit(request).await;
        let answer = answer.map_err(|status| self.refused(&status, &numbers))?.into_inner().jobs;
        self.n_batches += 1;
        let ids = names.into_iter().filter_map(|(name, index)| {
            let job = answer.get(usize::try_from(index).ok()?)?;
            Some((name, job.id))
        });
        self.named.extend(ids);
        if self.given.json {
            for (number, job) in numbers.iter().zip(&answer) {
                let state = proto::json::state_name(job.state());
                let (id, is_new) = (job.id, job.is_new);
                let line = serde_json::json!({
                    "line": number, "id": id, "is_new": is_new, "state": state,
                });
                print::data(&line.to_string())?;
            }
        }
        self.sent.extend(answer);
        Ok(())
    }

    /// The scheduler names a job by its place in the batch; people know lines.
    fn refused(&self, status: &tonic::Status, numbers: &[u64]) -> Failure {
        let message = status.message();
        let place = message.split_once("jobs[").and_then(|(_, rest)| rest.split_once(']'));
        let place = place.and_then(|(place, _)| place.parse::<usize>().ok());
        match place.and_then(|place| numbers.get(place)) {
            Some(number) => wrong(self.given, *number, message),
            None => refused(status),
        }
    }
}

/// Jobs in a line: how many, and which.
pub(crate) fn summary(jobs: &[v1::Submitted]) -> String {
    let ids = jobs.iter().map(|job| job.id);
    let range = match (ids.clone().min(), ids.max()) {
        (Some(first), Some(last)) if first != last => format!(", {first} to {last}"),
        (Some(first), _) => format!(", {first}"),
        (None, _) => String::new(),
    };
    let n_known = jobs.iter().filter(|job| !job.is_new).count();
    let known =
        if n_known == 0 { String::new() } else { format!(" ({n_known} were there before)") };
    format!("{}{range}{known}", print::count(jobs.len(), "job"))
}
