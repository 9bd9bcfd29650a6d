//! How others meet a scheduler: health, reflection, versions.

use model::Millis;
use proto::v1;
use tonic::Code;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;

use crate::puppet::Puppet;
use crate::site::{Site, hello};

const SERVICES: [&str; 5] = [
    "maitre.v1.Admin",
    "maitre.v1.Detection",
    "maitre.v1.Jobs",
    "maitre.v1.Schedules",
    "maitre.v1.Worker",
];

#[tokio::test]
async fn whoever_asks_hears_that_every_service_is_well() {
    let site = Site::start().await;
    let mut health = HealthClient::new(site.channel.clone());
    for service in SERVICES {
        let request = HealthCheckRequest { service: service.to_owned() };
        let answer = health.check(request).await.unwrap().into_inner();
        assert_eq!(answer.status(), ServingStatus::Serving, "{service}");
    }
    let request = HealthCheckRequest { service: "maitre.v1.Nothing".to_owned() };
    assert_eq!(health.check(request).await.unwrap_err().code(), Code::NotFound);
}

#[tokio::test]
async fn while_the_store_fails_no_service_is_well() {
    let site = Site::start().await;
    let health = HealthClient::new(site.channel.clone());
    let is_said_of_all = async |status: ServingStatus| {
        for service in SERVICES.into_iter().chain([""]) {
            let request = HealthCheckRequest { service: service.to_owned() };
            let answer = health.clone().check(request).await.unwrap().into_inner();
            if answer.status() != status {
                return None;
            }
        }
        Some(())
    };
    site.store.fail("expired", 1, store::Error::Full { doing: "look" });
    site.pass(Millis::from_secs(2)).await;
    site.until("they are not", async || is_said_of_all(ServingStatus::NotServing).await).await;
    site.pass(Millis::from_secs(5)).await;
    site.until("they are again", async || is_said_of_all(ServingStatus::Serving).await).await;
}

#[tokio::test]
async fn whoever_asks_hears_which_services_and_messages_there_are() {
    let site = Site::start().await;
    let services = reflect(&site, MessageRequest::ListServices(String::new())).await;
    let MessageResponse::ListServicesResponse(services) = services else { panic!("{services:?}") };
    let names: Vec<&str> = services.service.iter().map(|service| service.name.as_str()).collect();
    assert!(SERVICES.iter().all(|service| names.contains(service)), "{names:?}");
    for symbol in ["maitre.v1.Jobs", "maitre.v1.Hello"] {
        let file = reflect(&site, MessageRequest::FileContainingSymbol(symbol.to_owned())).await;
        let MessageResponse::FileDescriptorResponse(file) = file else { panic!("{file:?}") };
        assert!(!file.file_descriptor_proto.is_empty(), "{symbol}");
    }
}

async fn reflect(site: &Site, question: MessageRequest) -> MessageResponse {
    let mut client = ServerReflectionClient::new(site.channel.clone());
    let request = ServerReflectionRequest { message_request: Some(question), ..Default::default() };
    let answers = client.server_reflection_info(tokio_stream::iter([request])).await;
    let answer = answers.expect("it answers").into_inner().message().await;
    let answer = answer.expect("it goes on").expect("there is an answer");
    answer.message_response.expect("it says something")
}

#[tokio::test]
async fn versions_that_cannot_meet_are_told_who_is_too_old() {
    let site = Site::start().await;
    let newest = proto::PROTOCOL;
    let speaks =
        |oldest, newest| v1::Hello { protocol: newest, protocol_oldest: oldest, ..hello("w") };
    // One that says nothing about older versions speaks its own alone.
    for (hello, upgrade, range) in [
        (speaks(0, 0), "upgrade the worker", "0 to 0"),
        (speaks(0, newest + 1), "upgrade the scheduler", "2 to 2"),
        (speaks(newest + 1, newest + 3), "upgrade the scheduler", "2 to 4"),
    ] {
        let refused = Puppet::connect(&site, hello).await.err().expect("it is refused");
        assert_eq!(refused.code(), Code::FailedPrecondition);
        let told = refused.message();
        assert!(told.contains(upgrade) && told.contains(range), "{told}");
        assert!(told.contains("this scheduler speaks 1 to 1"), "{told}");
    }
}

#[tokio::test]
async fn a_newer_worker_that_still_speaks_our_version_is_welcome() {
    let site = Site::start().await;
    let newest = proto::PROTOCOL;
    let newer = v1::Hello { protocol: newest + 5, protocol_oldest: newest, ..hello("w") };
    assert_eq!(site.worker_with(newer).await.welcome.protocol, newest);
}
