//! Ends of jobs are told: signed, again until somebody hears it, and across a restart.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use model::Millis;
use proto::v1;
use serde_json::Value;
use server::{Config, Secret, Webhooks};
use sha2::Sha256;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tonic::Code;

use crate::site::{PATIENCE, Site, spec};

/// Somebody who is told, and answers as a test says.
struct Ear {
    listener: TcpListener,
    url: String,
}

/// What was told.
struct Told {
    stream: TcpStream,
    head: String,
    body: String,
}

impl Ear {
    async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("there is a port");
        let url = format!("http://{}/done", listener.local_addr().expect("it listens"));
        Self { listener, url }
    }

    async fn hear(&self) -> Told {
        let heard = tokio::time::timeout(PATIENCE, async {
            let (mut stream, _) = self.listener.accept().await.expect("it listens");
            let mut text = String::new();
            let mut bytes = [0; 4_096];
            loop {
                let n = stream.read(&mut bytes).await.expect("it is told");
                text += &String::from_utf8_lossy(&bytes[..n]);
                let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
                let length = header(head, "content-length").parse::<usize>().expect("a length");
                if body.len() == length {
                    let (head, body) = (head.to_owned(), body.to_owned());
                    return Told { stream, head, body };
                }
            }
        });
        heard.await.expect("somebody tells")
    }
}

fn header<'h>(head: &'h str, name: &str) -> &'h str {
    let named =
        |line: &'h str| line.split_once(": ").filter(|(known, _)| known.eq_ignore_ascii_case(name));
    head.lines().find_map(named).map_or("", |(_, value)| value)
}

impl Told {
    async fn answer(mut self, status: &str) {
        let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n");
        self.stream.write_all(answer.as_bytes()).await.expect("it is heard");
    }

    fn id(&self) -> String {
        header(&self.head, "webhook-id").to_owned()
    }

    /// Whether the signature is what somebody with this key makes of it.
    fn is_signed_with(&self, key: &str) -> bool {
        let key = STANDARD.decode(key.trim_start_matches("whsec_")).expect("a key is base64");
        let mut hmac = Hmac::<Sha256>::new_from_slice(&key).expect("any length is good");
        let seconds = header(&self.head, "webhook-timestamp");
        hmac.update(format!("{}.{seconds}.{}", self.id(), self.body).as_bytes());
        let signed = format!("v1,{}", STANDARD.encode(hmac.finalize().into_bytes()));
        header(&self.head, "webhook-signature") == signed
    }
}

fn config() -> Config {
    let secret = Some(Secret::new("0123456789abcdef0123456789abcdef".to_owned()));
    let webhooks = Webhooks { enabled: true, private: true, secret, ..Webhooks::default() };
    Config { webhooks, ..Config::default() }
}

async fn submit(site: &Site, url: &str) -> u64 {
    let labels = [("run".to_owned(), "7".to_owned())].into();
    let (tenant, webhook) = ("acme".to_owned(), url.to_owned());
    site.submit(v1::Spec { tenant, webhook, labels, ..spec() }).await
}

async fn cancel(site: &Site, id: u64) {
    site.jobs.clone().cancel(v1::CancelRequest { ids: vec![id] }).await.expect("it answers");
}

