//! A lead has one holder at a time, and notes are kept up to a number for each kind.

use model::Millis;

use super::site::Site;
use crate::{Lead, Note, NotePage, Noted, Old};

const LENGTH: Millis = Millis(1_000);

async fn lead(site: &Site, name: &str, holder: &str) -> Option<Lead> {
    let lead = site.store.lead(name.to_owned(), holder.to_owned(), LENGTH).await;
    lead.expect("the store answers")
}

async fn keep(site: &Site, lead: &Lead, document: &str) -> bool {
    let kept = site.store.keep(lead.name.clone(), lead.token, document.to_owned()).await;
    kept.expect("the store answers")
}

pub(super) async fn one_holder_leads_until_its_time_is_over(site: Site) {
    let first = lead(&site, "lane", "a").await.expect("it is free");
    assert_eq!((first.holder.as_str(), first.until), ("a", site.now() + LENGTH));
    assert_eq!(first.document, "");
    assert_eq!(lead(&site, "lane", "b").await, None);
    assert!(lead(&site, "other", "b").await.is_some(), "each name is led by itself");
    site.time.pass(Millis(999));
    assert_eq!(lead(&site, "lane", "b").await, None);
    let prolonged = lead(&site, "lane", "a").await.expect("it is its own");
    assert_eq!((prolonged.token, prolonged.until), (first.token, site.now() + LENGTH));
    site.time.pass(LENGTH);
    let second = lead(&site, "lane", "b").await.expect("the first let it run out");
    assert_eq!(second.token, first.token + 1);
    assert_eq!(lead(&site, "lane", "a").await, None);
    // A holder that stops releases its lead.
    let gone = site.store.lead("lane".to_owned(), "b".to_owned(), Millis(0)).await;
    assert!(gone.expect("the store answers").is_some());
    let third = lead(&site, "lane", "a").await.expect("it was let go");
    assert_eq!(third.token, second.token + 1);
}

pub(super) async fn next_holder_gets_the_document_and_old_holders_change_nothing(site: Site) {
    let first = lead(&site, "lane/1", "a").await.expect("it is free");
    assert!(keep(&site, &first, "one").await);
    site.time.pass(LENGTH);
    // The first holder keeps the lead until a second one takes it.
    assert!(keep(&site, &first, "two").await);
    let second = lead(&site, "lane/1", "b").await.expect("it ran out");
    assert_eq!(second.document, "two");
    assert!(!keep(&site, &first, "three").await);
    assert!(keep(&site, &second, "four").await);
    lead(&site, "lane/2", "a").await.expect("it is free");
    lead(&site, "lame", "a").await.expect("it is free");
    let leads = site.store.leads("lane/".to_owned()).await.expect("the store answers");
    let shown: Vec<(&str, &str, &str)> =
        leads.iter().map(|one| (&*one.name, &*one.holder, &*one.document)).collect();
    assert_eq!(shown, [("lane/1", "b", "four"), ("lane/2", "a", "")]);
    let stranger = Lead { name: "nobody's".to_owned(), ..second };
    assert!(!keep(&site, &stranger, "five").await);
}

fn note(topic: &str, kind: &str, key: &str, document: &str) -> Note {
    Note {
        topic: topic.to_owned(),
        kind: kind.to_owned(),
        key: key.to_owned(),
        document: document.to_owned(),
        n_max: 2,
        ages: key.is_empty(),
    }
}

async fn notes(site: &Site, page: NotePage) -> Vec<Noted> {
    site.store.notes(page).await.expect("the store answers")
}

fn page(topic: &str) -> NotePage {
    NotePage { topic: topic.to_owned(), kind: None, before: None, max: 99 }
}

fn documents(notes: &[Noted]) -> Vec<&str> {
    notes.iter().map(|noted| noted.document.as_str()).collect()
}

pub(super) async fn many_notes_of_one_kind_displace_no_other_kind(site: Site) {
    let flood = (0..9).map(|n| note("t", "many", "", &format!("many {n}")));
    let all: Vec<Note> = std::iter::once(note("t", "few", "", "few"))
        .chain(flood)
        .chain([note("u", "many", "", "of another topic")])
        .collect();
    site.store.note(all).await.expect("it is written");
    let kept = notes(&site, page("t")).await;
    assert_eq!(documents(&kept), ["many 8", "many 7", "few"]);
    assert_eq!(kept[0].at, site.now());
    let many = NotePage { kind: Some("many".to_owned()), max: 1, ..page("t") };
    let first = notes(&site, many.clone()).await;
    assert_eq!(documents(&first), ["many 8"]);
    let second = notes(&site, NotePage { before: Some(first[0].number), ..many }).await;
    assert_eq!(documents(&second), ["many 7"]);
}

pub(super) async fn a_note_of_a_key_is_written_once_and_only_some_age(site: Site) {
    let twice = vec![note("t", "k", "run 1", "first"), note("t", "k", "run 1", "again")];
    site.store.note(twice).await.expect("it is written");
    site.store.note(vec![note("t", "other", "run 1", "again")]).await.expect("it is written");
    site.store.note(vec![note("t", "old", "", "old")]).await.expect("it is written");
    site.time.pass(Millis(1));
    site.store.note(vec![note("t", "old", "", "new")]).await.expect("it is written");
    assert_eq!(documents(&notes(&site, page("t")).await), ["new", "old", "first"]);
    site.store.forget(Old::from_before(site.now(), 9)).await.expect("it forgets");
    assert_eq!(documents(&notes(&site, page("t")).await), ["new", "first"]);
}
