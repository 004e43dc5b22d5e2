//! Commit: makes transitions of outcomes and writes them in batches as fast as the store accepts them. An idle worker
//! commits at once. A busy worker collects outcomes while the previous commit is under way.

use crate::client::windlass::Windlass;
use crate::event::{Ended, Reporter};
use crate::job::LeaseId;
use crate::leases::commit::{Cancel, commit, decide, ending, report, rules_for, rules_of};
use crate::leases::held::Done;
use crate::leases::held_leases::HeldLeases;
use crate::leases::limits::MAX_COMMIT;
use crate::leases::outage::store_failed;
use crate::leases::reconnect::Reconnect;
use crate::leases::transition::Trace;
use crate::store::{Commit, Committed, StoreError};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::sync::mpsc::UnboundedReceiver;
use windlass_core::{LiveRules, Outcome, Transition};

pub(crate) struct Committer {
    pub writer: Writer,
    pub done: UnboundedReceiver<Done>,
}

/// Commits outcomes and reports them.
pub(crate) struct Writer {
    pub windlass: Windlass,
    pub held_leases: Arc<HeldLeases>,
    pub reporter: Reporter,
}

impl Committer {
    /// Commits until every held job has its outcome committed and no new jobs can arrive.
    pub(crate) async fn run(self) {
        let Self { writer, mut done } = self;
        let most = writer.windlass.store().commits_at_once();
        let mut under_way = FuturesUnordered::new();
        let mut batch = Vec::new();
        let mut is_open = true;
        while is_open || !under_way.is_empty() {
            tokio::select! {
                count = done.recv_many(&mut batch, MAX_COMMIT), if is_open && under_way.len() < most => {
                    is_open = count > 0;
                    if is_open {
                        under_way.push(writer.commit(std::mem::take(&mut batch)));
                    }
                }
                Some(()) = under_way.next() => {}
            }
        }
        drop(under_way);
        end_leases(&writer.windlass, &writer.held_leases).await;
    }
}

impl Writer {
    /// Commits all of `left`, however long the store is unreachable.
    async fn commit(&self, mut left: Vec<Done>) {
        let mut reconnect = Reconnect::default();
        for done in &mut left {
            done.roll = Some(self.windlass.random().roll());
        }
        while !left.is_empty() {
            let catalogue = rules_for(&self.windlass, left.iter().map(|done| &done.outcome)).await;
            let rules = |done: &Done| rules_of(catalogue.as_ref(), &done.ticket.job);
            let commits: Vec<Commit> = left.iter().map(|done| self.commit_of(done, rules(done))).collect();
            let transitions: Vec<Transition> = commits.iter().map(|commit| commit.transition).collect();
            let over = self.held_leases.take_over();
            let ending = ending(&commits, |lease, count| self.held_leases.ends_with(lease, count));
            let ended: Vec<LeaseId> = ending.into_iter().chain(over.iter().copied()).collect();
            match commit(&self.windlass, commits, ended.clone()).await {
                Ok(committed) => left = self.applied(left, &transitions, &committed, &ended).await,
                Err(error) => {
                    self.held_leases.give_back_over(over);
                    left = self.refused(left, &error, &mut reconnect).await;
                }
            }
        }
    }

    fn commit_of(&self, done: &Done, rules: LiveRules<'_>) -> Commit {
        let job = &done.ticket.job;
        let trace = Trace {
            started_at: done.ticket.started_at().or(job.claimed_at).unwrap_or(done.finished_at),
            finished_at: done.finished_at,
            worker: self.reporter.worker.as_ref().to_owned(),
            note: done.note.clone(),
            result: done.result.clone(),
        };
        let roll = done.roll.expect("outcomes are given their roll before they are decided");
        let is_requested = done.ticket.cancel_requested.load(Ordering::Acquire);
        let cancel = if is_requested { Cancel::Requested } else { Cancel::NotRequested };
        decide(job, cancel, &done.outcome, rules, trace, roll)
    }

    /// Closes committed jobs and reports them. Returns the outcomes that must be decided again.
    async fn applied(
        &self,
        batch: Vec<Done>,
        transitions: &[Transition],
        committed: &[Committed],
        ended: &[LeaseId],
    ) -> Vec<Done> {
        let mut again = Vec::new();
        let mut closed = Vec::with_capacity(batch.len());
        for ((done, transition), committed) in batch.into_iter().zip(transitions).zip(committed) {
            match committed {
                Committed::Applied(_) | Committed::Repeated => {
                    if let Some((due_at, _)) = transition.next.wait() {
                        self.held_leases.note_due(due_at);
                    }
                    self.report(&done, *transition).await;
                    closed.push(done.ticket);
                }
                Committed::Stale => {
                    let (id, attempt) = (done.ticket.job.id, done.ticket.job.attempt);
                    tracing::warn!(
                        job_id = id.0,
                        attempt,
                        worker = &*self.reporter.worker,
                        "job {id}: the outcome of attempt {attempt} came too late and changed nothing"
                    );
                    closed.push(done.ticket);
                }
                Committed::CancelRequested => {
                    done.ticket.request_cancel();
                    again.push(done);
                }
            }
        }
        self.held_leases.close(closed.iter(), ended);
        again
    }

    async fn report(&self, done: &Done, transition: Transition) {
        let job = &done.ticket.job;
        let (error_class, error) = match &done.outcome {
            Outcome::Failed(failure) => (Some(failure.class.as_str()), Some(failure.message.as_str())),
            Outcome::Succeeded | Outcome::Snoozed(_) | Outcome::Released(_) | Outcome::Cancelled | Outcome::Lost => {
                (None, None)
            }
        };
        let ended = Ended {
            job,
            transition,
            error_class,
            error,
            started_at: done.ticket.started_at().unwrap_or(done.finished_at),
            finished_at: done.finished_at,
            next_firing: None,
            lease: done.ticket.started_at().map(|_| done.ticket.lease()),
        };
        report(&self.windlass, &self.reporter, ended).await;
    }

    /// Returns what to try again after an error of the whole batch.
    async fn refused(&self, batch: Vec<Done>, error: &StoreError, reconnect: &mut Reconnect) -> Vec<Done> {
        match error {
            // Repeating is safe in both cases: the store recognises a commit that already happened.
            StoreError::Unavailable(_) | StoreError::Unknown(_) => {
                store_failed!(error, count = batch.len(), "outcomes wait for the store");
                reconnect.wait(self.windlass.clock(), self.windlass.random()).await;
                batch
            }
            StoreError::Corrupt { .. } | StoreError::Sealed(_) | StoreError::Schema(_) | StoreError::Invalid(_) => {
                self.one_by_one(batch, error).await
            }
        }
    }

    /// Commits each outcome by itself, because the store may refuse only one of the batch.
    async fn one_by_one(&self, batch: Vec<Done>, error: &StoreError) -> Vec<Done> {
        if let [done] = batch.as_slice() {
            let id = done.ticket.job.id;
            tracing::error!(job_id = id.0, %error, "job {id}: its outcome cannot be stored; its lease will run out");
            self.held_leases.abandon(&done.ticket);
            return Vec::new();
        }
        for done in batch {
            Box::pin(self.commit(vec![done])).await;
        }
        Vec::new()
    }
}

/// Deletes the rows of leases that are over. After a failure, the reaper removes them and finds no job under them.
pub(crate) async fn end_leases(windlass: &Windlass, held_leases: &HeldLeases) {
    let over = held_leases.take_over();
    if over.is_empty() {
        return;
    }
    if commit(windlass, Vec::new(), over.clone()).await.is_err() {
        held_leases.give_back_over(over);
    }
}
