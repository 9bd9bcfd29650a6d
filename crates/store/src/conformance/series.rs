//! Minutes: counts of schedulers, for charts.

use model::{Millis, Timestamp};

use super::site::Site;
use crate::Old;

const MINUTE: Millis = Millis::from_secs(60);

async fn keep(site: &Site, document: &str) {
    let kept = site.store.keep_minute(site.now(), document.to_owned()).await;
    kept.expect("the store answers");
}

/// When the minutes of a span begin, with their documents.
async fn minutes(site: &Site, from: Timestamp, before: Timestamp) -> Vec<(Timestamp, String)> {
    let minutes = site.store.minutes(from, before).await.expect("the store answers");
    minutes.into_iter().map(|minute| (minute.at, minute.document)).collect()
}

/// When the minute of a moment begins.
fn begin(moment: Timestamp) -> Timestamp {
    Timestamp(moment.0.div_euclid(MINUTE.0) * MINUTE.0)
}

pub(super) async fn a_minute_is_stored_once_and_its_last_document_counts(site: Site) {
    let first = site.now();
    keep(&site, "one").await;
    keep(&site, "one, again").await;
    site.time.pass(MINUTE);
    site.time.pass(MINUTE);
    keep(&site, "three \u{e9}").await;
    let last = site.now();
    let one = (begin(first), "one, again".to_owned());
    let three = (begin(last), "three \u{e9}".to_owned());
    // A minute that no scheduler stored is absent.
    assert_eq!(minutes(&site, first, last + MINUTE).await, [one.clone(), three.clone()]);
    assert_eq!(minutes(&site, first, last).await, [one]);
    assert_eq!(minutes(&site, first + MINUTE, last + MINUTE).await, [three]);
    assert_eq!(minutes(&site, last + MINUTE, last).await, []);
}

pub(super) async fn old_minutes_are_deleted(site: Site) {
    let first = site.now();
    for document in ["one", "two", "three"] {
        keep(&site, document).await;
        site.time.pass(MINUTE);
    }
    let kept = || minutes(&site, first, site.now());
    // Minutes have a retention of their own.
    let none = Old { counted_before: first, ..Old::from_before(site.now(), 9) };
    site.store.forget(none).await.expect("it forgets");
    assert_eq!(kept().await.len(), 3);
    let old = Old { counted_before: first + MINUTE, ..Old::from_before(first, 9) };
    site.store.forget(old).await.expect("it forgets");
    let left: Vec<String> = kept().await.into_iter().map(|(_, document)| document).collect();
    assert_eq!(left, ["two", "three"]);
}
