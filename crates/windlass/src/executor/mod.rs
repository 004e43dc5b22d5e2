//! Executors: what an attempt does. `handlers` runs in this process, `http` calls a URL.

pub mod handlers;
#[cfg(feature = "http")]
pub mod http;
pub(crate) mod middleware;

use crate::attempt::Attempt;
use crate::job::{Job, Payload};
use futures_util::future::BoxFuture;
#[cfg(feature = "http")]
use windlass_core::signature::rotation::signers;
use windlass_core::slots::SlotLimits;
use windlass_core::{Failure, Outcome, Progress};

/// Carries out attempts. The worker does the rest: timeout, panics, cancellation, commit.
pub trait Execute: Send + Sync + 'static {
    /// Runs one attempt to its end. Dropping the future stops it.
    fn execute<'a>(&'a self, attempt: &'a Attempt) -> BoxFuture<'a, Executed>;

    /// Whether it can run jobs of this kind. Others are left to workers that can.
    fn knows(&self, _kind: &str) -> bool {
        true
    }

    /// Who enforces the job's timeout.
    fn timeout(&self) -> Timeout {
        Timeout::Worker
    }

    /// How `slots` slots are shared between tenants and destinations. `None`: in the order jobs come.
    fn slot_limits(&self, _slots: u32) -> Option<SlotLimits> {
        None
    }

    /// What the job's slot is counted under, if slots are shared.
    fn destination(&self, _job: &Job) -> String {
        String::new()
    }

    /// The outcome of a job that cannot start because its destination has no free slot.
    fn busy(&self, _job: &Job) -> Executed {
        Executed::new(Outcome::Released(Progress::NotStarted))
    }

    /// May change the outcome of an attempt (timeouts and panics included) before the decision.
    fn rewrite(&self, outcome: Outcome, _attempt: &Attempt) -> Outcome {
        outcome
    }
}

/// Who ends an attempt that takes longer than its job's timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timeout {
    /// The worker drops it.
    Worker,
    /// The executor ends it, because it knows when the time starts to count.
    Own,
}

/// The result of running an attempt.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Executed {
    /// The outcome of the attempt.
    pub outcome: Outcome,
    /// Stored with the attempt.
    pub note: Option<String>,
    /// JSON stored with the job.
    pub result: Option<Payload>,
}

impl Executed {
    /// Makes one.
    #[must_use]
    pub const fn new(outcome: Outcome) -> Self {
        Self { outcome, note: None, result: None }
    }

    /// A failure.
    #[must_use]
    pub const fn failed(failure: Failure) -> Self {
        Self::new(Outcome::Failed(failure))
    }
}

#[cfg(feature = "http")]
impl Execute for http::HttpExecutor {
    fn execute<'a>(&'a self, attempt: &'a Attempt) -> BoxFuture<'a, Executed> {
        Box::pin(async {
            // A cancelled job, a lost lease and a stopping worker drop the call and its connection.
            tokio::select! {
                biased;
                called = call_signed(self, attempt) => called.into(),
                () = attempt.cancellation().cancelled() => Executed::new(Outcome::Released(Progress::Started)),
            }
        })
    }

    fn slot_limits(&self, slots: u32) -> Option<SlotLimits> {
        Some(self.limits(slots))
    }

    fn destination(&self, job: &Job) -> String {
        http::destination(job)
    }

    fn busy(&self, job: &Job) -> Executed {
        http::busy(job.delivery).into()
    }

    fn timeout(&self) -> Timeout {
        Timeout::Own
    }
}

/// Makes the call, signed with the secrets that are in force for its tenant now.
#[cfg(feature = "http")]
async fn call_signed(executor: &http::HttpExecutor, attempt: &Attempt) -> http::Called {
    let job = attempt.job();
    let secret = job.http.as_ref().and_then(|call| call.secret.as_deref());
    let signers = match secret {
        None => Vec::new(),
        // The operators' secret. What a tenant replaced must not sign in its place.
        Some(secret) if job.is_notice() => vec![secret.to_owned()],
        Some(secret) => match attempt.windlass().catalogue().await {
            Ok(catalogue) => {
                let signers = signers(secret, catalogue.rotations(&job.tenant), attempt.clock().now());
                signers.into_iter().map(str::to_owned).collect()
            }
            // A secret that was not replaced is right. If it was, the receiver refuses and the call is made again.
            Err(_) => vec![secret.to_owned()],
        },
    };
    let trace = attempt.windlass().tracer().map(|tracer| tracer.call(job, attempt.lease()));
    executor.call_from(attempt.installation(), job, &signers, trace).await
}

#[cfg(feature = "http")]
impl From<http::Called> for Executed {
    fn from(http::Called { outcome, note }: http::Called) -> Self {
        Self { outcome, note, result: None }
    }
}
