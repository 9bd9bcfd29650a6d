//! One tenant sees nothing of another, not even that there is something.

use proto::v1;
use tonic::{Code, Status};

use super::Bearing;
use crate::site::{Site, spec};

struct Two {
    site: Site,
    acme: Bearing,
    globex: Bearing,
    /// A job of acme.
    job: u64,
}

async fn two() -> Two {
    let site = Site::start().await;
    let admin = site.admin_token().await;
    let acme = site.bearing(&admin.make("acme", &["tenant-admin"]).await.expect("it is made"));
    let globex = site.bearing(&admin.make("globex", &["tenant-admin"]).await.expect("it is made"));
    let job = acme.submit(spec()).await.expect("it is made");
    Two { site, acme, globex, job }
}

/// What a job that there is not is answered with, its number left out.
fn said(status: &Status, id: u64) -> (Code, String) {
    (status.code(), status.message().replace(&id.to_string(), "N"))
}

#[tokio::test]
async fn a_job_of_another_tenant_is_like_one_that_does_not_exist() {
    let Two { site: _site, globex, job, .. } = two().await;
    let mut jobs = globex.jobs.clone();
    let mut answers = Vec::new();
    for id in [job, 9_999] {
        let wait = v1::WaitRequest { ids: vec![id], timeout_ms: 1 };
        let logs = v1::LogsRequest { id, ..v1::LogsRequest::default() };
        answers.push([
            said(&jobs.get(v1::GetRequest { id }).await.unwrap_err(), id),
            said(&jobs.explain(v1::ExplainRequest { id }).await.unwrap_err(), id),
            said(&jobs.wait(wait).await.unwrap_err(), id),
            said(&jobs.logs(logs).await.map(|_| ()).unwrap_err(), id),
            said(&globex.submit(v1::Spec { after: vec![id], ..spec() }).await.unwrap_err(), id),
        ]);
    }
    assert_eq!(answers[0], answers[1]);
    assert!(answers[0].iter().all(|(code, _)| *code == Code::NotFound), "{answers:?}");
}

#[tokio::test]
async fn a_job_of_another_tenant_cannot_be_changed() {
    let Two { site, acme, globex, job } = two().await;
    let own = globex.submit(spec()).await.unwrap();
    let before = site.record(job).await;
    let mut jobs = globex.jobs.clone();
    let ids = vec![job, own, 9_999];
    let hold = Some(v1::amend_request::Change::OnHold(true));
    let amend = v1::AmendRequest { ids: ids.clone(), change: hold };
    let amended = jobs.amend(amend).await.unwrap().into_inner();
    let cancelled = jobs.cancel(v1::CancelRequest { ids: ids.clone() }).await.unwrap().into_inner();
    let retried = jobs.retry(v1::RetryRequest { ids: ids.clone() }).await.unwrap().into_inner();
    for answer in [amended, cancelled, retried] {
        let [others, own, none] = &answer.changes[..] else { panic!("{answer:?}") };
        assert_eq!((others.id, own.id, none.id), (ids[0], ids[1], ids[2]));
        assert!(own.changed && !others.changed && !none.changed, "{answer:?}");
        assert_eq!((&others.problem, others.state), (&none.problem, none.state));
    }
    assert_eq!(site.record(job).await, before);
    let cancelled = acme.jobs.clone().cancel(v1::CancelRequest { ids: vec![job] }).await.unwrap();
    assert!(cancelled.into_inner().changes[0].changed);
}

#[tokio::test]
async fn lists_show_what_is_the_callers_own() {
    let Two { site: _site, acme, globex, job } = two().await;
    let own = globex.submit(spec()).await.unwrap();
    let list = |tenant: &str| v1::ListRequest {
        filter: Some(v1::JobFilter { tenant: tenant.to_owned(), ..v1::JobFilter::default() }),
        ..v1::ListRequest::default()
    };
    for (who, id) in [(&acme, job), (&globex, own)] {
        let listed = who.jobs.clone().list(list("")).await.unwrap().into_inner();
        assert_eq!(listed.jobs.iter().map(|job| job.id).collect::<Vec<_>>(), [id]);
        let tenants = who.admin.clone().tenants(v1::TenantsRequest {}).await.unwrap().into_inner();
        let tenants = tenants.tenants;
        assert_eq!(tenants.len(), 1, "{tenants:?}");
        let tokens = who.admin.clone().tokens(v1::TokensRequest {}).await.unwrap().into_inner();
        assert_eq!(tokens.tokens.len(), 1, "{tokens:?}");
        let status = who.admin.clone().status(v1::StatusRequest {}).await.unwrap().into_inner();
        assert_eq!((status.queued, status.counters.len()), (0, 0));
    }
    let refused = globex.jobs.clone().list(list("acme")).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    let for_acme = v1::Spec { tenant: "acme".to_owned(), ..spec() };
    assert_eq!(globex.submit(for_acme).await.unwrap_err().code(), Code::PermissionDenied);
}

#[tokio::test]
async fn a_watcher_hears_of_its_own_jobs_alone() {
    let Two { site: _site, acme, globex, job } = two().await;
    let watch = v1::WatchRequest { ids: Vec::new(), filter: None };
    let mut heard = globex.jobs.clone().watch(watch).await.unwrap().into_inner();
    acme.jobs.clone().cancel(v1::CancelRequest { ids: vec![job] }).await.unwrap();
    acme.submit(spec()).await.unwrap();
    let own = globex.submit(spec()).await.unwrap();
    let first = heard.message().await.unwrap().unwrap();
    assert_eq!(first.changes.iter().map(|change| change.id).collect::<Vec<_>>(), [own]);
}
