//! One request to somebody whom a stranger named.
//!
//! **Invariant:** the address that is judged is the address that is connected to. Nothing is
//! resolved twice, and nobody is followed elsewhere.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::{Arc, OnceLock};

use axum::http::{HeaderValue, Request, StatusCode, header};
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::Place;
use super::address::is_public;

pub(super) struct Sender {
    /// Addresses of this machine and of private networks are allowed.
    may_be_private: bool,
    /// Made when it is first needed.
    tls: OnceLock<Arc<ClientConfig>>,
}

impl Sender {
    pub(super) const fn new(may_be_private: bool) -> Self {
        Self { may_be_private, tls: OnceLock::new() }
    }

    /// What was answered. The rest of the answer is not read.
    pub(super) async fn post(
        &self,
        place: &Place,
        headers: Vec<(&'static str, HeaderValue)>,
        body: String,
    ) -> Result<StatusCode, String> {
        let address = self.resolve(place).await?;
        let stream = TcpStream::connect(address).await.map_err(|error| error.to_string())?;
        let request = request(place, headers, body)?;
        if !place.is_sealed {
            return exchange(stream, request).await;
        }
        let name = ServerName::try_from(place.host.clone()).map_err(|error| error.to_string())?;
        let stream = TlsConnector::from(self.tls()?).connect(name, stream).await;
        exchange(stream.map_err(|error| error.to_string())?, request).await
    }

    /// The first address of a host that may be connected to.
    async fn resolve(&self, place: &Place) -> Result<SocketAddr, String> {
        // What is an address already resolves to itself.
        let found = tokio::net::lookup_host((place.host.as_str(), place.port)).await;
        let found: Vec<SocketAddr> = found.map_err(|error| error.to_string())?.collect();
        let is_allowed = |found: &&SocketAddr| self.may_be_private || is_public(found.ip());
        let allowed = found.iter().find(is_allowed).copied();
        allowed.ok_or_else(|| "its host has no public address".to_owned())
    }

    fn tls(&self) -> Result<Arc<ClientConfig>, String> {
        if let Some(tls) = self.tls.get() {
            return Ok(Arc::clone(tls));
        }
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        let provider = Arc::new(ring::default_provider());
        let tls =
            ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let tls = tls.map_err(|error| error.to_string())?;
        let tls = Arc::new(tls.with_root_certificates(roots).with_no_client_auth());
        Ok(Arc::clone(self.tls.get_or_init(|| tls)))
    }
}

fn request(
    place: &Place,
    headers: Vec<(&'static str, HeaderValue)>,
    body: String,
) -> Result<Request<Full<Bytes>>, String> {
    let mut request = Request::post(&place.path)
        .header(header::HOST, &place.authority)
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::USER_AGENT, concat!("maitre/", env!("CARGO_PKG_VERSION")))
        .header(header::CONNECTION, "close");
    for (name, value) in headers {
        request = request.header(name, value);
    }
    request.body(Full::new(Bytes::from(body))).map_err(|error| error.to_string())
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request<Full<Bytes>>,
) -> Result<StatusCode, String> {
    let told = |error: hyper::Error| error.to_string();
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(told)?;
    let (mut connection, mut answer) = (pin!(connection), pin!(sender.send_request(request)));
    let answer = tokio::select! {
        biased;
        answer = &mut answer => answer,
        // A connection may end together with the answer.
        _ = &mut connection => answer.await,
    };
    Ok(answer.map_err(told)?.status())
}
