//! Connections of clients and workers to a scheduler, with or without TLS and a token.

use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Error};
use tonic::{Request, Status};

use crate::Invalid;

/// A connection that sends its token with every request.
pub type Wire = InterceptedService<Channel, Bearer>;

/// A scheduler at a URL. For `https`, the certificate of the server is verified against the roots
/// of the system, or against `ca_pem`.
pub fn endpoint(url: &str, ca_pem: Option<&[u8]>) -> Result<Endpoint, Error> {
    let endpoint = Endpoint::from_shared(url.to_owned())?;
    if !url.starts_with("https://") {
        return Ok(endpoint);
    }
    let tls = match ca_pem {
        Some(pem) => ClientTlsConfig::new().ca_certificate(Certificate::from_pem(pem)),
        None => ClientTlsConfig::new().with_native_roots(),
    };
    endpoint.tls_config(tls)
}

/// Adds the token to requests, if there is one. Its debug output hides the token.
#[derive(Clone, Debug, Default)]
pub struct Bearer(Option<MetadataValue<Ascii>>);

impl Bearer {
    /// With a token, or without one.
    pub fn new(token: Option<&str>) -> Result<Self, Invalid> {
        let value = |token: &str| {
            let value: Result<MetadataValue<Ascii>, _> = format!("Bearer {token}").parse();
            let mut value =
                value.map_err(|_| Invalid::new("token", "has characters that none has"))?;
            value.set_sensitive(true);
            Ok(value)
        };
        token.map(str::trim).filter(|token| !token.is_empty()).map(value).transpose().map(Self)
    }
}

impl Interceptor for Bearer {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(value) = &self.0 {
            request.metadata_mut().insert("authorization", value.clone());
        }
        Ok(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bearer_does_not_show_its_token() {
        let bearer = Bearer::new(Some(" maitre_abc\n")).unwrap();
        assert!(!format!("{bearer:?}").contains("abc"), "{bearer:?}");
        assert!(Bearer::new(Some("a\u{7f}b")).is_err());
        assert!(Bearer::new(None).unwrap().0.is_none());
    }
}
