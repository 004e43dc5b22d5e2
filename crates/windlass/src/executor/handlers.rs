//! Handlers: plain functions that run jobs of one kind in this process.

use super::middleware::{Middleware, Next, middleware};
use super::{Execute, Executed};
use crate::attempt::Attempt;
use crate::handler_error::{BoxError, needs_feature, outcome_of};
use crate::job::Payload;
use crate::store::Kinds;
use crate::worker::panic;
use futures_util::future::{BoxFuture, FutureExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::any::TypeId;
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use windlass_core::failure::{BAD_PAYLOAD, UNKNOWN_KIND};
use windlass_core::job::Kind;
use windlass_core::{Failure, Outcome};

/// A typed payload and the kind of job that carries it. Derived:
///
/// ```
/// # #[cfg(feature = "macros")] {
/// use windlass::JobKind;
///
/// #[derive(serde::Serialize, serde::Deserialize, JobKind)]
/// #[job(kind = "email", queue = "email", retry = "full-jitter")]
/// struct SendEmail { to: String }
/// # }
/// ```
///
/// or written by hand:
///
/// ```
/// # use windlass::JobKind;
/// #[derive(serde::Serialize, serde::Deserialize)]
/// struct SendEmail { to: String }
///
/// impl JobKind for SendEmail {
///     const KIND: &'static str = "email";
///     const QUEUE: Option<&'static str> = Some("email");
/// }
/// ```
pub trait JobKind: Serialize + DeserializeOwned + Send + 'static {
    /// The name that chooses a handler: 1 to 128 printable characters.
    const KIND: &'static str;
    /// The queue of these jobs, unless the builder names another; `None` is the queue `default`. A worker that is given
    /// no queue serves those of its handlers' kinds.
    const QUEUE: Option<&'static str> = None;
    /// The retry policy of these jobs, unless the builder gives another: the name of a policy, or a line.
    const RETRY: Option<&'static str> = None;
}

pub(super) type Handler = Arc<dyn Fn(Attempt) -> BoxFuture<'static, Executed> + Send + Sync>;
type Rewrite = Box<dyn Fn(Failure, &Attempt) -> Outcome + Send + Sync>;

/// The handlers of a worker, by kind.
#[derive(Default)]
pub struct Handlers {
    by_kind: HashMap<&'static str, Handler>,
    queues: BTreeSet<&'static str>,
    rewrites: HashMap<&'static str, Rewrite>,
    middleware: Arc<Vec<Middleware>>,
}

impl Handlers {
    /// Runs jobs of `J`'s kind with an async function. The last one registered for a kind counts.
    pub fn add<J, F, Fut, R, E>(&mut self, handler: F)
    where
        J: JobKind,
        F: Fn(J, Attempt) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, E>> + Send + 'static,
        R: Serialize + 'static,
        E: Into<BoxError> + 'static,
    {
        let run = move |attempt: Attempt| match decode::<J>(&attempt) {
            Ok(job) => handler(job, attempt).map(ran).boxed(),
            Err(bad) => std::future::ready(Executed::failed(bad)).boxed(),
        };
        self.insert::<J, E>(Arc::new(run));
    }

    /// The same with a blocking function, which runs on its own threads.
    pub fn add_blocking<J, F, R, E>(&mut self, handler: F)
    where
        J: JobKind,
        F: Fn(J, Attempt) -> Result<R, E> + Send + Sync + 'static,
        R: Serialize + 'static,
        E: Into<BoxError> + 'static,
    {
        let handler = Arc::new(handler);
        let run = move |attempt: Attempt| match decode::<J>(&attempt) {
            Ok(job) => blocking(handler.clone(), job, attempt).boxed(),
            Err(bad) => std::future::ready(Executed::failed(bad)).boxed(),
        };
        self.insert::<J, E>(Arc::new(run));
    }

    fn insert<J: JobKind, E>(&mut self, handler: Handler) {
        if needs_feature::<E>() {
            tracing::warn!(
                kind = J::KIND,
                "the handler returns anyhow errors: with windlass's feature `anyhow`, failures in them keep their class and advice"
            );
        }
        self.queues.extend(J::QUEUE);
        self.by_kind.insert(J::KIND, handler);
    }

