//! What a browser sends on behalf of somebody else's page is turned away.
//!
//! **Invariant:** no page but the board changes anything, and where no token is needed, none but
//! the board sees anything.

use std::net::IpAddr;

use axum::http::uri::Authority;
use axum::http::{HeaderMap, Method, Uri, header};
use tonic::Status;

/// Says where a request of a browser comes from; other programs do not send it.
const FETCH_SITE: &str = "sec-fetch-site";

/// Turns away what would change something and comes from a page of another origin. Browsers say
/// where such a request comes from, in one header or the other; who says neither is no browser.
pub(crate) fn check_page(method: &Method, uri: &Uri, headers: &HeaderMap) -> Result<(), Status> {
    if method.is_safe() {
        return Ok(());
    }
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    let is_own = match (text(FETCH_SITE), text(header::ORIGIN.as_str())) {
        (Some(site), _) => matches!(site, "same-origin" | "none"),
        (None, Some(origin)) => {
            let origin = origin.split_once("://").map(|(_, host)| host);
            origin.is_some() && origin == host(uri, headers)
        }
        (None, None) => true,
    };
    if is_own {
        return Ok(());
    }
    Err(Status::permission_denied("a page of another origin may not change anything here"))
}

/// Turns away who calls this machine by a name that is not its own: a page whose name was led here
/// after it was loaded looks like one of ours to its browser. Where tokens are needed, it has none.
pub(crate) fn check_name(uri: &Uri, headers: &HeaderMap) -> Result<(), Status> {
    let Some(host) = host(uri, headers) else { return Ok(()) };
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let name = name.trim_matches(['[', ']']);
    let is_local = name == "localhost" || name.ends_with(".localhost");
    if is_local || name.parse::<IpAddr>().is_ok() {
        return Ok(());
    }
    Err(Status::permission_denied(format!(
        "this scheduler was called `{name}`; without tokens it is to be called by its address, or \
         `localhost`; hint: `maitre token new` makes a token"
    )))
}

fn host<'r>(uri: &'r Uri, headers: &'r HeaderMap) -> Option<&'r str> {
    let of_uri = uri.authority().map(Authority::as_str);
    of_uri.or_else(|| headers.get(header::HOST)?.to_str().ok())
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};

    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn only_our_own_page_changes_something() {
        let uri = Uri::from_static("/v1/types/vacuum");
        let own = ("host", "127.0.0.1:7070");
        for (is_let_in, pairs) in [
            (true, &[own][..]),
            (true, &[own, ("sec-fetch-site", "same-origin"), ("origin", "http://127.0.0.1:7070")]),
            (true, &[own, ("sec-fetch-site", "none")]),
            (true, &[own, ("origin", "http://127.0.0.1:7070")]),
            (false, &[own, ("sec-fetch-site", "cross-site")]),
            (false, &[own, ("sec-fetch-site", "same-site"), ("origin", "http://127.0.0.1:7070")]),
            (false, &[own, ("sec-fetch-site", "")]),
            (false, &[own, ("origin", "http://127.0.0.1:8080")]),
            (false, &[own, ("origin", "https://evil.example")]),
            (false, &[own, ("origin", "null")]),
        ] {
            let headers = headers(pairs);
            for method in ["POST", "PUT", "PATCH", "DELETE", "TRACE2"] {
                let method = Method::from_bytes(method.as_bytes()).unwrap();
                let checked = check_page(&method, &uri, &headers);
                assert_eq!(checked.is_ok(), is_let_in, "{method} {pairs:?}");
            }
            assert!(check_page(&Method::GET, &uri, &headers).is_ok());
        }
    }

    #[test]
    fn a_name_that_was_led_here_is_not_ours() {
        let uri = Uri::from_static("/v1/jobs");
        for (is_let_in, host) in [
            (true, "127.0.0.1:7070"),
            (true, "127.0.0.1"),
            (true, "[::1]:7070"),
            (true, "localhost:7070"),
            (true, "maitre.localhost:7070"),
            (false, "evil.example:7070"),
            (false, "localhost.evil.example"),
            (false, "127.0.0.1.evil.example:7070"),
        ] {
            let checked = check_name(&uri, &headers(&[("host", host)]));
            assert_eq!(checked.is_ok(), is_let_in, "{host}");
        }
        // By HTTP/2 the name is in the address.
        let uri = Uri::from_static("http://evil.example/v1/jobs");
        assert!(check_name(&uri, &HeaderMap::new()).is_err());
    }
}
