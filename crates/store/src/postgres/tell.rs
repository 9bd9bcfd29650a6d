//! Notifies the peers of changes, on a connection of its own. It never notifies within the
//! transaction of the change, and merges frequent changes.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;
use std::future::{Future, poll_fn};
use std::sync::{Arc, Weak};
use std::time::Duration;

use model::JobId;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_postgres::AsyncMessage;

use super::connect;
use super::desk::Desk;
use super::fault::{Doubt, Fault};
use crate::{News, number};

/// Changes within this time share a notification.
const TOGETHER: Duration = Duration::from_millis(10);
/// Delay before a reconnection, and before a lost notification is sent again.
const AGAIN: Duration = Duration::from_millis(500);
/// After this time without a notification, the listener sends a query. Without an answer within the
/// same time, the connection is dead.
const QUIET_MAX: Duration = Duration::from_secs(15);
/// Changes that may wait to be sent. Peers find dropped ones with a scan.
const WAITING_MAX: usize = 1_024;
/// Postgres allows less than 8,000 bytes.
const BYTES_MAX: usize = 7_900;
const CHANNEL: &str = "maitre";

/// A notification to the peers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Told {
    /// Queues with arrivals, and their places.
    pub(super) work: Vec<(i64, i64)>,
    /// Jobs that were cancelled while a worker runs them.
    pub(super) called_off: Vec<i64>,
    /// Settings were changed.
    pub(super) settings: bool,
    /// A scheduler changed its report.
    pub(super) peers: bool,
    /// Changed jobs: the scheduler that reports the change, and the job.
    pub(super) changed: Vec<(i64, i64)>,
    /// Schedulers whose notifications about changed jobs were lost.
    pub(super) missed: Vec<i64>,
}

impl Told {
    pub(super) const fn is_empty(&self) -> bool {
        self.work.is_empty()
            && self.called_off.is_empty()
            && self.changed.is_empty()
            && self.missed.is_empty()
            && !self.settings
            && !self.peers
    }

    pub(super) fn add(&mut self, other: Self) {
        self.work.extend(other.work);
        self.called_off.extend(other.called_off);
        self.settings |= other.settings;
        self.peers |= other.peers;
        self.changed.extend(other.changed);
        self.missed.extend(other.missed);
    }

    /// The part of a lost notification that must be sent again. Watchers of jobs do not query for
    /// changes, so they must learn that some were missed. Settings are rarely queried. Scans find
    /// the rest.
    pub(super) fn lost(&self) -> Self {
        let of_changed = self.changed.iter().map(|(scheduler, _)| *scheduler);
        let missed: BTreeSet<i64> = of_changed.chain(self.missed.iter().copied()).collect();
        let missed = missed.into_iter().collect();
        Self { missed, settings: self.settings, ..Self::default() }
    }

    /// Each queue once, with its first place, in texts within the size limit of Postgres.
    fn texts(self) -> Vec<String> {
        let mut first: HashMap<i64, i64> = HashMap::new();
        for (queue, place) in self.work {
            let lowest = first.entry(queue).or_insert(place);
            *lowest = (*lowest).min(place);
        }
        let mut texts = vec![String::new()];
        let mut say = |word: String| {
            if texts.last().is_some_and(|text| text.len() + word.len() > BYTES_MAX) {
                texts.push(String::new());
            }
            if let Some(text) = texts.last_mut() {
                let _ = write!(text, "{word} ");
            }
        };
        for (queue, place) in first {
            say(format!("w{queue}:{place}"));
        }
        for job in self.called_off {
            say(format!("c{job}"));
        }
        if self.settings {
            say("s".to_owned());
        }
        if self.peers {
            say("p".to_owned());
        }
        for (scheduler, job) in self.changed.into_iter().collect::<BTreeSet<_>>() {
            say(format!("j{scheduler}:{job}"));
        }
        for scheduler in self.missed.into_iter().collect::<BTreeSet<_>>() {
            say(format!("m{scheduler}"));
        }
        texts
    }

