//! Certificates and keys, from files.

use std::path::Path;
use std::sync::Arc;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::config::{Config, ConfigError};

/// What encrypts connections; `None` means that nothing does.
pub(crate) fn acceptor(config: &Config) -> Result<Option<TlsAcceptor>, ConfigError> {
    let (Some(cert), Some(key)) = (&config.tls_cert, &config.tls_key) else { return Ok(None) };
    let chain = chain(cert)?;
    let key_of = PrivateKeyDer::from_pem_file(key)
        .map_err(|error| unusable("tls_key", key, &error.to_string()))?;
    let provider = Arc::new(ring::default_provider());
    let mut tls = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable("tls_cert", cert, &error.to_string()))?
        .with_no_client_auth()
        .with_single_cert(chain, key_of)
        .map_err(|error| unusable("tls_key", key, &error.to_string()))?;
    // gRPC and HTTP on one port.
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Some(TlsAcceptor::from(Arc::new(tls))))
}

fn chain(path: &Path) -> Result<Vec<CertificateDer<'static>>, ConfigError> {
    let wrong = |problem: &str| unusable("tls_cert", path, problem);
    let chain = CertificateDer::pem_file_iter(path).map_err(|error| wrong(&error.to_string()))?;
    let chain: Vec<_> =
        chain.collect::<Result<_, _>>().map_err(|error| wrong(&error.to_string()))?;
    if chain.is_empty() { Err(wrong("there is no certificate in it")) } else { Ok(chain) }
}

fn unusable(field: &'static str, path: &Path, problem: &str) -> ConfigError {
    ConfigError {
        field,
        problem: format!("is `{}`, which cannot be used: {problem}", path.display()),
        hint: "it is a PEM file: the certificate with those that vouch for it, or its key",
    }
}
