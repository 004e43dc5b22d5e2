//! Short helpers for what a test does with a store.

use std::sync::Arc;
use windlass::Random;
use windlass::core::job::Kind;
use windlass::core::policy::Partial;
use windlass::core::{Executor, Millis, Outcome, Roll};
use windlass::low_level::job::{ClaimedJob, LeaseId, NewJob};
use windlass::low_level::leases::transition::{Trace, commit_of};
use windlass::low_level::stores::{
    Atomicity, Claim, Commit, Committed, JobFilter, Leases, Order, Page, Scope, Share, Store, StoreError, WorkerId,
};

/// Enough attempts to use up the free space inside the files of a full disk.
const TRIES: u32 = 2000;

pub fn job() -> NewJob {
    let policy = Partial::resolve(&[Partial::parse_line("fixed:base=10s,retries=3").unwrap()], &[]).unwrap();
    NewJob::new(Kind::new("email").unwrap(), r#"{"to":"ann"}"#, Arc::new(policy))
}

/// Stores batches of jobs until the store refuses one. Returns how many it accepted, and why it refused the next.
pub async fn put_until_refused(store: &dyn Store) -> (usize, StoreError) {
    let mut taken = 0;
    for _ in 0..TRIES {
        match store.enqueue(vec![job(); 20], Atomicity::Each).await {
            Ok(stored) => taken += stored.len(),
            Err(error) => return (taken, error),
        }
    }
    panic!("{taken} jobs found room on a full disk");
}

pub async fn put(store: &dyn Store, count: usize) {
    let stored = store.enqueue(vec![job(); count], Atomicity::Each).await.unwrap();
    assert!(stored.iter().all(|stored| stored.id().is_some()), "{stored:?}");
}

/// How many jobs there are.
pub async fn count(store: &dyn Store) -> usize {
    let (mut count, mut after) = (0, None);
    loop {
        let page = Page { after, limit: 1000, order: Order::OldestFirst };
        let jobs = store.jobs(&Scope::All, &JobFilter::default(), page).await.unwrap();
        let Some(last) = jobs.last() else { return count };
        count += jobs.len();
        after = Some(last.id);
    }
}

pub async fn claim(store: &dyn Store, slots: u32) -> Vec<ClaimedJob> {
    let (tenant, name) = Default::default();
    let queue = store.register_queue(&tenant, &name, Executor::Worker).await.unwrap().id;
    let claim = Claim {
        worker: WorkerId::new("w1"),
        leases: Leases::Shared(LeaseId::draw(&Random::system())),
        lease_for: Millis::from_secs(30),
        shares: vec![Share { queue, slots, ahead: 0 }],
        limit: slots,
        suspects: slots,
        kinds: None,
    };
    store.claim(claim).await.unwrap().jobs
}

pub async fn succeed(store: &dyn Store, jobs: &[ClaimedJob]) -> Result<Vec<Committed>, StoreError> {
    let commit = |job: &ClaimedJob| -> Commit {
        let now = store.clock().now();
        let trace = Trace { started_at: now, finished_at: now, worker: "w1".into(), note: None, result: None };
        commit_of(job, &Outcome::Succeeded, trace, Roll(0))
    };
    store.commit(jobs.iter().map(commit).collect(), Vec::new()).await
}

pub fn is_applied(committed: &[Committed]) -> bool {
    committed.iter().all(|committed| matches!(committed, Committed::Applied(_)))
}
