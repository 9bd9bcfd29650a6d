//! One replay, from its command line to its report.

use std::process::{Output, Stdio};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;
use tokio_util::sync::CancellationToken;

use super::{Question, Replayer, Report, WhatIf};

/// A report has so many bytes at most.
const REPORT_BYTES_MAX: u64 = 32 << 20;
/// So many bytes are read of what went wrong.
const ERROR_BYTES_MAX: u64 = 4 << 10;

/// Replays; what went wrong is told in words for people.
pub(super) async fn replay(
    replayer: &Replayer,
    config: &WhatIf,
    question: &Question,
    stop: CancellationToken,
) -> Result<Report, String> {
    let timeout = Duration::from_millis(config.timeout.0.unsigned_abs());
    // Whatever is not waited for any more is dropped, and killed by that.
    let output = tokio::select! {
        output = run(replayer, config, question) => output,
        () = stop.cancelled() => return Err("it was called off".to_owned()),
        () = tokio::time::sleep(timeout) => {
            return Err(format!(
                "it took longer than `what_if_timeout` = {} s; hint: ask for fewer hours",
                timeout.as_secs_f64()
            ));
        }
    };
    let output = output.map_err(|error| format!("it could not be run: {error}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.trim().trim_start_matches("error: ").replace("\n\n", "; ");
        return Err(if said.is_empty() { output.status.to_string() } else { said });
    }
    let value = serde_json::from_slice(&output.stdout);
    let value = value.map_err(|error| format!("its report cannot be read: {error}"))?;
    report(value).ok_or_else(|| "it made no report".to_owned())
}

fn command(replayer: &Replayer, config: &WhatIf, question: &Question) -> Command {
    let mut command = Command::new(&replayer.program);
    command.args(["simulate", "--gently", "--json", "--pictures", "--from=-"]);
    command.arg(format!("--since={}h", question.hours));
    command.arg(format!("--newest={}", config.jobs_max));
    command.arg(format!("--estimates={}", question.estimates));
    command.args(question.fleet.iter().map(|fleet| format!("--fleet={fleet}")));
    command.args(question.policies.iter().map(|policy| format!("--policy={policy}")));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.kill_on_drop(true);
    command
}

async fn run(replayer: &Replayer, config: &WhatIf, question: &Question) -> std::io::Result<Output> {
    let mut child = command(replayer, config, question).spawn()?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    if let Some(mut stdin) = child.stdin.take() {
        // Whoever ended before it read this says why.
        let _ = stdin.write_all(format!("{}\n", replayer.store.reveal()).as_bytes()).await;
    }
    let (stdout, stderr, status) =
        tokio::join!(read(stdout, REPORT_BYTES_MAX), read(stderr, ERROR_BYTES_MAX), child.wait());
    Ok(Output { status: status?, stdout: stdout?, stderr: stderr? })
}

/// What is said, up to a limit. Who says more finds that nobody listens.
async fn read(from: Option<impl AsyncRead + Unpin>, bytes_max: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(from) = from {
        from.take(bytes_max).read_to_end(&mut bytes).await?;
    }
    Ok(bytes)
}

/// Takes what was printed apart: what pages show at once, and what they ask for.
fn report(mut value: Value) -> Option<Report> {
    let mut shown = value.as_object_mut()?.remove("report")?;
    let mut report = Report::default();
    report.files.insert("figures.json".to_owned(), value.to_string());
    if let Value::String(page) = shown.get_mut("page")?.take() {
        report.files.insert("report.html".to_owned(), page);
    }
    for picture in shown.get_mut("pictures")?.as_array_mut()? {
        let name = format!("{}.svg", picture["name"].as_str()?);
        if let Value::String(svg) = picture.get_mut("svg")?.take() {
            report.files.insert(name, svg);
        }
    }
    shown.as_object_mut()?.remove("page");
    report.shown = shown;
    Some(report)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_report_is_taken_apart() {
        let picture = json!({ "name": "waits", "title": "Waits", "svg": "<svg/>" });
        let own = json!({ "title": "t", "tables": [], "pictures": [picture], "page": "<p>" });
        let report = report(json!({ "runs": [1], "report": own })).unwrap();
        let names: Vec<&str> = report.files.keys().map(String::as_str).collect();
        assert_eq!(names, ["figures.json", "report.html", "waits.svg"]);
        assert_eq!(report.files["figures.json"], r#"{"runs":[1]}"#);
        assert_eq!(report.shown["pictures"][0]["svg"], Value::Null);
        assert_eq!(report.shown.get("page"), None);
    }

    #[test]
    fn what_is_no_report_is_none() {
        for value in [json!([]), json!({}), json!({ "report": {} }), json!({ "report": 1 })] {
            assert_eq!(report(value), None);
        }
    }
}
