//! All doors on one port: gRPC and HTTP side by side, behind one guard.

use axum::Router;
use axum::extract::{Request, State};
use axum::http::HeaderValue;
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::Response;
use proto::v1::admin_server::AdminServer;
use proto::v1::detection_server::DetectionServer;
use proto::v1::jobs_server::JobsServer;
use proto::v1::schedules_server::SchedulesServer;
use proto::v1::worker_server::WorkerServer;
use tonic::Status;
use tonic::service::Routes;
use tonic_health::server::HealthReporter;

use super::guard::{Guard, guard, turned_away};
use super::{Door, board, http, serving};

/// What tonic says of a message that is too large.
const TOO_LARGE: &str = "message length too large";

/// Everything that can be asked.
pub(crate) async fn router(door: Door) -> (Router, HealthReporter) {
    let (health, health_service) = tonic_health::server::health_reporter();
    serving::say(&health, true).await;
    let reflection = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(proto::DESCRIPTORS)
        .build_v1()
        .expect("our own descriptors are well formed");
    let bytes_max = door.config.limits.message_bytes_max;
    let routes = Routes::new(health_service)
        .add_service(reflection)
        .add_service(
            WorkerServer::new(door.clone())
                .max_decoding_message_size(bytes_max)
                .max_encoding_message_size(bytes_max),
        )
        .add_service(
            JobsServer::new(door.clone())
                .max_decoding_message_size(bytes_max)
                .max_encoding_message_size(bytes_max),
        )
        .add_service(
            DetectionServer::new(door.clone())
                .max_decoding_message_size(bytes_max)
                .max_encoding_message_size(bytes_max),
        )
        .add_service(
            SchedulesServer::new(door.clone())
                .max_decoding_message_size(bytes_max)
                .max_encoding_message_size(bytes_max),
        )
        .add_service(
            AdminServer::new(door.clone())
                .max_decoding_message_size(bytes_max)
                .max_encoding_message_size(bytes_max),
        );
    let gate = Guard { tokens: door.tokens.clone(), store: std::sync::Arc::clone(&door.store) };
    let router = routes
        .into_axum_router()
        .layer(from_fn_with_state(bytes_max, name_the_limit))
        .merge(http::router(door).merge(board::router()).layer(from_fn(board::with_headers)))
        .fallback(nothing)
        .layer(from_fn_with_state(gate, guard))
        .with_state(());
    (router, health)
}

/// There is no such path.
async fn nothing(request: Request) -> Response {
    let path = request.uri().path().to_owned();
    turned_away(&request, &Status::unimplemented(format!("there is no `{path}` here")))
}

/// A message that is too large is a limit like any other: the answer names it.
async fn name_the_limit(State(bytes_max): State<usize>, request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    let message = response.headers().get("grpc-message").map(HeaderValue::as_bytes);
    // Blanks are written as `%20` there.
    let message = String::from_utf8_lossy(message.unwrap_or_default()).replace("%20", " ");
    if !message.contains(TOO_LARGE) {
        return response;
    }
    let status = crate::limits::exceeded(
        ("message_bytes_max", bytes_max),
        "the message has more bytes",
        "send less at a time",
    );
    status.into_http()
}
