//! The board: files for browsers, as they are in `board/`, inside the program.

use axum::Router;
use axum::extract::{Path, Request};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;

const HTML: &str = "text/html; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const PICTURE: &str = "image/svg+xml";

/// A file of the board: what it is called, what it is, and what is in it.
type File = (&'static str, &'static str, &'static str);

macro_rules! files {
    ($($name:literal: $kind:ident),* $(,)?) => {
        &[$(($name, $kind, include_str!(concat!("../../../../board/", $name)))),*]
    };
}

const INDEX: &str = "index.html";
const FILES: &[File] = files! {
    "index.html": HTML,
    "board.css": STYLE,
    "icon.svg": PICTURE,
    "main.js": SCRIPT,
    "ask.js": SCRIPT,
    "draw.js": SCRIPT,
    "words.js": SCRIPT,
    "overview.js": SCRIPT,
    "charts.js": SCRIPT,
    "job.js": SCRIPT,
    "types.js": SCRIPT,
    "type.js": SCRIPT,
    "schedules.js": SCRIPT,
    "activity.js": SCRIPT,
    "whatif.js": SCRIPT,
};

/// What a browser must not do with anything that comes from here. Scripts and styles are files of
/// ours; nothing is kept, framed, guessed or told to others. Pictures may be made by our scripts
/// (`blob:`): a browser does not show a token when it fetches one by itself.
const HEADERS: [(HeaderName, &str); 4] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; \
         connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::CACHE_CONTROL, "no-store"),
];

/// The board's own paths.
pub(crate) fn router() -> Router {
    Router::new()
        .route("/", get(|| async { file(INDEX) }))
        .route("/board/{file}", get(|Path(name): Path<String>| async move { file(&name) }))
}

fn file(name: &str) -> Response {
    match FILES.iter().find(|(known, _, _)| *known == name) {
        Some((_, kind, text)) => ([(header::CONTENT_TYPE, *kind)], *text).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

/// Sends the headers with every answer.
pub(crate) async fn with_headers(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    add_headers(response.headers_mut());
    response
}

pub(crate) fn add_headers(headers: &mut HeaderMap) {
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_board_is_inside_and_no_other() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../board");
        let entries = std::fs::read_dir(folder).unwrap();
        let mut there: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        let mut inside: Vec<&str> = FILES.iter().map(|(name, _, _)| *name).collect();
        there.sort();
        inside.sort_unstable();
        assert_eq!(there, inside);
        assert_eq!(file("../Cargo.toml").status(), StatusCode::NOT_FOUND);
    }

    #[test]
    fn no_page_has_a_script_or_a_style_in_it_and_no_script_makes_markup_of_text() {
        for (name, _, text) in FILES {
            for wrong in ["<style", "style=", " onclick", "innerHTML", "outerHTML", "eval("] {
                assert!(!text.contains(wrong), "{name} has {wrong}");
            }
            for script in text.split("<script").skip(1) {
                assert!(script.contains("src=") && script.contains("></script>"), "{name}");
            }
        }
    }
}
