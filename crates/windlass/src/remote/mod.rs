//! Remote workers: jobs for handlers outside this process, in any language and over any protocol. A protocol only
//! translates. This module decides what a worker may take and how its results are applied, with the same engine
//! (`leases`) as the worker of this process.

mod background;
mod handed_out;
mod keyed;
mod results;
mod scope;
mod take;
mod undelivered;

pub use crate::leases::limits::{MAX_ITEMS, MAX_LEASE, MAX_WAIT, MIN_LEASE};
pub use crate::leases::text::MAX_RESULT;
pub use crate::worker::DEFAULT_LEASE;
pub use keyed::Keyed;
pub use results::{Answer, AttemptResult, HeldAttempt};
pub use scope::{RemoteWorker, WorkScope};
pub use take::TakeRequest;

use crate::client::windlass::Windlass;
use background::Background;
use handed_out::HandedOut;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

/// The entry point for remote workers: [`Remote::take`] jobs, [`Remote::extend`] their leases, [`Remote::finish`] them.
/// Clones share their state. A server keeps one, and stops it with [`Remote::stop`] and [`Remote::drained`].
#[derive(Debug, Clone)]
pub struct Remote(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    windlass: Windlass,
    handed_out: HandedOut,
    background: Background,
    /// Which queue the next claim asks first.
    next_queue: AtomicUsize,
}

impl Windlass {
    /// Serves workers outside this process, over whatever protocol the caller speaks with them.
    ///
    /// ```
    /// use windlass::remote::{RemoteWorker, TakeRequest, WorkScope};
    /// use windlass::{Millis, Windlass};
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let windlass = Windlass::open("memory:").await?;
    /// windlass.enqueue_kind("email", &serde_json::json!({ "to": "ann" })).await?;
    /// let remote = windlass.remote();
    /// let worker = RemoteWorker::new("w1", WorkScope::all());
    /// let request = TakeRequest {
    ///     worker,
    ///     queues: vec![],
    ///     kinds: None,
    ///     max: 10,
    ///     wait: Millis::new(0),
    ///     lease_for: Millis::from_secs(30),
    /// };
    /// assert_eq!(remote.take(request).await?.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    #[must_use]
    pub fn remote(&self) -> Remote {
        Remote(Arc::new(Inner {
            windlass: self.clone(),
            handed_out: HandedOut::default(),
            background: Background::default(),
            next_queue: AtomicUsize::new(0),
        }))
    }
}

impl Remote {
    /// Ends waiting requests at once. Jobs that nobody received are still given back, if the store can be reached.
    pub fn stop(&self) {
        self.0.background.stop();
    }

    /// Waits until all jobs are given back. Call it after [`Remote::stop`].
    pub async fn drained(&self) {
        self.0.background.drained().await;
    }
}
