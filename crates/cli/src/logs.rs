//! `maitre logs`: what a job wrote.

use std::io::Write;

use clap::Args;
use proto::v1;
use tonic::{Status, Streaming};

use crate::away::Away;
use crate::client::{Jobs, Target, job_number, refused};
use crate::print::{self, Failure};

/// Options of `maitre logs`.
#[derive(Args)]
pub(crate) struct Options {
    /// The job.
    #[arg(value_parser = job_number)]
    id: u64,
    /// Go on until the job is done.
    #[arg(long, short)]
    follow: bool,
    /// Of this attempt only.
    #[arg(long, default_value_t = 0, hide_default_value = true)]
    attempt: u32,
    /// For machines: one JSON object a line.
    #[arg(long)]
    json: bool,
}

/// Shows what a job wrote: its output to ours, its errors to ours.
pub(crate) async fn run(options: &Options, target: &Target) -> Result<(), Failure> {
    let mut client = target.jobs().await?;
    let request =
        v1::LogsRequest { id: options.id, attempt: options.attempt, follow: options.follow };
    show(&mut client, request, options.json).await
}

/// Shows what a job writes until it is done.
pub(crate) async fn follow(client: &mut Jobs, id: u64, json: bool) -> Result<(), Failure> {
    show(client, v1::LogsRequest { id, attempt: 0, follow: true }, json).await
}

async fn show(client: &mut Jobs, request: v1::LogsRequest, json: bool) -> Result<(), Failure> {
    let (mut away, mut shown) = (Away::default(), None);
    loop {
        let ended = match client.logs(request).await {
            Ok(response) => {
                away.is_over();
                show_new(response.into_inner(), (&mut shown, json)).await?
            }
            Err(status) => Some(status),
        };
        match ended {
            None => return Ok(()),
            Some(status) if request.follow => away.bear(&status).await?,
            Some(status) => return Err(refused(&status)),
        }
    }
}

/// The attempt, and the place in its output, up to which it was shown.
type Shown = Option<(u32, u64)>;

/// Shows what was not shown yet. Answers why there is no more, if it is not because that was all.
async fn show_new(
    mut stream: Streaming<v1::LogsResponse>,
    (shown, json): (&mut Shown, bool),
) -> Result<Option<Status>, Failure> {
    loop {
        let response = match stream.message().await {
            Ok(Some(response)) => response,
            Ok(None) => return Ok(Some(Status::unavailable("the answer broke off"))),
            Err(status) => return Ok(Some(status)),
        };
        for piece in response.pieces {
            let at = Some((piece.attempt, piece.offset));
            if at <= *shown {
                continue;
            }
            *shown = at;
            if json {
                print::data(&line(&piece))?;
            } else {
                write(&piece)?;
            }
        }
        if response.done {
            return Ok(None);
        }
    }
}

fn line(piece: &v1::LogPiece) -> String {
    let stream = if piece.stream() == v1::Stream::Err { "err" } else { "out" };
    serde_json::json!({
        "attempt": piece.attempt,
        "stream": stream,
        "at_ms": piece.at_ms,
        "text": String::from_utf8_lossy(&piece.bytes),
    })
    .to_string()
}

fn write(piece: &v1::LogPiece) -> Result<(), Failure> {
    let written = if piece.stream() == v1::Stream::Err {
        std::io::stderr().lock().write_all(&piece.bytes)
    } else {
        let mut out = std::io::stdout().lock();
        out.write_all(&piece.bytes).and_then(|()| out.flush())
    };
    written.map_err(|error| Failure::Other(error.into()))
}
