//! Seal: jobs that came in clear (by the SQL function, or before there was a key ring) are sealed soon after.

use crate::client::windlass::Windlass;
use crate::store::TextPlace;
use windlass_core::{Millis, Timestamp};

/// Pages at each look. The next look continues.
const PAGES: u32 = 5;
/// After this long, everything is looked at again: a transaction may have committed late.
const AGAIN_AFTER: Millis = Millis::from_secs(3600);

/// How far the walk over jobs has come.
#[derive(Debug, Default)]
pub(super) struct Walk {
    after: Option<TextPlace>,
    began: Option<Timestamp>,
}

impl Walk {
    pub(super) async fn go_on(&mut self, windlass: &Windlass) {
        let Some(store) = windlass.inner().sealed().filter(|store| !store.ring().is_empty()) else { return };
        let now = windlass.clock().now();
        if self.began.is_none_or(|began| now.since(began) > AGAIN_AFTER) {
            *self = Self { after: None, began: Some(now) };
        }
        for _ in 0..PAGES {
            match store.seal_page(self.after.as_ref()).await {
                Ok(Some((place, page))) if place.table == 0 => {
                    self.after = Some(place);
                    if page.changed > 0 {
                        tracing::info!(jobs = page.changed, "jobs that were stored in clear were sealed");
                    }
                }
                // The other tables hold what nodes wrote, which is sealed. New jobs come after the last place.
                Ok(Some(_) | None) => return,
                Err(error) => {
                    tracing::warn!(%error, "jobs that were stored in clear could not be sealed");
                    return;
                }
            }
        }
    }
}
