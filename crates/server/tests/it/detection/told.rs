//! What operators set, and what workers are told of it.

use proto::v1;
use proto::v1::server_message::Message as Theirs;
use proto::v1::worker_message::Message as Ours;

use super::{detector, value};
use crate::puppet::Puppet;
use crate::site::Site;

#[tokio::test]
async fn a_policy_is_set_field_by_field_and_counts_at_once() {
    let site = Site::start().await;
    let mut worker = site.worker_with(detector("w", &["vacuum"])).await;
    worker.find("vacuum", &[]).await;
    site.n_runs("vacuum", 1).await;
    let kind = site.kind("vacuum").await;
    assert_eq!(value(&kind, "interval"), ("10m", "descriptor"));
    assert_eq!(value(&kind, "jobs_max"), ("1", "default"));
    let values =
        [("interval", "2m"), ("jobs_max", "3"), ("worker_max", "3"), ("admin.threshold", "0.5")];
    let kind = site.set_kind("vacuum", &values).await.unwrap();
    assert_eq!(value(&kind, "interval"), ("2m", "set"));
    assert_eq!((kind.admin[0].value.as_str(), kind.admin[0].is_set), ("0.5", true));
    let configured = loop {
        if let Theirs::Configured(configured) = worker.next().await.unwrap()
            && configured.admin.contains("0.5")
        {
            break configured;
        }
    };
    assert_eq!(configured.worker, r#"{"pause":"1s"}"#);
    site.idle(&mut worker, 120).await;
    worker.find("vacuum", &["a", "b", "c", "d"]).await;
    site.until("three run at once", async || {
        (site.tally("vacuum", &[v1::State::Claimed]).await == [3]).then_some(())
    })
    .await;
    let unset = site.set_kind("vacuum", &[("interval", "")]).await.unwrap();
    assert_eq!(value(&unset, "interval"), ("10m", "descriptor"));
    let activity = site.activity("setting").await.remove(0);
    assert_eq!((activity.what.as_str(), activity.who.as_str()), ("set interval=", "local"));
    site.set(v1::SettingKind::Tenant, "acme", r#"{"weight": 3}"#).await;
    let activity = site.activity("setting").await.remove(0);
    assert_eq!(
        (activity.about.as_str(), activity.what.as_str()),
        ("acme", "set tenant acme to {\"weight\": 3}")
    );
    let wrong = |values: &'static [(&'static str, &'static str)]| site.set_kind("vacuum", values);
    assert_eq!(
        wrong(&[("admin.threshold", "7")]).await.unwrap_err(),
        "`admin.threshold` is \"7\", which is not between 0 and 1"
    );
    assert!(wrong(&[("interval", "5")]).await.unwrap_err().starts_with("`interval` is `5`"));
    assert!(wrong(&[("colour", "red")]).await.unwrap_err().starts_with("`colour` is no field"));
    assert!(wrong(&[("x.y", "red")]).await.unwrap_err().starts_with("`x.y` is in `x`"));
}

#[tokio::test]
async fn what_is_published_reaches_every_worker_and_only_the_chosen_one_may_publish() {
    let site = Site::start().await;
    let mut worker = site.worker("w").await;
    let put = |json: Option<&str>, publisher: Option<&str>| {
        let json = json.map(str::to_owned);
        let request = v1::PutContextRequest { json, publisher: publisher.map(str::to_owned) };
        let mut client = site.detection.clone();
        async move { client.put_context(request).await.map(tonic::Response::into_inner) }
    };
    assert_eq!(put(Some(r#"{"n": 1}"#), None).await.unwrap().version, 1);
    assert_eq!(worker.context().await, (1, r#"{"n": 1}"#.to_owned()));
    let wrong = put(Some("[]"), None).await.unwrap_err();
    assert_eq!(wrong.message(), "`json` is not a JSON object");
    let json = r#"{"n": 2}"#.to_owned();
    worker.say(Ours::Publish(v1::Publish { json: json.clone() })).await;
    worker.beat(v1::Heartbeat::default()).await;
    assert_eq!(site.counter("publications_refused").await, 1);
    assert_eq!(put(None, Some("w")).await.unwrap().version, 1);
    worker.say(Ours::Publish(v1::Publish { json: json.clone() })).await;
    assert_eq!(worker.context().await, (2, json.clone()));
    // Also whoever comes later.
    assert_eq!(site.worker("v").await.context().await, (2, json));
}

#[tokio::test]
async fn of_many_who_publish_at_once_each_has_a_version_of_its_own() {
    let site = Site::start().await;
    let another = site.another().await;
    let mut worker = another.worker("w").await;
    let put = |site: &Site, n: usize, publisher: Option<&str>| {
        let (json, publisher) = (Some(format!("{{\"n\": {n}}}")), publisher.map(str::to_owned));
        let mut client = site.detection.clone();
        async move {
            let put = client.put_context(v1::PutContextRequest { json, publisher }).await;
            put.expect("it is published").into_inner()
        }
    };
    assert_eq!(put(&another, 0, Some("w")).await.version, 1);
    worker.context().await;
    // Both answer late, so that each of them has read what the other changes.
    for store in [&site.store, &another.store] {
        store.hold("settings");
    }
    let publish = v1::Publish { json: r#"{"n": 9}"#.to_owned() };
    let all = async {
        tokio::join!(
            put(&site, 1, None),
            put(&another, 2, None),
            put(&site, 3, None),
            worker.say(Ours::Publish(publish)),
        )
    };
    let let_go = async {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        site.store.let_go("settings");
        another.store.let_go("settings");
    };
    let ((a, b, c, ()), ()) = tokio::join!(all, let_go);
    let mut versions = vec![a.version, b.version, c.version];
    let (version, json) = loop {
        let (version, json) = worker.context().await;
        if json.contains('9') {
            break (version, json);
        }
    };
    versions.push(version);
    versions.sort_unstable();
    assert_eq!(versions, [2, 3, 4, 5], "{json}");
}

#[tokio::test]
async fn two_who_change_different_values_at_once_both_have_their_way() {
    let site = Site::start().await;
    let another = site.another().await;
    site.store.hold("settings");
    let one = site.set_kind("vacuum", &[("interval", "7m")]);
    let other = async {
        let set = another.set_kind("vacuum", &[("lane", "slow")]).await;
        site.store.let_go("settings");
        set
    };
    let (one, _) = tokio::join!(one, other);
    let shown = one.expect("it is set").policy;
    let value = |name: &str| shown.iter().find(|one| one.name == name).unwrap().value.clone();
    assert_eq!((value("interval"), value("lane")), ("7m".to_owned(), "slow".to_owned()));
}

impl Puppet {
    async fn context(&mut self) -> (u64, String) {
        loop {
            if let Theirs::Context(context) = self.next().await.expect("the stream goes on") {
                return (context.version, context.json);
            }
        }
    }
}
