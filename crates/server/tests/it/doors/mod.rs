//! Who is let in, how far, and how much of everything.

mod tokens;
mod isolation;
mod limits;
mod tls;
mod http;
mod detection;
mod schedules;
mod board;
mod what_if;
mod webhooks;
mod series;

use proto::v1::admin_client::AdminClient;
use proto::v1::jobs_client::JobsClient;
use proto::{Bearer, Wire, v1};
use tonic::Status;

use crate::site::Site;

/// Somebody with a token.
#[derive(Clone)]
struct Bearing {
    jobs: JobsClient<Wire>,
    admin: AdminClient<Wire>,
    secret: String,
}

impl Site {
    /// Somebody who shows this.
    fn bearing(&self, secret: &str) -> Bearing {
        let bearer = Bearer::new(Some(secret)).expect("it is a token");
        Bearing {
            jobs: JobsClient::with_interceptor(self.channel.clone(), bearer.clone()),
            admin: AdminClient::with_interceptor(self.channel.clone(), bearer),
            secret: secret.to_owned(),
        }
    }

    /// The first token, which may do everything.
    async fn admin_token(&self) -> Bearing {
        let nobody = self.bearing("x");
        self.bearing(&nobody.make("", &["admin"]).await.expect("it is made"))
    }
}

impl Bearing {
    async fn make(&self, tenant: &str, scopes: &[&str]) -> Result<String, Status> {
        let request = v1::NewTokenRequest {
            tenant: tenant.to_owned(),
            scopes: scopes.iter().map(|scope| (*scope).to_owned()).collect(),
            ..v1::NewTokenRequest::default()
        };
        Ok(self.admin.clone().new_token(request).await?.into_inner().secret)
    }

    async fn submit(&self, spec: v1::Spec) -> Result<u64, Status> {
        let request = v1::SubmitRequest { jobs: vec![spec], ..v1::SubmitRequest::default() };
        Ok(self.jobs.clone().submit(request).await?.into_inner().jobs[0].id)
    }
}
