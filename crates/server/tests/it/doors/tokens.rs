//! Tokens are made, shown, refused, revoked; each opens what its scopes say.

use std::sync::Arc;

use model::Millis;
use proto::v1;
use server::Config;
use store::Store as _;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::{Code, Request, Status};
use tonic_prost::ProstCodec;

use super::Bearing;
use crate::site::{Site, spec};

/// What each scope opens, for all tenants; `Status` is open to every token.
const OPENS: &[(&str, &[&str])] = &[
    ("submit", &["Jobs/Submit", "Jobs/DryRun", "Jobs/Limits"]),
    (
        "read",
        &[
            "Jobs/Get",
            "Jobs/List",
            "Jobs/Watch",
            "Jobs/Wait",
            "Jobs/Explain",
            "Jobs/Logs",
            "Admin/Settings",
            "Admin/Tenants",
            "Admin/Workers",
            "Admin/Types",
            "Admin/Load",
            "Admin/Demand",
        ],
    ),
    ("cancel", &["Jobs/Cancel", "Jobs/Retry", "Jobs/Amend"]),
    ("work", &["Worker/Session"]),
    ("tenant-admin", &["Admin/NewToken", "Admin/RevokeToken", "Admin/Tokens", "Admin/WebhookKey"]),
    ("admin", &["Admin/Set", "Admin/Unset", "Admin/DrainWorker", "Admin/Snapshot"]),
];

/// Asks by a path alone, with an empty message; what comes of it, if it is let in.
async fn knock(site: &Site, path: &str, token: Option<&str>) -> Result<(), Status> {
    let mut client = tonic::client::Grpc::new(site.channel.clone());
    client.ready().await.expect("it is connected");
    let path = PathAndQuery::try_from(format!("/maitre.v1.{path}")).expect("it is a path");
    let mut request = Request::new(());
    if let Some(token) = token {
        let value = format!("Bearer {token}").parse().expect("it is text");
        request.metadata_mut().insert("authorization", value);
    }
    client.unary(request, path, ProstCodec::<(), ()>::default()).await.map(|_| ())
}

fn is_turned_away(answer: &Result<(), Status>) -> bool {
    let code = answer.as_ref().err().map(Status::code);
    matches!(code, Some(Code::Unauthenticated | Code::PermissionDenied))
}

#[tokio::test]
async fn each_scope_opens_what_it_says_and_nothing_else() {
    let site = Site::start().await;
    let admin = site.admin_token().await;
    for (scope, _) in OPENS {
        let token = admin.make("", &[scope]).await.unwrap();
        for (of, paths) in OPENS {
            let is_own = match *scope {
                "admin" => true,
                "tenant-admin" => !matches!(*of, "work" | "admin"),
                other => other == *of,
            };
            for path in *paths {
                // This one waits for changes for ever.
                if is_own && *path == "Jobs/Watch" {
                    continue;
                }
                let answer = knock(&site, path, Some(&token)).await;
                assert_eq!(is_turned_away(&answer), !is_own, "{scope} at {path}: {answer:?}");
            }
        }
        assert!(!is_turned_away(&knock(&site, "Admin/Status", Some(&token)).await));
    }
}

#[tokio::test]
async fn from_the_first_token_on_nobody_gets_in_without() {
    let site = Site::start().await;
    site.submit(spec()).await;
    let refused = site.bearing("x").make("acme", &["submit"]).await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition, "{refused:?}");
    let admin = site.admin_token().await;
    for (_, paths) in OPENS {
        for path in *paths {
            for token in [None, Some("maitre_0000"), Some(&admin.secret[1..])] {
                let code = knock(&site, path, token).await.unwrap_err().code();
                assert_eq!(code, Code::Unauthenticated, "{path} with {token:?}");
            }
        }
    }
    assert_eq!(admin.submit(spec()).await.unwrap(), 2);
}

async fn revoke(bearing: &Bearing, token: &str) -> Result<v1::RevokeTokenResponse, Status> {
    let request = v1::RevokeTokenRequest { token: token.to_owned() };
    bearing.admin.clone().revoke_token(request).await.map(tonic::Response::into_inner)
}

#[tokio::test]
async fn a_token_ends_when_it_is_revoked_or_its_time_is_over_also_after_a_restart() {
    let mut site = Site::start().await;
    let admin = site.admin_token().await;
    let request = v1::NewTokenRequest {
        name: "short".to_owned(),
        scopes: vec!["submit".to_owned()],
        lasts_ms: Some(60_000),
        ..v1::NewTokenRequest::default()
    };
    let short = admin.admin.clone().new_token(request).await.unwrap().into_inner();
    let short = site.bearing(&short.secret);
    let long = site.bearing(&admin.make("acme", &["submit"]).await.unwrap());
    short.submit(spec()).await.unwrap();
    long.submit(spec()).await.unwrap();
    site.time.pass(Millis(60_000));
    assert_eq!(short.submit(spec()).await.unwrap_err().code(), Code::Unauthenticated);
    let listed = admin.admin.clone().tokens(v1::TokensRequest {}).await.unwrap().into_inner();
    let id = listed.tokens.iter().find(|token| token.tenant == "acme").unwrap().id.clone();
    assert_eq!(listed.tokens.len(), 3);
    let gone = revoke(&admin, &id).await.unwrap().token.unwrap();
    assert_eq!((gone.id, gone.tenant.as_str()), (id.clone(), "acme"));
    assert_eq!(long.submit(spec()).await.unwrap_err().code(), Code::Unauthenticated);
    assert_eq!(revoke(&admin, &id).await.unwrap_err().code(), Code::NotFound);
    site.stop().await;
    site.go().await;
    let (long, again) = (site.bearing(&long.secret), site.bearing(&admin.secret));
    assert_eq!(long.submit(spec()).await.unwrap_err().code(), Code::Unauthenticated);
    again.submit(spec()).await.unwrap();
    let last = listed.tokens.iter().find(|token| token.scopes == ["admin"]).unwrap();
    let refused = revoke(&again, &last.id).await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition, "others would be locked out");
    revoke(&again, "short").await.unwrap();
    revoke(&again, &last.id).await.unwrap();
    assert_eq!(again.submit(spec()).await.unwrap_err().code(), Code::Unauthenticated);
}

