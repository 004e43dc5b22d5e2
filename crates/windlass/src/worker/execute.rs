//! Execute: runs one attempt from its start to its outcome. Timeouts, panics and the worker's shutdown are handled
//! here.

use super::panic;
use crate::attempt::{Attempt, Ticket};
use crate::event::Reporter;
use crate::executor::{Execute, Executed, Timeout};
use crate::leases::held::Held;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use windlass_core::Failure;
use windlass_core::failure::TIMEOUT;

/// Runs a held job to its outcome. When `abort` fires first, the handler is dropped and the job released.
pub(crate) async fn run_held(held: Held, run: &dyn Execute, reporter: &Reporter, abort: &CancellationToken) {
    let ticket = held.ticket().clone();
    let now = ticket.now();
    ticket.start(now);
    reporter.started(&ticket.job, now);
    tokio::select! {
        biased;
        ran = run_attempt(run, &ticket) => held.finish(ran),
        // Dropping the guard releases the job.
        () = abort.cancelled() => drop(held),
    }
}

/// Runs one attempt and returns the executor's outcome, the timeout or the panic.
pub(crate) async fn run_attempt(run: &dyn Execute, ticket: &Arc<Ticket>) -> Executed {
    let attempt = Attempt(ticket.clone());
    let mut ran = match panic::catch(|| run.execute(&attempt)) {
        Ok(mut work) => match attempt.job().timeout.filter(|_| run.timeout() == Timeout::Worker) {
            None => panic::catching(work.as_mut()).await.unwrap_or_else(Executed::failed),
            Some(limit) => tokio::select! {
                biased;
                ran = panic::catching(work.as_mut()) => ran.unwrap_or_else(Executed::failed),
                // A span, not a moment: setting the clock ends no attempt.
                () = attempt.clock().sleep(limit) => timed_out(&attempt),
            },
        },
        Err(failure) => Executed::failed(failure),
    };
    let outcome = ran.outcome;
    ran.outcome = panic::catch(|| run.rewrite(outcome, &attempt)).unwrap_or_else(windlass_core::Outcome::Failed);
    ran
}

fn timed_out(attempt: &Attempt) -> Executed {
    // A blocking handler cannot be dropped. It can only be asked to stop.
    attempt.cancellation().cancel();
    let limit = attempt.job().timeout.unwrap_or_default();
    Executed::failed(Failure::new(format!("the attempt took longer than its timeout of {limit}")).class(TIMEOUT))
}
