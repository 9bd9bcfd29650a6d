//! Encryption of the connection and verification of the database's certificate. Parameters have the
//! meaning that they have in `libpq`.

use std::fmt;
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::config::SslMode;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client;
use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::crypto::{self, CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, InvalidDnsNameError, ServerName, UnixTime};
use tokio_rustls::rustls::{
    self, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
};

use crate::Error;

/// The parameters of a URL.
const MODE: &str = "sslmode";
const ROOTS: &str = "sslrootcert";
/// Trust the roots of the system.
const SYSTEM: &str = "system";

/// A URL without its encryption parameters, and their meaning.
pub(super) struct Sealed {
    pub(super) url: String,
    pub(super) mode: SslMode,
    pub(super) seal: Seal,
}

impl Sealed {
    pub(super) fn read(url: &str) -> Result<Self, Error> {
        let (base, question) = url.split_once('?').unwrap_or((url, ""));
        let (mut mode, mut roots, mut rest) = ("prefer", None, Vec::new());
        for pair in question.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=') {
                Some((MODE, value)) => mode = value,
                Some((ROOTS, value)) => roots = Some(value),
                Some(_) | None => rest.push(pair),
            }
        }
        let rest = rest.join("&");
        let url = if rest.is_empty() { base.to_owned() } else { format!("{base}?{rest}") };
        let (mode, is_checked) = match mode {
            "disable" => (SslMode::Disable, false),
            "prefer" => (SslMode::Prefer, false),
            "require" => (SslMode::Require, roots.is_some()),
            "verify-full" => (SslMode::Require, true),
            other => {
                return Err(Error::Unusable(format!(
                    "the store's address has `{MODE}={other}`; it is one of `disable`, `prefer`, \
                     `require` and `verify-full`"
                )));
            }
        };
        let trust = match roots.filter(|_| is_checked) {
            Some(path) if path != SYSTEM => Trust::Those(from_file(&decoded(path))?),
            Some(_) => Trust::Those(of_system()),
            None if is_checked => Trust::Those(of_system()),
            None => Trust::Anybody,
        };
        Ok(Self { url, mode, seal: Seal::new(trust)? })
    }
}

/// The certificates that are accepted.
enum Trust {
    /// Any certificate. This protects against passive listeners only.
    Anybody,
    /// Certificates for the name in the URL that these roots signed.
    Those(RootCertStore),
}

fn of_system() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}

fn from_file(path: &str) -> Result<RootCertStore, Error> {
    let unusable = |cause: &dyn fmt::Display| {
        Error::Unusable(format!("`{ROOTS}={path}` of the store's address: {cause}"))
    };
    let read = CertificateDer::pem_file_iter(Path::new(path)).map_err(|cause| unusable(&cause))?;
    let mut roots = RootCertStore::empty();
    for certificate in read {
        let certificate = certificate.map_err(|cause| unusable(&cause))?;
        roots.add(certificate).map_err(|cause| unusable(&cause))?;
    }
    if roots.is_empty() {
        return Err(unusable(&"has no certificate, as PEM"));
    }
    Ok(roots)
}

/// Decodes percent encoding: `%2F` is `/`.
fn decoded(text: &str) -> String {
    percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned()
}

/// Encrypts connections.
#[derive(Clone)]
pub(super) struct Seal {
    config: Arc<ClientConfig>,
}

impl Seal {
    fn new(trust: Trust) -> Result<Self, Error> {
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| Error::Unusable(format!("no TLS: {error}")))?;
        let config = match trust {
            Trust::Those(roots) => builder.with_root_certificates(roots).with_no_client_auth(),
            Trust::Anybody => builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(Unchecked(provider)))
                .with_no_client_auth(),
        };
        Ok(Self { config: Arc::new(config) })
    }
}

impl<S: AsyncRead + AsyncWrite + Send + Unpin + 'static> MakeTlsConnect<S> for Seal {
    type Stream = Stream<S>;
    type TlsConnect = Connect;
    type Error = InvalidDnsNameError;

    fn make_tls_connect(&mut self, host: &str) -> Result<Connect, InvalidDnsNameError> {
        // A socket has no name, and is not encrypted.
        let host = if host.is_empty() { "localhost" } else { host };
        let name = ServerName::try_from(host.to_owned())?;
        Ok(Connect { connector: TlsConnector::from(Arc::clone(&self.config)), name })
    }
}

/// A connection before its TLS handshake.
pub(super) struct Connect {
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl<S: AsyncRead + AsyncWrite + Send + Unpin + 'static> TlsConnect<S> for Connect {
    type Stream = Stream<S>;
    type Error = std::io::Error;
    type Future = Pin<Box<dyn Future<Output = std::io::Result<Stream<S>>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move { Ok(Stream(self.connector.connect(self.name, stream).await?)) })
    }
}

/// An encrypted connection.
pub(super) struct Stream<S>(client::TlsStream<S>);

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for Stream<S> {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Stream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Stream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

/// Accepts any certificate, but checks that the peer has its key.
#[derive(Debug)]
struct Unchecked(Arc<CryptoProvider>);

impl ServerCertVerifier for Unchecked {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.0.signature_verification_algorithms;
        crypto::verify_tls12_signature(message, certificate, signed, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.0.signature_verification_algorithms;
        crypto::verify_tls13_signature(message, certificate, signed, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
