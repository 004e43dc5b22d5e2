//! A held job: claimed, and without an outcome so far. If it is dropped without an outcome, it is released.

use crate::attempt::{Shared, Ticket};
use crate::executor::Executed;
use crate::job::{ClaimedJob, Payload};
use std::sync::Arc;
use tokio::sync::mpsc::UnboundedSender;
use windlass_core::{Outcome, Progress, Roll, Timestamp};

/// Where outcomes go. The channel is unbounded, but `fetch` limits the jobs a worker holds.
pub(crate) type DoneSender = UnboundedSender<Done>;

/// How an attempt ended, on its way to the commit.
#[derive(Debug)]
pub(crate) struct Done {
    pub ticket: Arc<Ticket>,
    pub outcome: Outcome,
    pub note: Option<String>,
    pub result: Option<Payload>,
    pub finished_at: Timestamp,
    /// Drawn once, by the committer: a repeated commit must choose the same delay.
    pub roll: Option<Roll>,
}

/// A guard around a claimed job.
#[derive(Debug)]
pub(crate) struct Held {
    ticket: Option<Arc<Ticket>>,
    done: DoneSender,
}

impl Held {
    pub(crate) fn new(ticket: Arc<Ticket>, done: DoneSender) -> Self {
        Self { ticket: Some(ticket), done }
    }

    pub(crate) fn ticket(&self) -> &Arc<Ticket> {
        self.ticket.as_ref().expect("a held job has its ticket until it is finished")
    }

    pub(crate) fn finish(mut self, ran: Executed) {
        self.send(ran);
    }

    fn send(&mut self, ran: Executed) {
        let Some(ticket) = self.ticket.take() else { return };
        let finished_at = ticket.now();
        let note = ticket.take_note().or(ran.note);
        // If the receiver is gone, the lease runs out and the job is reaped.
        let _ =
            self.done.send(Done { ticket, outcome: ran.outcome, note, result: ran.result, finished_at, roll: None });
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let Some(ticket) = &self.ticket else { return };
        let progress = if ticket.started_at().is_some() { Progress::Started } else { Progress::NotStarted };
        self.send(Executed::new(Outcome::Released(progress)));
    }
}

/// Creates the guards for the jobs of one claim.
pub(crate) fn hold(jobs: Vec<ClaimedJob>, shared: &Arc<Shared>, done: &DoneSender) -> Vec<Held> {
    jobs.into_iter().map(|job| Held::new(Ticket::new(job, shared.clone()), done.clone())).collect()
}
