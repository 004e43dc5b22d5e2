//! The store by itself: for the benchmark, which measures it without a client or worker, and for the project's own tests. No
//! program needs it, and nothing here is promised to stay as it is.

pub use crate::store::memory::MemoryStore;
pub use crate::store::{Claim, Commit, JobLife, Leases, Reads, Registry, Share, Store};

use crate::Windlass;
use std::sync::Arc;

/// The store that a client works on.
#[must_use]
pub fn store(windlass: &Windlass) -> Arc<dyn Store> {
    windlass.store().clone()
}
