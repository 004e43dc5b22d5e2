//! Seal: jobs that came in clear (by the SQL function, or before there was a key ring) are sealed soon after.

use crate::client::windlass::Windlass;
use crate::sealing::SealedStore;
use crate::store::{StoreError, TextPlace};
use windlass_core::{Millis, Timestamp};

/// Pages of new jobs at each look, and pages of all jobs.
const NEW_PAGES: u32 = 100;
const OLD_PAGES: u32 = 10;
/// How long each of them may take at one look. The next look continues.
const LOOK_FOR: Millis = Millis::from_secs(1);
/// So many jobs before the newest one are looked at first: they may have come while no node was running.
const RECENT: i64 = 10_000;
/// After this long, and not before the end was reached, all jobs are looked at again: a transaction may have committed
/// late.
const AGAIN_AFTER: Millis = Millis::from_secs(3600);

/// How far the walks over jobs have come. New jobs have one of their own, so that they need not wait until a large
/// store has been walked through.
#[derive(Debug, Default)]
pub(super) struct Walk {
    /// The last job that the walk over new jobs has seen.
    newest: Option<TextPlace>,
    all: All,
}

/// The walk over all jobs.
#[derive(Debug, Default)]
struct All {
    after: Option<TextPlace>,
    began: Option<Timestamp>,
    is_over: bool,
}

/// Whether a walk has come to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reached {
    End,
    NotYet,
}

impl Walk {
    pub(super) async fn go_on(&mut self, windlass: &Windlass) {
        let Some(store) = windlass.inner().sealed().filter(|store| !store.ring().is_empty()) else { return };
        if let Err(error) = self.look(windlass, store).await {
            tracing::warn!(%error, "jobs that were stored in clear could not be sealed");
        }
    }

    async fn look(&mut self, windlass: &Windlass, store: &SealedStore) -> Result<(), StoreError> {
        // A node that does not know of the key yet could not open what is sealed now.
        if !store.is_known_everywhere().await? {
            return Ok(());
        }
        if self.newest.is_none() {
            let before = store.newest_job().await?.map_or(0, |id| id.0 - RECENT);
            self.newest = Some(TextPlace { table: 0, key: (before.max(0), 0), name: Vec::new() });
        }
        walk(windlass, store, &mut self.newest, NEW_PAGES).await?;
        let now = windlass.clock().now();
        if self.all.began.is_none_or(|began| self.all.is_over && now.since(began) > AGAIN_AFTER) {
            self.all = All { after: None, began: Some(now), is_over: false };
        }
        if !self.all.is_over {
            self.all.is_over = walk(windlass, store, &mut self.all.after, OLD_PAGES).await? == Reached::End;
        }
        Ok(())
    }
}

/// Seals pages of jobs after a place, and moves the place.
async fn walk(
    windlass: &Windlass,
    store: &SealedStore,
    after: &mut Option<TextPlace>,
    pages: u32,
) -> Result<Reached, StoreError> {
    let clock = windlass.clock();
    let until = clock.monotonic() + LOOK_FOR;
    for _ in 0..pages {
        // The other tables hold what nodes wrote, which is sealed. New jobs come after the last place.
        let Some(page) = store.seal_page(after.as_ref()).await?.filter(|page| page.last.table == 0) else {
            return Ok(Reached::End);
        };
        *after = Some(page.last);
        if page.progress.changed > 0 {
            tracing::info!(jobs = page.progress.changed, "jobs that were stored in clear were sealed");
        }
        if clock.monotonic() >= until {
            break;
        }
    }
    Ok(Reached::NotYet)
}
