//! A server stops if one of its tasks ends before shutdown.

use std::sync::Arc;
use std::time::Duration;

use model::Millis;
use server::Config;
use store::{Memory, Options};
use tokio::net::TcpStream;

use crate::store::Faulty;

/// More than enough, of a time that is paused.
const HOURS: Duration = Duration::from_hours(3);

#[tokio::test(start_paused = true)]
async fn a_token_refresher_that_panics_stops_the_server() {
    let store = Arc::new(Faulty::new(Memory::new(Options::default())));
    let listen = ([127, 0, 0, 1], 0).into();
    let config = Config { listen, start_pause: Millis::ZERO, ..Config::default() };
    let server = server::start(config, Arc::<Faulty>::clone(&store)).await.expect("it starts");
    let address = server.address;
    store.panic_in("settings");
    let ended = tokio::time::timeout(HOURS, server.run(std::future::pending())).await;
    let error = ended.expect("the server stops").expect_err("it was not told to stop");
    assert_eq!(
        error.to_string(),
        "could not keep running: the task `tokens` panicked: a test lets `settings` panic"
    );
    assert!(TcpStream::connect(address).await.is_err(), "nothing listens any more");
}
