//! Jobs that recur: each moment once, and what was missed as one chooses.

use model::Millis;
use proto::v1;
use proto::v1::schedules_client::SchedulesClient;

use crate::site::{Site, spec};

const MINUTE: Millis = Millis::from_secs(60);

fn every_minute(name: &str, catch_up: &str) -> v1::Schedule {
    v1::Schedule {
        name: name.to_owned(),
        every_ms: Some(60_000),
        catch_up: catch_up.to_owned(),
        catch_up_max: 3,
        job: Some(v1::Spec { r#type: name.to_owned(), ..spec() }),
        ..v1::Schedule::default()
    }
}

impl Site {
    fn schedules(&self) -> SchedulesClient<tonic::transport::Channel> {
        SchedulesClient::new(self.channel.clone())
    }

    async fn put(&self, schedule: v1::Schedule) -> Result<v1::ScheduleStatus, String> {
        let request = v1::PutScheduleRequest { schedule: Some(schedule) };
        let response = self.schedules().put_schedule(request).await;
        let response = response.map_err(|status| status.message().to_owned())?;
        Ok(response.into_inner().schedule.expect("it is shown"))
    }

    async fn pause(&self, name: &str, paused: bool) {
        let request = v1::PauseScheduleRequest { name: name.to_owned(), paused };
        self.schedules().pause_schedule(request).await.expect("it is paused");
    }

    /// How many jobs of a type there are.
    async fn n_jobs(&self, kind: &str) -> usize {
        let filter = v1::JobFilter { r#type: kind.to_owned(), ..v1::JobFilter::default() };
        let request =
            v1::ListRequest { filter: Some(filter), page_size: 500, ..v1::ListRequest::default() };
        self.jobs.clone().list(request).await.expect("it answers").into_inner().jobs.len()
    }

    async fn until_jobs(&self, kind: &str, n: usize) {
        self.until(&format!("{n} jobs of {kind}"), async || {
            (self.n_jobs(kind).await == n).then_some(())
        })
        .await;
    }

    /// The store knows that everything up to this moment is dealt with.
    async fn until_done(&self, name: &str, n_minutes: i64, from_ms: i64) {
        let done = Some(from_ms + n_minutes * 60_000);
        self.until(&format!("{name} is dealt with"), async || {
            let request = v1::ListSchedulesRequest {};
            let list = self.schedules().list_schedules(request).await.expect("it answers");
            let list = list.into_inner();
            let of = |status: &v1::ScheduleStatus| {
                status.schedule.as_ref().is_some_and(|one| one.name == name)
            };
            (list.schedules.into_iter().find(of)?.last_ms == done).then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn a_job_is_submitted_at_each_moment_and_not_before() {
    let site = Site::start().await;
    let from = site.time.now().0;
    let status = site.put(every_minute("tick", "")).await.unwrap();
    assert_eq!(status.next_ms, Some(from + 60_000));
    site.pass(Millis(59_999)).await;
    assert_eq!(site.n_jobs("tick").await, 0);
    site.pass(Millis(1)).await;
    site.until_jobs("tick", 1).await;
    for minute in 2..5 {
        site.pass(MINUTE).await;
        site.until_done("tick", minute, from).await;
    }
    site.turn().await;
    assert_eq!(site.n_jobs("tick").await, 4);
    let job = site.record(1).await;
    assert_eq!(job.spec.labels["schedule"], "tick");
    assert_eq!(job.spec.dedupe_key, Some(format!("schedules/tick@{}", from + 60_000)));
}

#[tokio::test]
async fn what_was_missed_is_caught_up_with_as_one_chooses() {
    let mut site = Site::start().await;
    let from = site.time.now().0;
    for catch_up in ["none", "one", "all"] {
        site.put(every_minute(catch_up, catch_up)).await.unwrap();
    }
    site.turn().await;
    site.stop().await;
    // Nobody is there for five minutes and a half.
    site.time.pass(Millis(330_000 + 45_000));
    site.go().await;
    for name in ["none", "one", "all"] {
        site.until_done(name, 6, from).await;
    }
    let mut counts = Vec::new();
    for name in ["none", "one", "all"] {
        counts.push(site.n_jobs(name).await);
    }
    // The last of six moments was 15 seconds ago, which is not too late.
    assert_eq!(counts, [1, 1, 3]);
}

#[tokio::test]
async fn two_schedulers_submit_the_job_of_a_moment_once() {
    let mut site = Site::start().await;
    let from = site.time.now().0;
    site.put(every_minute("tick", "all")).await.unwrap();
    site.turn().await;
    let other = site.another().await;
    for minute in 1..4 {
        site.pass(MINUTE).await;
        other.turn().await;
        site.until_done("tick", minute, from).await;
    }
    assert_eq!(site.n_jobs("tick").await, 3);
    // The one that submits goes, and the other takes over.
    site.stop().await;
    for minute in 4..7 {
        other.pass(MINUTE).await;
        other.until_done("tick", minute, from).await;
    }
    assert_eq!(other.n_jobs("tick").await, 6);
}

#[tokio::test]
async fn one_that_rests_catches_up_with_nothing() {
    let site = Site::start().await;
    let from = site.time.now().0;
    site.put(every_minute("tick", "all")).await.unwrap();
    site.pass(MINUTE).await;
    site.until_done("tick", 1, from).await;
    site.pause("tick", true).await;
    for _ in 0..5 {
        site.pass(MINUTE).await;
    }
    site.pause("tick", false).await;
    site.turn().await;
    assert_eq!(site.n_jobs("tick").await, 1);
    site.pass(MINUTE).await;
    site.until_done("tick", 7, from).await;
    assert_eq!(site.n_jobs("tick").await, 2);
    let request = v1::RemoveScheduleRequest { name: "tick".to_owned() };
    let removed = site.schedules().remove_schedule(request).await.unwrap().into_inner();
    assert!(removed.was_there);
    site.pass(MINUTE).await;
    site.pass(MINUTE).await;
    assert_eq!(site.n_jobs("tick").await, 2);
}

#[tokio::test]
async fn what_may_not_be_is_refused_by_its_field() {
    let site = Site::start().await;
    let bad = |schedule: v1::Schedule| site.put(schedule);
    let wrong = bad(v1::Schedule { name: String::new(), ..every_minute("x", "") }).await;
    assert_eq!(wrong.unwrap_err(), "`schedule.name` is missing");
    let wrong = bad(every_minute("x", "some")).await.unwrap_err();
    assert!(wrong.starts_with("`schedule.catch_up` is `some`"), "{wrong}");
    let job = Some(v1::Spec { priority: 9_999, ..spec() });
    let wrong = bad(v1::Schedule { job, ..every_minute("x", "") }).await.unwrap_err();
    assert!(wrong.starts_with("`schedule.jobs[0].priority` is 9999"), "{wrong}");
}
