//! Claims for remote workers: never lost between the store and a client that hung up.

use super::read::Wish;
use crate::http::app::App;
use crate::http::problem::Problem;
use std::sync::Arc;
use tokio::sync::oneshot;
use windlass::dice::Dice;
use windlass::job::{Job, LeaseId};
use windlass::settle::{Trace, settle};
use windlass::store::{Claim, Claimed, Leases, Queue, Store, StoreError, Turn};
use windlass_core::{Executor, Outcome, Progress};

/// At most this many jobs of one claim have lost a worker before.
const SUSPECTS: u32 = 1;

/// The queues a worker asked for, in turn.
pub(super) fn queues_of(wish: &Wish, all: Vec<Queue>, app: &App) -> Vec<Queue> {
    let is_wished = |queue: &Queue| {
        queue.executor == Executor::Worker && (wish.queues.is_empty() || wish.queues.contains(&queue.name))
    };
    let mut queues: Vec<Queue> = all.into_iter().filter(is_wished).collect();
    if !queues.is_empty() {
        let turn = app.leased().next_turn(queues.len());
        queues.rotate_left(turn);
    }
    queues
}

/// Takes up to `max` jobs: an equal share from each queue first, then what is left from any.
pub(super) async fn claim(app: &App, wish: &Wish, queues: &[Queue]) -> Result<Claimed, Problem> {
    let share = wish.max.div_ceil(queues.len().max(1) as u32);
    let mut claimed = claim_once(app, wish, queues, share, wish.max).await?;
    let left = wish.max - claimed.jobs.len() as u32;
    if left > 0 && share < wish.max && !claimed.jobs.is_empty() {
        let more = claim_once(app, wish, queues, left, left).await?;
        claimed.jobs.extend(more.jobs);
    }
    app.leased().keep(&claimed.jobs);
    app.windlass().remote_started(&wish.worker.0, &claimed.jobs);
    Ok(claimed)
}

async fn claim_once(app: &App, wish: &Wish, queues: &[Queue], slots: u32, limit: u32) -> Result<Claimed, Problem> {
    let leases: Vec<LeaseId> = (0..limit).map(|_| LeaseId::draw(app.dice())).collect();
    let turns = queues.iter().map(|queue| Turn { queue: queue.id, slots, ahead: 0 }).collect();
    let claim = Claim {
        worker: wish.worker.clone(),
        leases: Leases::Each(leases.clone()),
        lease_for: wish.lease_for,
        turns,
        limit,
        suspects: SUSPECTS,
    };
    let (store, dice) = (app.windlass().store().clone(), app.dice().clone());
    let (told, heard) = oneshot::channel();
    // The request may be dropped at any moment, its client gone; the claim must not be dropped with it, or its jobs would
    // wait for their leases to run out.
    app.tasks().spawn(async move {
        let claimed = match store.claim(claim).await {
            Err(StoreError::Unknown(cause)) => look(&*store, &leases).await.ok_or(StoreError::Unknown(cause)),
            other => other,
        };
        if let Err(Ok(unheard)) = told.send(claimed) {
            release(&store, &dice, unheard.jobs).await;
        }
    });
    match heard.await {
        Ok(claimed) => Ok(claimed?),
        Err(_) => Err(StoreError::unavailable("the server is stopping").into()),
    }
}

/// After an unknown outcome: what the claim brought.
async fn look(store: &dyn Store, leases: &[LeaseId]) -> Option<Claimed> {
    let mut claimed = Claimed::default();
    for lease in leases {
        claimed.jobs.extend(store.held(*lease).await.ok()?);
    }
    Some(claimed)
}

/// Gives jobs back that nobody will run.
async fn release(store: &Arc<dyn Store>, dice: &Dice, jobs: Vec<Job>) {
    let now = store.clock().now();
    let give_back = |job: &Job| {
        let started_at = job.claimed_at.unwrap_or(now);
        let trace = Trace { started_at, finished_at: now, worker: "windlass".into(), ..Trace::default() };
        settle(job, &Outcome::Released(Progress::NotStarted), trace, dice.roll())
    };
    let leases = jobs.iter().filter_map(|job| job.lease).collect();
    let commits: Vec<_> = jobs.iter().map(give_back).collect();
    if let Err(error) = store.commit(commits, leases).await {
        tracing::warn!(%error, "jobs of a worker that hung up come back when their leases run out");
    }
}
