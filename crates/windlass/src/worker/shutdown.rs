//! What tells a worker to stop.

use std::future::Future;
use tokio_util::sync::CancellationToken;

/// What can tell a worker to stop: any future, when it completes, or a [`CancellationToken`], when it is cancelled.
///
/// `Marker` only tells the two apart; callers never name it.
pub trait IntoShutdown<Marker> {
    /// Completes when the worker is to stop.
    fn into_shutdown(self) -> impl Future<Output = ()>;
}

/// Marks what is a future.
#[derive(Debug, Clone, Copy)]
pub struct OfFuture;

/// Marks what is a [`CancellationToken`].
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