    /// Reads a text. Unknown words are ignored.
    fn read(text: &str) -> Self {
        let mut told = Self::default();
        for word in text.split_whitespace() {
            // Every role that can connect to the database can send any text.
            let Some((kind, rest)) = word.split_at_checked(1) else { continue };
            match kind {
                "w" => told.work.extend(pair(rest)),
                "j" => told.changed.extend(pair(rest)),
                "m" => told.missed.extend(rest.parse::<i64>().ok()),
                "c" => told.called_off.extend(rest.parse::<i64>().ok()),
                "s" => told.settings = true,
                "p" => told.peers = true,
                _ => {}
            }
        }
        told
    }
}

fn pair(text: &str) -> Option<(i64, i64)> {
    let (one, two) = text.split_once(':')?;
    Some((one.parse().ok()?, two.parse().ok()?))
}

/// The channel of notifications to send.
pub(super) fn channel() -> (mpsc::Sender<Told>, mpsc::Receiver<Told>) {
    mpsc::channel(WAITING_MAX)
}

/// Sends notifications until the store is dropped.
pub(super) async fn run(desk: Weak<Desk>, mut waiting: mpsc::Receiver<Told>) {
    let mut lost = Told::default();
    while let Some(mut told) = next(&mut waiting, &lost).await {
        tokio::time::sleep(TOGETHER).await;
        while let Ok(more) = waiting.try_recv() {
            told.add(more);
        }
        let Some(desk) = desk.upgrade() else { return };
        told.add(desk.take_lost());
        told.add(std::mem::take(&mut lost));
        let if_lost = told.lost();
        if say(&desk, told).await.is_err() {
            lost = if_lost;
        }
    }
}

/// The next notification: a new one, or after a delay the lost part of an earlier one.
async fn next(waiting: &mut mpsc::Receiver<Told>, lost: &Told) -> Option<Told> {
    if lost.is_empty() {
        return waiting.recv().await;
    }
    tokio::time::timeout(AGAIN, waiting.recv()).await.unwrap_or_else(|_| Some(Told::default()))
}

async fn say(desk: &Desk, told: Told) -> Result<(), Fault> {
    let connection = desk.connection().await?;
    for text in told.texts() {
        connection.execute("SELECT pg_notify($1, $2)", &[&CHANNEL, &text]).await?;
    }
    Ok(())
}

/// The notifications of peers, from now on.
pub(super) fn listen(url: &str, desk: &Arc<Desk>, own: i64) -> mpsc::Receiver<News> {
    let (sender, receiver) = mpsc::channel(WAITING_MAX);
    let heard = hear_all(url.to_owned(), Arc::downgrade(desk), Ear::new(own, sender));
    desk.tasks.spawn("notifications heard", heard);
    receiver
}

/// The receiving end. It ignores the scheduler's own notifications.
struct Ear {
    own: i64,
    sender: mpsc::Sender<News>,
    /// Whether it has listened before.
    has_listened: bool,
}

impl Ear {
    const fn new(own: i64, sender: mpsc::Sender<News>) -> Self {
        Self { own, sender, has_listened: false }
    }

    /// Listening begins. Notifications that were sent during an interruption are lost.
    async fn begin(&mut self) -> bool {
        let has_missed = std::mem::replace(&mut self.has_listened, true);
        self.sender.send(News::Listening).await.is_ok()
            && (!has_missed || self.sender.send(News::Missed).await.is_ok())
    }
}

/// Listens on a connection of its own, and reconnects when that is lost.
async fn hear_all(url: String, desk: Weak<Desk>, mut ear: Ear) {
    while !ear.sender.is_closed() && desk.strong_count() > 0 {
        let pause = match hear(&url, &desk, &mut ear).await {
            // A connection that worked is replaced at once.
            Ok(()) => TOGETHER,
            Err(fault) => {
                let error = fault.tell("listen", Doubt::None);
                tracing::warn!(%error, "news of other schedulers is not heard for now");
                AGAIN
            }
        };
        tokio::time::sleep(pause).await;
    }
}

