//! Stores that waiting does not mend: refused at once, by name, without what is secret.

#![expect(clippy::unwrap_used, reason = "a test that fails says where")]

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use crate::shared::database;
use crate::site::Site;

/// What a scheduler that is to use this store says, and that it ends at once.
fn refused(url: &str) -> String {
    let mut maitre = Site::program(env!("CARGO_BIN_EXE_maitre"));
    maitre.args(["serve", "--listen", "127.0.0.1:0", "--store", url]);
    let refused = maitre.output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && !said.contains("trying again"), "{said}");
    said
}

#[test]
fn a_database_or_a_user_that_does_not_exist_is_refused_at_once() {
    let database = database();
    let (base, rest) = database.url().rsplit_once('/').unwrap();
    let (name, question) = rest.split_once('?').map_or((rest, ""), |(name, rest)| (name, rest));
    let (scheme, host) = base.split_once("://").unwrap();
    let host = host.split_once('@').map_or(host, |(_, host)| host);
    for url in [
        format!("{base}/nothing_of_this_name?{question}"),
        format!("{scheme}://nobody_of_this_name:hush@{host}/{name}?{question}"),
    ] {
        let said = refused(&url);
        // A server that asks for passwords does not tell which users it has.
        let is_refused = ["does not exist", "password authentication failed"];
        assert!(is_refused.iter().any(|told| said.contains(told)), "{said}");
        assert!(said.contains("of_this_name"), "{said}");
        assert!(said.contains("will not be used like this") && !said.contains("hush"), "{said}");
    }
}

/// Answers whoever connects as a Postgres does to which the password is wrong.
fn distrustful() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut hello = [0; 1_024];
            let _ = stream.read(&mut hello);
            let fields =
                "SFATAL\0VFATAL\0C28P01\0Mpassword authentication failed for user \"me\"\0\0";
            let length = u32::try_from(fields.len() + 4).unwrap().to_be_bytes();
            let _ = stream.write_all(&[b"E", &length[..], fields.as_bytes()].concat());
        }
    });
    address
}

#[test]
fn a_wrong_password_is_refused_at_once_and_not_shown() {
    let address = distrustful();
    let said = refused(&format!("postgres://me:hush-hush@{address}/jobs?sslmode=disable"));
    let told = "the store will not be used like this: password authentication failed for user";
    assert!(said.contains(told) && said.contains(&format!("`postgres://me@{address}/jobs`")));
    assert!(!said.contains("hush-hush"), "{said}");
}

#[test]
fn a_check_finds_no_store_where_there_is_none_and_makes_none() {
    let (database, site) = (database(), Site::serve());
    for _ in 0..2 {
        let checked = site.maitre(&["store", "check", "--store", database.url()]);
        let said = String::from_utf8_lossy(&checked.stderr).into_owned();
        assert!(!checked.status.success(), "{said}");
        assert!(said.contains("there is no store of Maitre in this database"), "{said}");
    }
}
