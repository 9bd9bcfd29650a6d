//! The view on a terminal of its own, drawn again and again.

use std::io::{self, Write};
use std::time::Duration;

use crossterm::cursor::{Hide, MoveTo, Show};
use crossterm::event::{Event, KeyCode, KeyModifiers, poll, read};
use crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode,
    enable_raw_mode, size,
};
use crossterm::{execute, queue};

use super::trail::Trail;
use super::{draw, look};
use crate::client::Target;
use crate::print::Failure;

/// A terminal that is ours until this is dropped.
struct Stage;

impl Stage {
    fn enter() -> io::Result<Self> {
        enable_raw_mode()?;
        // From here on it is given back, whatever happens.
        let stage = Self;
        execute!(io::stdout(), EnterAlternateScreen, Hide)?;
        Ok(stage)
    }

    fn draw(text: &str) -> io::Result<()> {
        let (_, height) = size()?;
        let mut out = io::stdout().lock();
        for (at, line) in (0..height).zip(text.lines()) {
            queue!(out, MoveTo(0, at), Clear(ClearType::UntilNewLine))?;
            out.write_all(line.as_bytes())?;
        }
        queue!(out, Clear(ClearType::FromCursorDown))?;
        out.flush()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // If the terminal is gone, there is nothing to give back.
        let _gone = execute!(io::stdout(), Show, LeaveAlternateScreen);
        let _gone = disable_raw_mode();
    }
}

/// Draws every so often, until somebody has seen enough.
pub(super) async fn run(every: Duration, target: &Target) -> Result<(), Failure> {
    let broken = |error: io::Error| Failure::Other(error.into());
    let _stage = Stage::enter().map_err(broken)?;
    let mut trail = Trail::default();
    loop {
        let (columns, lines) = size().map_err(broken)?;
        let text = match look(target).await {
            Ok(view) => {
                trail.add(&view);
                draw::screen(&view, &trail, (columns.into(), lines.into()))
            }
            // It may come back.
            Err(failure) => format!("{failure}\n\ntrying again; `q` ends it\n"),
        };
        Stage::draw(&text).map_err(broken)?;
        let enough = tokio::task::spawn_blocking(move || seen_enough(every)).await;
        if enough.map_err(|error| Failure::Other(error.into()))?.map_err(broken)? {
            return Ok(());
        }
    }
}

/// Waits for a while, or until a key says that it is enough.
fn seen_enough(wait: Duration) -> io::Result<bool> {
    if !poll(wait)? {
        return Ok(false);
    }
    let Event::Key(key) = read()? else { return Ok(false) };
    let is_control_c =
        key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
    Ok(is_control_c || matches!(key.code, KeyCode::Char('q') | KeyCode::Esc))
}
