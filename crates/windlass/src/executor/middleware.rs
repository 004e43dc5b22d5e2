//! Middleware: code around every attempt that handlers run, for logs, traces, metrics and context.

use super::Executed;
use super::handlers::Handler;
use crate::attempt::Attempt;
use crate::worker::panic;
use futures_util::future::{BoxFuture, FutureExt};
use std::fmt;
use std::future::Future;
use std::sync::Arc;

pub(super) type Middleware = Arc<dyn Fn(Attempt, Next) -> BoxFuture<'static, Executed> + Send + Sync>;

/// Makes a middleware from an async function.
pub(super) fn middleware<F, Fut>(wrap: F) -> Middleware
where
    F: Fn(Attempt, Next) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Executed> + Send + 'static,
{
    Arc::new(move |attempt, next| wrap(attempt, next).boxed())
}

/// The rest of an attempt, as a middleware sees it: the middleware added after it, and at the end the handler.
pub struct Next {
    all: Arc<Vec<Middleware>>,
    place: usize,
    handler: Handler,
}

impl Next {
    pub(super) fn new(all: Arc<Vec<Middleware>>, handler: Handler) -> Self {
        Self { all, place: 0, handler }
    }

    /// Runs the rest. If the handler panics, this returns a failure of the class `Panic`.
    pub async fn run(mut self, attempt: Attempt) -> Executed {
        if let Some(middleware) = self.all.get(self.place).cloned() {
            self.place += 1;
            return middleware(attempt, self).await;
        }
        match panic::catch(|| (self.handler)(attempt)) {
            Ok(mut work) => panic::catching(work.as_mut()).await.unwrap_or_else(Executed::failed),
            Err(failure) => Executed::failed(failure),
        }
    }
}

impl fmt::Debug for Next {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Next").field("left", &(self.all.len() - self.place)).finish_non_exhaustive()
    }
}
