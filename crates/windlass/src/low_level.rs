//! What the project's own server, benchmark and tests use of the inside: drafts, the store by itself, the lease engine.
//! No program needs it, and nothing here is promised to stay as it is.

use crate::Windlass;
use crate::store::Store;
use std::sync::Arc;

/// The store that a client works on.
#[must_use]
pub fn store(windlass: &Windlass) -> Arc<dyn Store> {
    windlass.store().clone()
}

/// A store whose values are sealed with these keys.
#[cfg(feature = "sealing")]
#[must_use]
pub fn sealed(store: Arc<dyn Store>, ring: crate::KeyRing, random: crate::Random) -> Arc<dyn Store> {
    crate::sealing::SealedStore::new(store, ring, random)
}

macro_rules! inside {
    ($($(#[$attribute:meta])* $name:ident = $path:path),+ $(,)?) => {
        $(
            $(#[$attribute])*
            #[allow(missing_docs, unused_imports)]
            pub mod $name {
                pub use $path::*;
            }
        )+
    };
}

inside! {
    attempt = crate::attempt,
    catalogue = crate::client::policies::catalogue,
    clock = crate::clock,
    draft = crate::client::enqueue::draft,
    event = crate::event,
    executor = crate::executor,
    fingerprint = crate::fingerprint,
    job = crate::job,
    leases = crate::leases,
    #[cfg(feature = "metrics")]
    metrics = crate::metrics,
    random = crate::random,
    stores = crate::store,
    tally = crate::tally,
    upkeep = crate::upkeep,
    wake = crate::wake,
    webhook = crate::webhook,
    worker = crate::worker,
}
