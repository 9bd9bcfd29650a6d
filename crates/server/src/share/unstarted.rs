//! Claims of which nothing came: whoever made them is dead, or lost sight of the worker before it
//! was told, and the worker is well elsewhere. No lease runs out for those.

use futures_util::FutureExt as _;
use model::{Record, Timestamp};

use crate::scheduler::{Answer, Scheduler};

/// Such claims that are given up in one go.
const GIVEN_UP_MAX: usize = 1_000;

impl Scheduler {
    /// Looks for attempts that nobody took up for so long that they are given up, about as often.
    pub(crate) fn look_for_unstarted(&mut self, now: Timestamp) {
        let within = self.config.accept_within();
        let Some(sharing) = &mut self.sharing else { return };
        if now < sharing.unstarted_by {
            return;
        }
        sharing.unstarted_by = now + within;
        self.call(|store| {
            async move {
                let unstarted = match store.shared() {
                    Some(shared) => shared.unstarted(now - within, GIVEN_UP_MAX).await,
                    None => Ok(Vec::new()),
                };
                Answer::Unstarted(unstarted)
            }
            .boxed()
        });
    }

    /// Whose job it is gives it up, and only if the store does not hear until then that it runs.
    pub(crate) fn give_up_unstarted(&mut self, answer: Result<Vec<Record>, store::Error>) {
        for record in self.ok(answer).into_iter().flatten() {
            if !self.is_others(&record.id) {
                self.take_over(std::slice::from_ref(&record));
                self.unaccepted(&record.id, self.store.now());
            }
        }
    }
}