#[tokio::test]
async fn nobody_makes_a_token_that_may_do_more_than_theirs() {
    let site = Site::start().await;
    let admin = site.admin_token().await;
    let acme = site.bearing(&admin.make("acme", &["tenant-admin"]).await.unwrap());
    for (tenant, scope) in [("globex", "read"), ("", "admin"), ("", "work")] {
        let refused = acme.make(tenant, &[scope]).await.unwrap_err();
        assert_eq!(refused.code(), Code::PermissionDenied, "{tenant} {scope}");
    }
    let own = site.bearing(&acme.make("", &["submit"]).await.unwrap());
    let id = own.submit(spec()).await.unwrap();
    assert_eq!(site.record(id).await.spec.tenant.to_string(), "acme");
    assert_eq!(own.make("", &["submit"]).await.unwrap_err().code(), Code::PermissionDenied);
}

#[tokio::test]
async fn what_is_kept_of_a_token_does_not_open_the_door() {
    let site = Site::start().await;
    let admin = site.admin_token().await;
    let settings = site.store.settings().await.unwrap();
    let [kept] = &settings[..] else { panic!("one is kept: {settings:?}") };
    assert!(!format!("{kept:?}").contains(&admin.secret));
    let answer = knock(&site, "Admin/Tokens", Some(&kept.name)).await;
    assert_eq!(answer.unwrap_err().code(), Code::Unauthenticated);
    let listed = admin.admin.clone().settings(v1::SettingsRequest::default()).await.unwrap();
    assert_eq!(listed.into_inner().settings, [], "not even as settings");
}

#[tokio::test]
async fn an_address_that_others_can_reach_needs_a_token() {
    let store = Arc::new(store::Memory::new(store::Options::default()));
    let listen = ([0, 0, 0, 0], 0).into();
    let config = Config { listen, insecure_plaintext: true, ..Config::default() };
    let refused =
        server::start(config.clone(), Arc::<store::Memory>::clone(&store)).await.unwrap_err();
    let server::Error::Config(refused) = refused else { panic!("{refused:?}") };
    assert_eq!(refused.field, "listen");
    assert!(refused.hint.contains("maitre token new"), "{}", refused.hint);
    let grant = server::Grant { tenant: None, scopes: vec![server::Scope::Admin] };
    let (_, token) = server::Token::make("", grant, (store.now(), None)).unwrap();
    store.set(vec![token.setting()]).await.unwrap();
    assert!(server::start(config, store).await.is_ok());
}

#[tokio::test]
async fn a_token_in_a_file_may_do_everything_and_is_kept_nowhere_else() {
    let dir = tempfile::tempdir().expect("it is made");
    let path = dir.path().join("admin.token");
    let secret = "0123456789abcdef0123456789abcdef";
    std::fs::write(&path, format!("{secret}\n")).expect("it is written");
    let listen = ([127, 0, 0, 1], 0).into();
    let config = Config { listen, admin_token_file: Some(path.clone()), ..Config::default() };
    let mut site = Site::with(config.clone()).await;
    assert!(is_turned_away(&knock(&site, "Admin/Status", None).await));
    assert!(is_turned_away(&knock(&site, "Admin/Status", Some("another")).await));
    let admin = site.bearing(secret);
    let made = admin.make("acme", &["submit"]).await.unwrap();
    assert_eq!(site.store.settings().await.unwrap().len(), 1, "only what it made");
    site.bearing(&made).submit(spec()).await.unwrap();
    // Another in its place holds from the next start on.
    let other = secret.replace('0', "9");
    std::fs::write(&path, &other).expect("it is written");
    site.stop().await;
    site.go().await;
    assert!(is_turned_away(&knock(&site, "Admin/Status", Some(secret)).await));
    knock(&site, "Admin/Status", Some(&other)).await.unwrap();
    std::fs::write(&path, "short").expect("it is written");
    for (path, problem) in [(path, "too short"), (dir.path().join("none"), "cannot be read")] {
        let store = Arc::new(store::Memory::new(store::Options::default()));
        let config = Config { admin_token_file: Some(path), ..config.clone() };
        let server::Error::Config(refused) = server::start(config, store).await.unwrap_err() else {
            panic!("it is refused for another reason")
        };
        assert_eq!(refused.field, "admin_token_file");
        assert!(refused.problem.contains(problem), "{}", refused.problem);
    }
}
