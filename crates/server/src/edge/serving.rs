//! gRPC's own way to ask whether it is time to ask: it says what `/readyz` says.

use std::time::Duration;

use proto::v1::admin_server::AdminServer;
use proto::v1::detection_server::DetectionServer;
use proto::v1::jobs_server::JobsServer;
use proto::v1::schedules_server::SchedulesServer;
use proto::v1::worker_server::WorkerServer;
use tonic::server::NamedService as _;
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;

use super::Door;
use super::front::Front;

/// The first is whoever asks about no service.
const SERVICES: [&str; 6] = [
    "",
    WorkerServer::<Door>::NAME,
    JobsServer::<Door>::NAME,
    DetectionServer::<Door>::NAME,
    SchedulesServer::<Door>::NAME,
    AdminServer::<Door>::NAME,
];

/// A store that failed is well again because time passes, so that is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Says of all services whether to come.
pub(crate) async fn say(health: &HealthReporter, is_ready: bool) {
    let status = if is_ready { ServingStatus::Serving } else { ServingStatus::NotServing };
    for service in SERVICES {
        health.set_service_status(service, status).await;
    }
}

/// Says it whenever it changes, until there is nothing more to come for.
pub(crate) async fn keep_saying(health: HealthReporter, front: Front) {
    let mut was_ready = true;
    while !front.stop.is_cancelled() {
        tokio::select! {
            () = front.stop.cancelled() => {}
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
        let is_ready = front.not_ready().is_none();
        if is_ready != was_ready {
            say(&health, is_ready).await;
            was_ready = is_ready;
        }
    }
    say(&health, false).await;
}
