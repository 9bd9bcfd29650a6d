//! What passes is encrypted, and whoever answers is vouched for.

use std::path::PathBuf;

use proto::v1;
use proto::v1::admin_client::AdminClient;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use server::Config;
use tonic::Status;

use crate::site::Site;

/// Who vouches, and files of a certificate for `localhost` and of its key.
struct Papers {
    ca_pem: String,
    cert: PathBuf,
    key: PathBuf,
    _dir: tempfile::TempDir,
}

fn papers() -> Papers {
    let mut params = CertificateParams::new(Vec::new()).expect("it is made");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca = CertifiedIssuer::self_signed(params, KeyPair::generate().expect("it is made"))
        .expect("it is made");
    let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let key_pair = KeyPair::generate().expect("it is made");
    let params = CertificateParams::new(names).expect("it is made");
    let own = params.signed_by(&key_pair, &ca).expect("it is made");
    let dir = tempfile::tempdir().expect("it is made");
    let (cert, key) = (dir.path().join("cert.pem"), dir.path().join("key.pem"));
    std::fs::write(&cert, own.pem()).expect("it is made");
    std::fs::write(&key, key_pair.serialize_pem()).expect("it is made");
    Papers { ca_pem: ca.pem(), cert, key, _dir: dir }
}

async fn status(url: &str, ca_pem: Option<&str>) -> Result<v1::StatusResponse, Status> {
    let endpoint = proto::endpoint(url, ca_pem.map(str::as_bytes)).expect("it is an address");
    let channel =
        endpoint.connect().await.map_err(|error| Status::unavailable(error.to_string()))?;
    Ok(AdminClient::new(channel).status(v1::StatusRequest {}).await?.into_inner())
}

#[tokio::test]
async fn clients_connect_to_whom_their_ca_vouches_for_and_to_nobody_else() {
    let papers = papers();
    let (tls_cert, tls_key) = (Some(papers.cert.clone()), Some(papers.key.clone()));
    let site =
        Site::sealed(Config { tls_cert, tls_key, ..Config::default() }, &papers.ca_pem).await;
    let url = site.url().to_owned();
    assert!(url.starts_with("https://"), "{url}");
    status(&url, Some(&papers.ca_pem)).await.unwrap();
    let strangers = self::papers();
    assert!(status(&url, Some(&strangers.ca_pem)).await.is_err(), "another vouches");
    assert!(status(&url, None).await.is_err(), "the system does not know who vouches");
    let plain = url.replace("https://", "http://");
    assert!(status(&plain, None).await.is_err(), "nothing is answered in the clear");
    let elsewhere = url.replace("localhost", "127.0.0.2");
    assert!(status(&elsewhere, Some(&papers.ca_pem)).await.is_err(), "the name is another");
}

#[tokio::test]
async fn a_worker_connects_over_tls() {
    let papers = papers();
    let (tls_cert, tls_key) = (Some(papers.cert.clone()), Some(papers.key.clone()));
    let site =
        Site::sealed(Config { tls_cert, tls_key, ..Config::default() }, &papers.ca_pem).await;
    let mut worker = site.worker("w").await;
    let id = site.submit(crate::site::spec()).await;
    assert_eq!(worker.offer().await.job, id);
}

#[tokio::test]
async fn papers_that_are_not_in_order_are_refused_by_name() {
    let (papers, others) = (papers(), papers());
    let missing = PathBuf::from("/nowhere/cert.pem");
    for (cert, key, field) in [
        (&missing, &papers.key, "tls_cert"),
        (&papers.cert, &missing, "tls_key"),
        (&papers.key, &papers.key, "tls_cert"),
        (&papers.cert, &others.key, "tls_key"),
    ] {
        let store = std::sync::Arc::new(store::Memory::new(store::Options::default()));
        let (tls_cert, tls_key) = (Some(cert.clone()), Some(key.clone()));
        let config = Config { tls_cert, tls_key, ..Config::default() };
        let refused = server::start(config, store).await.unwrap_err();
        let server::Error::Config(refused) = refused else { panic!("{refused:?}") };
        assert_eq!(refused.field, field, "{refused:?}");
    }
}