async fn hear(url: &str, desk: &Weak<Desk>, ear: &mut Ear) -> Result<(), Fault> {
    let Ok((config, seal)) = connect::config(url) else { return Ok(()) };
    let (client, mut connection) = in_time(config.connect(seal)).await?;
    let (heard, mut messages) = mpsc::channel(WAITING_MAX);
    // The task ends with the receiver.
    let mut pump = JoinSet::new();
    pump.spawn(async move {
        while let Some(Ok(message)) = poll_fn(|cx| connection.poll_message(cx)).await {
            if let AsyncMessage::Notification(said) = message
                && heard.send(said.payload().to_owned()).await.is_err()
            {
                return;
            }
        }
    });
    in_time(client.batch_execute(&format!("LISTEN {CHANNEL}"))).await?;
    let mut is_heard = ear.begin().await;
    while is_heard {
        match tokio::time::timeout(QUIET_MAX, messages.recv()).await {
            Ok(Some(text)) => {
                let Some(desk) = desk.upgrade() else { break };
                is_heard = pass_on(&desk, Told::read(&text), ear).await;
            }
            Ok(None) => break,
            // No peer sent anything, or the connection is dead.
            Err(_) => in_time(client.batch_execute("SELECT")).await?,
        }
    }
    Ok(())
}

/// Runs a query with a timeout.
async fn in_time<T>(
    asking: impl Future<Output = Result<T, tokio_postgres::Error>>,
) -> Result<T, Fault> {
    let answer = tokio::time::timeout(QUIET_MAX, asking).await;
    Ok(answer.map_err(|_| Fault::Silence)??)
}

/// Passes on a notification. `false`: the receiver is gone.
async fn pass_on(desk: &Desk, told: Told, ear: &Ear) -> bool {
    let mut news = Vec::new();
    if desk.marks.lower(&told) {
        news.push(News::Work);
    }
    news.extend(told.called_off.iter().map(|job| News::CalledOff(number::id(*job))));
    if told.settings {
        news.push(News::Settings);
    }
    if told.peers {
        news.push(News::Peers);
    }
    let of_others = told.changed.iter().filter(|(scheduler, _)| *scheduler != ear.own);
    let changed: Vec<JobId> = of_others.map(|(_, job)| number::id(*job)).collect();
    if !changed.is_empty() {
        news.push(News::Changed(changed));
    }
    if told.missed.iter().any(|scheduler| *scheduler != ear.own) {
        news.push(News::Missed);
    }
    for one in news {
        if ear.sender.send(one).await.is_err() {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notification_has_each_queue_with_its_first_place() {
        let work = vec![(-5, 9), (7, 3), (-5, -2)];
        let changed = vec![(4, 12), (4, 13)];
        let (called_off, missed) = (vec![12], vec![4, 5]);
        let told = Told { work, called_off, settings: true, peers: true, changed, missed };
        let mut heard = Told::read(&told.clone().texts().concat());
        heard.work.sort_unstable();
        let expected = Told { work: vec![(-5, -2), (7, 3)], ..told };
        assert_eq!(heard, expected);
    }

    #[test]
    fn watchers_learn_that_notifications_were_lost() {
        let changed = vec![(4, 12), (5, 13), (4, 14)];
        let told = Told { work: vec![(1, 1)], changed, missed: vec![6], ..Told::default() };
        assert_eq!(told.lost(), Told { missed: vec![4, 5, 6], ..Told::default() });
        let told = Told { work: vec![(1, 1)], peers: true, ..Told::default() };
        assert!(told.lost().is_empty());
        let told = Told { settings: true, ..told };
        assert_eq!(told.lost(), Told { settings: true, ..Told::default() });
    }

    #[test]
    fn large_notification_is_split_into_texts() {
        let told =
            Told { work: (0..2_000).map(|n| (i64::MAX - n, n)).collect(), ..Told::default() };
        let texts = told.texts();
        assert!(texts.len() > 1 && texts.iter().all(|text| text.len() < 8_000));
        assert_eq!(texts.iter().map(|text| Told::read(text).work.len()).sum::<usize>(), 2_000);
        assert_eq!(
            Told::read("x1 w w1 c s2 j j7 \u{e9} \u{1f37d}1"),
            Told { settings: true, ..Told::default() }
        );
    }
}