    /// Runs every attempt inside `wrap`, and inside what was added before it.
    pub fn wrap<F, Fut>(&mut self, wrap: F)
    where
        F: Fn(Attempt, Next) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Executed> + Send + 'static,
    {
        Arc::make_mut(&mut self.middleware).push(middleware(wrap));
    }

    /// Passes every failure of `J`'s kind to a function that may change it before the policy decides.
    pub fn add_rewrite<J: JobKind>(&mut self, rewrite: impl Fn(Failure, &Attempt) -> Outcome + Send + Sync + 'static) {
        self.rewrites.insert(J::KIND, Box::new(rewrite));
    }

    /// The queues that the kinds of these handlers name.
    pub(crate) fn queues(&self) -> impl Iterator<Item = &'static str> {
        self.queues.iter().copied()
    }

    /// The kinds of these handlers.
    pub(crate) fn kinds(&self) -> Kinds {
        self.by_kind.keys().filter_map(|kind| Kind::new(kind).ok()).collect()
    }

    /// The outcome after the kind's rewrite function.
    pub(crate) fn rewritten(&self, outcome: Outcome, attempt: &Attempt) -> Outcome {
        match outcome {
            Outcome::Failed(failure) => match self.rewrites.get(attempt.job().kind.as_str()) {
                Some(rewrite) => rewrite(failure, attempt),
                None => Outcome::Failed(failure),
            },
            Outcome::Succeeded | Outcome::Snoozed(_) | Outcome::Released(_) | Outcome::Cancelled | Outcome::Lost => {
                outcome
            }
        }
    }
}

impl Execute for Handlers {
    fn execute<'a>(&'a self, attempt: &'a Attempt) -> BoxFuture<'a, Executed> {
        match self.by_kind.get(attempt.job().kind.as_str()) {
            Some(handler) if self.middleware.is_empty() => handler(attempt.clone()),
            Some(handler) => Next::new(self.middleware.clone(), handler.clone()).run(attempt.clone()).boxed(),
            // A worker leaves such jobs to others; only the test kit gets here.
            None => std::future::ready(Executed::failed(unknown_kind(attempt))).boxed(),
        }
    }

    fn knows(&self, kind: &str) -> bool {
        self.by_kind.contains_key(kind)
    }

    fn rewrite(&self, outcome: Outcome, attempt: &Attempt) -> Outcome {
        self.rewritten(outcome, attempt)
    }
}

impl fmt::Debug for Handlers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.by_kind.keys()).finish()
    }
}

fn decode<J: JobKind>(attempt: &Attempt) -> Result<J, Failure> {
    serde_json::from_str(&attempt.job().payload).map_err(|error| {
        let message = format!("the payload is not a {}: {error}", J::KIND);
        Failure::permanent(message).class(BAD_PAYLOAD)
    })
}

fn unknown_kind(attempt: &Attempt) -> Failure {
    Failure::new(format!("no handler of this worker knows the kind {}", attempt.job().kind)).class(UNKNOWN_KIND)
}

async fn blocking<J, F, R, E>(handler: Arc<F>, job: J, attempt: Attempt) -> Executed
where
    J: JobKind,
    F: Fn(J, Attempt) -> Result<R, E> + Send + Sync + 'static,
    R: Serialize + 'static,
    E: Into<BoxError> + 'static,
{
    let run = move || panic::catch(|| ran(handler(job, attempt))).unwrap_or_else(Executed::failed);
    match tokio::task::spawn_blocking(run).await {
        Ok(ran) => ran,
        // Only a runtime that is shutting down refuses to run it.
        Err(error) => Executed::failed(Failure::new(format!("the blocking handler was not run: {error}"))),
    }
}

fn ran<R: Serialize + 'static, E: Into<BoxError> + 'static>(returned: Result<R, E>) -> Executed {
    match returned {
        Ok(result) => succeeded(&result),
        Err(error) => Executed::new(outcome_of(error)),
    }
}

fn succeeded<R: Serialize + 'static>(result: &R) -> Executed {
    let mut ran = Executed::new(Outcome::Succeeded);
    if TypeId::of::<R>() == TypeId::of::<()>() {
        return ran;
    }
    // The work is done: a result that cannot be stored must not cause another run.
    match serde_json::to_string(result) {
        Ok(text) if text == "null" => {}
        Ok(text) => ran.result = Some(Payload::from(text)),
        Err(error) => ran.note = Some(format!("the result was not kept: it is not JSON: {error}")),
    }
    ran
}
