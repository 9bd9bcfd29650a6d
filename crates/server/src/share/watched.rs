//! What somebody watches at one scheduler, another may do. Schedulers tell each other which jobs
//! there is something new about, while somebody watches; whoever watches reads them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use model::{JobId, Progress, Record};
use store::Store;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::mpsc;

use crate::watch::{Change, Hub, Tidings};

/// What comes within this is told together.
const TOGETHER: Duration = Duration::from_millis(50);
/// Jobs that are read at once: with all that they carry, a few at a time.
const READ_MAX: usize = 100;
/// Jobs of others of which is known what was told last.
const TOLD_MAX: usize = 10_000;

/// Tells others which jobs change here, for as long as somebody watches there.
pub(crate) async fn tell_others(hub: Hub, store: Arc<dyn Store>) {
    let mut is_wanted = hub.do_others_watch();
    while is_wanted.wait_for(|is_wanted| *is_wanted).await.is_ok() {
        let mut own = hub.listen();
        while *is_wanted.borrow() {
            let news = tokio::select! {
                news = News::hear(&mut own) => news,
                _ = is_wanted.changed() => continue,
            };
            let (Some(news), Some(shared)) = (news, store.shared()) else { return };
            shared.say_changed(news.jobs.into_iter().collect());
            if news.is_missed {
                shared.say_missed();
            }
        }
    }
}

/// What changed here for a while.
#[derive(Debug, Default, PartialEq, Eq)]
struct News {
    jobs: BTreeSet<JobId>,
    /// So did others, and which is not known: too much happened.
    is_missed: bool,
}

impl News {
    /// Waits for something new, and for what comes with it. `None`: there will be no more.
    async fn hear(own: &mut Receiver<Tidings>) -> Option<Self> {
        let mut news = Self::default();
        match own.recv().await {
            Ok(tidings) => news.add(&tidings),
            Err(RecvError::Lagged(_)) => news.is_missed = true,
            Err(RecvError::Closed) => return None,
        }
        tokio::time::sleep(TOGETHER).await;
        loop {
            match own.try_recv() {
                Ok(tidings) => news.add(&tidings),
                Err(TryRecvError::Lagged(_)) => news.is_missed = true,
                Err(TryRecvError::Empty | TryRecvError::Closed) => return Some(news),
            }
        }
    }

    fn add(&mut self, tidings: &Tidings) {
        match tidings {
            Tidings::Changes(changes) => {
                self.jobs.extend(changes.iter().map(|change| change.job.clone()));
            }
            Tidings::Missed => self.is_missed = true,
        }
    }
}

/// Reads what others changed, and tells it to those who watch here.
pub(crate) async fn hear_others(
    mut changed: mpsc::Receiver<Vec<JobId>>,
    hub: Hub,
    store: Arc<dyn Store>,
) {
    let mut told: BTreeMap<JobId, (u64, Option<Progress>)> = BTreeMap::new();
    while let Some(jobs) = changed.recv().await {
        if !hub.is_watched() {
            told.clear();
            continue;
        }
        for jobs in jobs.chunks(READ_MAX) {
            let Some(shared) = store.shared() else { return };
            let Ok(records) = shared.these(jobs.to_vec()).await else {
                hub.miss();
                continue;
            };
            // What is not there any more succeeded, and nobody can say more of it.
            if records.len() < jobs.iter().collect::<BTreeSet<_>>().len() {
                hub.miss();
            }
            // A job that changed twice may be read twice as it is now.
            let is_new = |record: &&Record| {
                let progress = record.current.as_ref().and_then(|it| it.progress.clone());
                let now = (record.fence, progress);
                told.insert(record.id.clone(), now.clone()) != Some(now)
            };
            let changes = records.iter().filter(is_new);
            hub.pass_on(changes.map(|record| Change::of(record, store.now())).collect());
            while told.len() > TOLD_MAX {
                told.pop_first();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use model::{Name, State, TenantId, Timestamp};

    use super::*;

    fn change(job: u64) -> Change {
        Change {
            job: JobId::number(job),
            tenant: TenantId::new("t"),
            kind: Name::new("k"),
            state: State::Queued,
            at: Timestamp(0),
            worker: None,
            progress: None,
        }
    }

    #[tokio::test]
    async fn what_is_too_much_to_be_told_is_told_as_missed() {
        let hub = Hub::new();
        let mut own = hub.listen();
        hub.tell(vec![change(1), change(2)]);
        let few = News::hear(&mut own).await.expect("there is something");
        let jobs = [1, 2].map(JobId::number).into();
        assert_eq!(few, News { jobs, is_missed: false });
        for job in 0..10_000 {
            hub.tell(vec![change(job)]);
        }
        let many = News::hear(&mut own).await.expect("there is something");
        assert!(many.is_missed && many.jobs.contains(&JobId::number(9_999)), "{many:?}");
        assert!(!many.jobs.contains(&JobId::number(1)));
    }
}
