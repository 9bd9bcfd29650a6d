//! Connections to Postgres are encrypted as the URL says, and the server's certificate is verified.

use std::path::Path;

use cluster::{Cluster, Papers};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use store::{Options, Postgres};

use crate::postgres::runtime;

/// A certificate authority, and its certificate for `localhost`.
fn papers() -> (String, Papers) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let own = params.signed_by(&key, &ca).unwrap();
    (ca.pem(), Papers { certificate: own.pem(), key: key.serialize_pem() })
}

#[test]
fn connection_is_encrypted_and_certificate_is_verified() {
    let (ca, papers) = papers();
    let (_, other) = self::papers();
    let (_cluster, port) = Cluster::start_sealed(&papers).unwrap_or_else(|error| panic!("{error}"));
    let write = |name: &str, text: &str| {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string().replace('/', "%2F")
    };
    let (ca, other) = (write("ca.pem", &ca), write("other.pem", &other.certificate));
    let runtime = runtime();
    let connect = |host: &str, question: &str| {
        let url = format!("postgres://maitre@{host}:{port}/postgres?{question}");
        let connected = runtime.block_on(Postgres::connect(&url, Options::default()));
        connected.map(drop).map_err(|error| error.to_string())
    };
    let full = format!("sslmode=verify-full&sslrootcert={ca}");
    // This server accepts only encrypted connections on its port.
    assert!(connect("localhost", "sslmode=disable").unwrap_err().contains("no encryption"));
    for question in ["", "sslmode=prefer", "sslmode=require", &full] {
        assert_eq!(connect("localhost", question), Ok(()), "{question}");
    }
    for (host, question, cause) in [
        ("127.0.0.1", full.clone(), "certificate not valid for name"),
        (
            "localhost",
            format!("sslmode=verify-full&sslrootcert={other}"),
            "invalid peer certificate",
        ),
        ("localhost", format!("sslmode=require&sslrootcert={other}"), "invalid peer certificate"),
        ("localhost", "sslmode=verify-full".to_owned(), "invalid peer certificate"),
        ("localhost", "sslmode=verify-full&sslrootcert=nowhere".to_owned(), "nowhere"),
        ("localhost", "sslmode=verify-ca".to_owned(), "`verify-full`"),
    ] {
        let error = connect(host, &question).unwrap_err();
        assert!(error.contains(cause), "{question}: {error}");
    }
}
