//! The client of a scheduler.

use std::time::Duration;

use proto::v1;
use proto::v1::admin_client::AdminClient;
use proto::v1::jobs_client::JobsClient;
use tonic::Status;
use tonic::transport::{Channel, Endpoint};

/// The timeout of a request.
const TIMEOUT: Duration = Duration::from_secs(3);

/// A connection that reconnects on demand.
#[derive(Clone)]
pub(crate) struct Rpc {
    channel: Channel,
}

impl Rpc {
    pub(crate) fn new(port: u16) -> Self {
        let endpoint = Endpoint::from_shared(format!("http://127.0.0.1:{port}"));
        let endpoint = endpoint.expect("an address with a port is an address");
        let endpoint = endpoint.connect_timeout(TIMEOUT).timeout(TIMEOUT).tcp_nodelay(true);
        Self { channel: endpoint.connect_lazy() }
    }

    pub(crate) fn jobs(&self) -> JobsClient<Channel> {
        JobsClient::new(self.channel.clone())
    }

    pub(crate) fn admin(&self) -> AdminClient<Channel> {
        AdminClient::new(self.channel.clone())
    }

    pub(crate) async fn status(&self) -> Result<v1::StatusResponse, Status> {
        Ok(self.admin().status(v1::StatusRequest {}).await?.into_inner())
    }

    /// One of the scheduler's counters.
    pub(crate) async fn counter(&self, name: &str) -> u64 {
        let status = self.status().await.unwrap_or_default();
        status.counters.get(name).copied().unwrap_or(0)
    }

    /// Some of the jobs that are not final.
    pub(crate) async fn unfinished(&self) -> Result<Vec<v1::Job>, Status> {
        use v1::State::{Blocked, Claimed, Queued, Running};
        let states = [Blocked, Queued, Claimed, Running].map(i32::from).to_vec();
        let filter = Some(v1::JobFilter { states, ..v1::JobFilter::default() });
        let request = v1::ListRequest { filter, page_size: 100, before: 0 };
        Ok(self.jobs().list(request).await?.into_inner().jobs)
    }

    pub(crate) async fn get(&self, id: u64) -> Result<v1::GetResponse, Status> {
        Ok(self.jobs().get(v1::GetRequest { id }).await?.into_inner())
    }

    /// The reason why a job is not final, for users.
    pub(crate) async fn why(&self, id: u64) -> String {
        let state = match self.get(id).await {
            Ok(v1::GetResponse { job: Some(job), .. }) => {
                format!("{} on `{}`, {:?}", job.state().as_str_name(), job.worker, job.counts)
            }
            Ok(_) => "gone".to_owned(),
            Err(status) => status.message().to_owned(),
        };
        let why = self.jobs().explain(v1::ExplainRequest { id }).await;
        let why = why.map(tonic::Response::into_inner).unwrap_or_default();
        format!("job {id}: {state}; {} {}", why.reason, why.detail)
    }
}
