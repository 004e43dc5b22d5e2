//! The signal that stops a worker.

use std::future::Future;
use tokio_util::sync::CancellationToken;

/// The signal that stops a worker: any future, when it completes, or a [`CancellationToken`], when it is cancelled.
///
/// `Marker` only distinguishes the two; callers never name it.
pub trait IntoShutdown<Marker> {
    /// Completes when the worker should stop.
    fn into_shutdown(self) -> impl Future<Output = ()>;
}

/// Marks a future.
#[derive(Debug, Clone, Copy)]
pub struct OfFuture;

/// Marks a [`CancellationToken`].
#[derive(Debug, Clone, Copy)]
pub struct OfToken;

impl<F: Future> IntoShutdown<OfFuture> for F {
    async fn into_shutdown(self) {
        self.await;
    }
}

impl IntoShutdown<OfToken> for CancellationToken {
    async fn into_shutdown(self) {
        self.cancelled_owned().await;
    }
}

impl IntoShutdown<OfToken> for &CancellationToken {
    async fn into_shutdown(self) {
        self.cancelled().await;
    }
}
