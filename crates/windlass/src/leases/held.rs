//! A held job: claimed, and owed an outcome. Dropped without one it is released, never forgotten.

use crate::attempt::{Shared, Ticket};
use crate::executor::Executed;
use crate::job::{ClaimedJob, Payload};
use std::sync::Arc;
use tokio::sync::mpsc::UnboundedSender;
use windlass_core::{Outcome, Progress, Roll, Timestamp};

/// Where outcomes go. Unbounded as a channel; bounded by the jobs a worker holds, which fetch limits.
pub(crate) type DoneSender = UnboundedSender<Done>;

/// How an attempt ended, on its way to the commit.
#[derive(Debug)]
pub(crate) struct Done {
    pub ticket: Arc<Ticket>,
    pub outcome: Outcome,
    pub note: Option<String>,
    pub result: Option<Payload>,
    pub finished_at: Timestamp,
    /// Drawn once, by the committer: a commit that is repeated must choose the same delay.
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
        // A receiver that is gone leaves the lease to run out: then the job is reaped.
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

/// Makes guards of the jobs of one claim.
pub(crate) fn hold(jobs: Vec<ClaimedJob>, shared: &Arc<Shared>, done: &DoneSender) -> Vec<Held> {
    jobs.into_iter().map(|job| Held::new(Ticket::new(job, shared.clone()), done.clone())).collect()
}