#[tokio::test]
async fn an_end_is_told_signed_with_the_key_of_its_tenant() {
    let (site, ear) = (Site::with(config()).await, Ear::new().await);
    let mut worker = site.worker("w").await;
    let id = submit(&site, &ear.url).await;
    worker.serve().await;
    let told = ear.hear().await;
    assert!(told.head.starts_with("POST /done HTTP/1.1"), "{}", told.head);
    let body: Value = serde_json::from_str(&told.body).expect("it is JSON");
    assert_eq!(body["type"], "job.succeeded");
    let data = &body["data"];
    assert_eq!((data["job"].as_u64(), &data["tenant"]), (Some(id), &Value::from("acme")));
    assert_eq!(data["labels"]["run"], "7");
    let key = |tenant: &str| v1::WebhookKeyRequest { tenant: tenant.to_owned() };
    let own = site.admin.clone().webhook_key(key("acme")).await.unwrap().into_inner().key;
    let others = site.admin.clone().webhook_key(key("globex")).await.unwrap().into_inner().key;
    assert!(told.is_signed_with(&own) && !told.is_signed_with(&others));
    told.answer("204 No Content").await;
    site.until("it is done with", async || {
        use store::Store as _;
        site.time.pass(Millis::from_secs(7_200));
        let left = site.store.notices(model::Retry::DEFAULT, 9).await.expect("the store answers");
        left.is_empty().then_some(())
    })
    .await;
}

#[tokio::test]
async fn an_end_is_told_again_until_somebody_hears_it_also_by_the_next_scheduler() {
    let (mut site, ear) = (Site::with(config()).await, Ear::new().await);
    let id = submit(&site, &ear.url).await;
    cancel(&site, id).await;
    let first = ear.hear().await;
    let told = first.id();
    first.answer("500 Internal Server Error").await;
    site.stop().await;
    site.time.pass(Millis::from_secs(60));
    site.go().await;
    let second = ear.hear().await;
    assert_eq!(second.id(), told, "whoever listens knows it again");
    // Nobody is followed elsewhere.
    let elsewhere = Ear::new().await;
    second.answer(&format!("302 Found\r\nlocation: {}", elsewhere.url)).await;
    site.time.pass(Millis::from_secs(120));
    let third = ear.hear().await;
    assert_eq!(third.id(), told);
    third.answer("200 OK").await;
    let nobody =
        tokio::time::timeout(std::time::Duration::from_millis(1), elsewhere.listener.accept());
    assert!(nobody.await.is_err());
}

#[tokio::test]
async fn an_end_that_nobody_hears_is_given_up() {
    let mut config = config();
    config.webhooks.tries_max = 2;
    let (site, ear) = (Site::with(config).await, Ear::new().await);
    let id = submit(&site, &ear.url).await;
    cancel(&site, id).await;
    ear.hear().await.answer("410 Gone").await;
    site.time.pass(Millis::from_secs(60));
    ear.hear().await.answer("410 Gone").await;
    site.until("it is given up", async || {
        use store::Store as _;
        site.time.pass(Millis::from_secs(7_200));
        let left = site.store.notices(model::Retry::DEFAULT, 9).await.expect("the store answers");
        left.is_empty().then_some(())
    })
    .await;
}

#[tokio::test]
async fn nobody_is_told_unless_it_is_on_and_no_private_address_unless_allowed() {
    let off = Site::start().await;
    let ask = |url: &str| v1::SubmitRequest {
        jobs: vec![v1::Spec { webhook: url.to_owned(), ..spec() }],
        ..v1::SubmitRequest::default()
    };
    let refused = off.jobs.clone().submit(ask("https://a.example")).await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition);
    let mut public = config();
    public.webhooks.private = false;
    let (site, ear) = (Site::with(public).await, Ear::new().await);
    let refused = site.jobs.clone().submit(ask(&ear.url)).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument, "{refused:?}");
    // A name is judged by what it stands for when it is connected to.
    let port = ear.url.split(':').next_back().expect("it has a port");
    let id = submit(&site, &format!("http://localhost:{port}")).await;
    cancel(&site, id).await;
    site.until("it is tried", async || {
        use store::Store as _;
        site.time.pass(Millis::from_secs(3_600));
        let left = site.store.notices(model::Retry::DEFAULT, 9).await.expect("the store answers");
        left.first().is_some_and(|notice| notice.tries > 2).then_some(())
    })
    .await;
    let nobody = tokio::time::timeout(std::time::Duration::from_millis(1), ear.listener.accept());
    assert!(nobody.await.is_err());
}
