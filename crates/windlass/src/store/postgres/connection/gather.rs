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

/// Transactions of commits in flight at once.
const COMMIT_SENDERS: usize = 3;
/// As many calls must wait before a second enqueue begins while one is in flight. Fewer wait for the next one: a large
/// transaction costs the server much less per job than several small ones.
const MANY: usize = 100;
/// How often a sender lets other tasks run before it takes what waits. Callers that were just answered often call again
/// at once, and so come into the same transaction.
const YIELDS: usize = 3;
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
    many: Notify,
}

pub(in crate::store::postgres) trait Call {
    fn size(&self) -> usize;
}

impl<C: Call> Gather<C> {
    fn new() -> Arc<Self> {
        Arc::new(Self { calls: Mutex::new(VecDeque::new()), more: Notify::new(), many: Notify::new() })
    }

    fn push(&self, call: C) -> Result<(), StoreError> {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        if calls.len() >= WAITING {
            return Err(StoreError::unavailable("too many calls are waiting for Postgres"));
        }
        calls.push_back(call);
        self.notify(calls.len());
        Ok(())
    }

    /// What waits, once at least so many calls do: one, or [`MANY`].
    async fn take(&self, least: usize) -> Vec<C> {
        loop {
            for _ in 0..YIELDS {
                tokio::task::yield_now().await;
            }
            let batch = self.take_now(least);
            if !batch.is_empty() {
                return batch;
            }
            let arrived = if least < MANY { &self.more } else { &self.many };
            arrived.notified().await;
        }
    }

    fn take_now(&self, least: usize) -> Vec<C> {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut batch, mut size) = (Vec::new(), 0);
        if calls.len() < least {
            return batch;
        }
        while size < BATCH
            && let Some(call) = calls.pop_front()
        {
            size += call.size();
            batch.push(call);
        }
        self.notify(calls.len());
        batch
    }

    fn notify(&self, waiting: usize) {
        if waiting > 0 {
            self.more.notify_one();
        }
        if waiting >= MANY {
            self.many.notify_one();
        }
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
        for least in [1, MANY] {
            tasks.push(AbortOnDropHandle::new(tokio::spawn(run_enqueues(inner.clone(), enqueues.clone(), least))));
        }
        for _ in 0..COMMIT_SENDERS {
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

async fn run_enqueues(inner: Arc<Inner>, gather: Arc<Gather<EnqueueCall>>, least: usize) {
    loop {
        let calls = gather.take(least).await;
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
        let mut calls = gather.take(1).await;
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

#[cfg(test)]
mod tests {
    use super::*;

    struct One;

    impl Call for One {
        fn size(&self) -> usize {
            1
        }
    }

    #[tokio::test]
    async fn the_first_sender_takes_all_that_waits_and_the_second_only_many() {
        let gather = Gather::new();
        for _ in 1..MANY {
            gather.push(One).unwrap();
        }
        assert!(gather.take_now(MANY).is_empty());
        assert_eq!(gather.take(1).await.len(), MANY - 1);
        let second = tokio::spawn({
            let gather = gather.clone();
            async move { gather.take(MANY).await.len() }
        });
        for _ in 0..MANY {
            tokio::task::yield_now().await;
            gather.push(One).unwrap();
        }
        assert_eq!(second.await.unwrap(), MANY);
        assert!(gather.take_now(1).is_empty());
    }
}
