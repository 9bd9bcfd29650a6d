//! What somebody watches at one scheduler, another may do. Schedulers tell each other which jobs
//! there is something new about, while somebody watches; whoever watches reads them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use model::{JobId, Progress, Record};
use store::Store;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc;

use crate::watch::{Change, Hub};

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
            let heard = tokio::select! {
                heard = own.recv() => heard,
                _ = is_wanted.changed() => continue,
            };
            let mut jobs: BTreeSet<JobId> = BTreeSet::new();
            match heard {
                Ok(changes) => jobs.extend(changes.iter().map(|change| change.job.clone())),
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return,
            }
            tokio::time::sleep(TOGETHER).await;
            while let Ok(changes) = own.try_recv() {
                jobs.extend(changes.iter().map(|change| change.job.clone()));
            }
            if let Some(shared) = store.shared() {
                shared.say_changed(jobs.into_iter().collect());
            }
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
            // What cannot be read is not told: the next change of it is.
            let Ok(records) = shared.these(jobs.to_vec()).await else { continue };
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
