//! Gathering: calls that arrive while a commit is in flight go into the next one together. No timers: an idle store
//! commits at once, a busy one in batches.

use crate::job::{LeaseId, NewJob};
use crate::store::postgres::Inner;
use crate::store::postgres::life::{commit, enqueue};
use crate::store::{Atomicity, Commit, Committed, Enqueued, StoreError};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{Notify, oneshot};
use tokio_util::task::AbortOnDropHandle;

/// Transactions in flight at once, each way.
const SENDERS: usize = 3;
/// Calls with more items than this get a transaction of their own.
pub(in crate::store::postgres) const GATHERED: usize = 100;
/// The most items of one gathered transaction.
const BATCH: usize = 2000;
/// The most calls waiting; further callers get an error that the store is busy.
const WAITING: usize = 50_000;

/// Calls waiting to be sent.
#[derive(Debug)]
pub(in crate::store::postgres) struct Gather<C> {
    calls: Mutex<VecDeque<C>>,
    more: Notify,
}

pub(in crate::store::postgres) trait Call {
    fn size(&self) -> usize;
}

impl<C: Call> Gather<C> {
    fn new() -> Arc<Self> {
        Arc::new(Self { calls: Mutex::new(VecDeque::new()), more: Notify::new() })
    }

    fn push(&self, call: C) -> Result<(), StoreError> {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        if calls.len() >= WAITING {
            return Err(StoreError::unavailable("too many calls are waiting for Postgres"));
        }
        calls.push_back(call);
        drop(calls);
        self.more.notify_one();
        Ok(())
    }

    async fn take(&self) -> Vec<C> {
        loop {
            let batch = self.take_now();
            if !batch.is_empty() {
                return batch;
            }
            self.more.notified().await;
        }
    }

    fn take_now(&self) -> Vec<C> {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut batch, mut size) = (Vec::new(), 0);
        while size < BATCH
            && let Some(call) = calls.pop_front()
        {
            size += call.size();
            batch.push(call);
        }
        if !calls.is_empty() {
            self.more.notify_one();
        }
        batch
    }
}

type Answer<T> = oneshot::Sender<Result<Vec<T>, StoreError>>;

#[derive(Debug)]
pub(in crate::store::postgres) struct EnqueueCall {
    jobs: Vec<NewJob>,
    answer: Answer<Enqueued>,
}

#[derive(Debug)]
pub(in crate::store::postgres) struct CommitCall {
    commits: Vec<Commit>,
    ended: Vec<LeaseId>,
    answer: Answer<Committed>,
}

impl Call for EnqueueCall {
    fn size(&self) -> usize {
        self.jobs.len()
    }
}

impl Call for CommitCall {
    fn size(&self) -> usize {
        self.commits.len()
    }
}

/// The waiting calls, and the tasks that send them.
#[derive(Debug)]
pub(in crate::store::postgres) struct Gatherers {
    enqueues: Arc<Gather<EnqueueCall>>,
    commits: Arc<Gather<CommitCall>>,
    _tasks: Vec<AbortOnDropHandle<()>>,
}

impl Gatherers {
    pub(in crate::store::postgres) fn new(inner: &Arc<Inner>) -> Self {
        let (enqueues, commits) = (Gather::new(), Gather::new());
        let mut tasks = Vec::new();
        for _ in 0..SENDERS {
            tasks.push(AbortOnDropHandle::new(tokio::spawn(run_enqueues(inner.clone(), enqueues.clone()))));
            tasks.push(AbortOnDropHandle::new(tokio::spawn(run_commits(inner.clone(), commits.clone()))));
        }
        Self { enqueues, commits, _tasks: tasks }
    }

    pub(in crate::store::postgres) async fn enqueue(&self, jobs: Vec<NewJob>) -> Result<Vec<Enqueued>, StoreError> {
        let (answer, answered) = oneshot::channel();
        self.enqueues.push(EnqueueCall { jobs, answer })?;
        answered.await.unwrap_or_else(|_| Err(stopped()))
    }

    pub(in crate::store::postgres) async fn commit(
        &self,
        commits: Vec<Commit>,
        ended: Vec<LeaseId>,
    ) -> Result<Vec<Committed>, StoreError> {
        let (answer, answered) = oneshot::channel();
        self.commits.push(CommitCall { commits, ended, answer })?;
        answered.await.unwrap_or_else(|_| Err(stopped()))
    }
}

async fn run_enqueues(inner: Arc<Inner>, gather: Arc<Gather<EnqueueCall>>) {
    loop {
        let calls = gather.take().await;
        let (mut jobs, mut answers) = (Vec::new(), Vec::new());
        for call in calls {
            answers.push((call.jobs.len(), call.answer));
            jobs.extend(call.jobs);
        }
        let stored = enqueue::enqueue(&inner, &jobs, Atomicity::Each).await;
        give(stored, answers);
    }
}

async fn run_commits(inner: Arc<Inner>, gather: Arc<Gather<CommitCall>>) {
    loop {
        let mut calls = gather.take().await;
        let (mut commits, mut ended, mut answers) = (Vec::new(), Vec::new(), Vec::new());
        if calls.len() == 1 {
            let call = calls.remove(0);
            let committed = commit::commit(&inner, &call.commits, &call.ended).await;
            give(committed, vec![(call.commits.len(), call.answer)]);
            continue;
        }
        for call in calls {
            answers.push((call.commits.len(), call.ended.len(), call.answer));
            commits.extend(call.commits);
            ended.extend(call.ended);
        }
        match commit::commit(&inner, &commits, &ended).await {
            // One caller's commit cannot be stored: the others' must not fail with it.
            Err(StoreError::Invalid(_)) => {
                let (mut first, mut first_ended) = (0, 0);
                for (count, ends, answer) in answers {
                    let (own, own_ended) = (&commits[first..first + count], &ended[first_ended..first_ended + ends]);
                    give(commit::commit(&inner, own, own_ended).await, vec![(count, answer)]);
                    (first, first_ended) = (first + count, first_ended + ends);
                }
            }
            committed => give(committed, answers.into_iter().map(|(count, _, answer)| (count, answer)).collect()),
        }
    }
}

/// Gives each caller its results. A caller that went away needs none.
fn give<T>(outcome: Result<Vec<T>, StoreError>, answers: Vec<(usize, Answer<T>)>) {
    match outcome {
        Ok(results) => {
            let mut results = results.into_iter();
            for (count, answer) in answers {
                let _ = answer.send(Ok(results.by_ref().take(count).collect()));
            }
        }
        Err(error) => {
            for (_, answer) in answers {
                let _ = answer.send(Err(alike(&error)));
            }
        }
    }
}

/// The same error for another caller.
fn alike(error: &StoreError) -> StoreError {
    match error {
        StoreError::Unavailable(cause) => StoreError::unavailable(cause.to_string()),
        StoreError::Unknown(cause) => StoreError::unknown(cause.to_string()),
        StoreError::Corrupt { row, rule } => StoreError::corrupt(row, rule),
        StoreError::Sealed(what) => StoreError::Sealed(what.clone()),
        StoreError::Schema(what) => StoreError::Schema(what.clone()),
        StoreError::Invalid(what) => StoreError::Invalid(what.clone()),
    }
}

/// The task ended with the call in it: perhaps after its commit was sent.
fn stopped() -> StoreError {
    StoreError::unknown("the store was closed")
}
