//! Charges count under the budgets of one tenant and of all tenants.

use super::super::desk::{Sheet, Stage};
use super::super::fault::Fault;
use super::super::spent::charged;
use super::*;
use crate::Spent;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_budget_for_so_many_jobs_lets_exactly_so_many_start() {
    let (database, time) = (database(), Time::new());
    let spent = Spent { tenant: Some(TenantId::new("a")), since: time.now() };
    let name = "budget a".to_owned();
    let limit = crate::Limit { name, amount: 1_000, max: 17_000, spent: Some(spent) };
    assert_eq!(scramble(&database, &time, &limit, true).await, 17);
}

/// The charges of the last hours, as a claim reads them.
struct Charged(Spent);

impl Stage for Charged {
    type Answer = i64;

    async fn run<'a>(&'a self, sheet: &'a Sheet<'a>) -> Result<i64, Fault> {
        charged(sheet, &self.0).await
    }
}

async fn in_the_last(store: &Postgres, hours: i64, tenant: Option<&str>) -> i64 {
    let since = store.now() - Millis::from_secs(hours * 3_600);
    let asked = Charged(Spent { tenant: tenant.map(TenantId::new), since });
    store.desk.run("ask", &asked).await.unwrap()
}

#[tokio::test]
async fn sum_overflow_exceeds_every_budget() {
    let (database, time) = (database(), Time::new());
    let store = open(&database, &time).await;
    submit(&store, submission("a", "kind", 1)).await;
    let connection = store.desk.connection().await.unwrap();
    let minute = crate::minute::of(store.now());
    let charge = format!(
        "INSERT INTO usage (minute, tenant, part, cost, completed) \
         SELECT {minute}, 'a', part, {}, 0 FROM generate_series(1, 2) AS part; \
         INSERT INTO holdings (name, held) VALUES ('budget', 7)",
        i64::MAX
    );
    connection.batch_execute(&charge).await.unwrap();
    for tenant in [Some("a"), None] {
        assert_eq!(in_the_last(&store, 1, tenant).await, i64::MAX);
        let tenant = tenant.map(TenantId::new);
        let spent = Some(Spent { tenant, since: store.now() });
        let limit = crate::Limit { name: "budget".to_owned(), amount: 1, max: 1_000, spent };
        let claim = Claim { limits: vec![limit], ..claim(&JobId::number(1), "w") };
        let answer = store.claim(vec![claim]).await.unwrap();
        assert!(matches!(&answer[..], [Claimed::Refused(_)]), "{answer:?}");
    }
}

/// Runs `n_jobs` jobs of a tenant, which cost 1 each.
async fn do_jobs(store: &Postgres, tenant: &str, n_jobs: usize) {
    let jobs = store.submit(submission(tenant, "kind", n_jobs)).await.unwrap().unwrap().jobs;
    let claims = jobs.iter().map(|record| claim(&record.id, "w")).collect();
    store.claim(claims).await.unwrap();
    let ends = jobs.iter().map(|record| end(&record.id, "w")).collect();
    store.complete(ends).await.unwrap();
}

#[tokio::test]
async fn charges_of_all_tenants_count_within_the_window() {
    let (database, time) = (database(), Time::new());
    let (one, other) = (open(&database, &time).await, open(&database, &time).await);
    do_jobs(&one, "a", 1).await;
    time.pass(Millis::from_secs(2 * 3_600));
    do_jobs(&other, "b", 2).await;
    for store in [&one, &one, &other] {
        assert_eq!(in_the_last(store, 3, None).await, 3_000);
    }
    assert_eq!(in_the_last(&one, 3, Some("a")).await, 1_000);
    // Known sums of past minutes do not hide new charges.
    do_jobs(&other, "a", 4).await;
    time.pass(Millis::from_secs(1_800));
    do_jobs(&one, "b", 8).await;
    assert_eq!(in_the_last(&one, 3, None).await, 15_000);
    time.pass(Millis::from_secs(3_600));
    for (hours, charged) in [(4, 15_000), (3, 14_000), (2, 14_000), (1, 8_000), (4, 15_000)] {
        for store in [&one, &other] {
            assert_eq!(in_the_last(store, hours, None).await, charged, "{hours} hours");
        }
    }
    // It is not read again: a change of these rows would have no effect.
    let connection = one.desk.connection().await.unwrap();
    connection.batch_execute("DELETE FROM usage").await.unwrap();
    assert_eq!(in_the_last(&one, 4, None).await, 15_000 - 8_000);
}
