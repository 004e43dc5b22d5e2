//! Waits for the store from code that blocks, such as diesel's.

use crate::store::StoreError;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};
use tokio::runtime::Handle;

/// Longest wait. It passes only if the runtime makes no progress, because the caller blocks its only thread.
const LIMIT: Duration = Duration::from_secs(20);

/// Runs a future to its end. Nearly always it is ready at once: only a new queue or policy, or settings that were not
/// read for a while, need the store's own connections.
pub(super) fn wait<T: Send>(runtime: &Handle, future: impl Future<Output = T> + Send) -> Result<T, StoreError> {
    let mut future = pin!(tokio::task::unconstrained(future));
    let _inside = runtime.enter();
    if let Poll::Ready(done) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        return Ok(done);
    }
    // On a thread of its own: tasks that are woken from a runtime's thread may wait for that thread.
    let waited = std::thread::scope(|scope| scope.spawn(|| wait_here(runtime, future)).join());
    waited.unwrap_or_else(|_| Err(StoreError::unavailable("storing the job panicked")))
}

fn wait_here<T>(runtime: &Handle, mut future: Pin<&mut impl Future<Output = T>>) -> Result<T, StoreError> {
    let _inside = runtime.enter();
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    #[allow(clippy::disallowed_methods, reason = "a bound on real waiting, not a time that is stored")]
    let began = Instant::now();
    loop {
        if let Poll::Ready(done) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return Ok(done);
        }
        let left = LIMIT.saturating_sub(began.elapsed());
        if left.is_zero() {
            return Err(StoreError::unavailable("the runtime is blocked: call this in `tokio::task::spawn_blocking`"));
        }
        std::thread::park_timeout(left);
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
