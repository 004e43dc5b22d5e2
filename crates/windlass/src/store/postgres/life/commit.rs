//! Commit: transitions by set statements, fenced, with attempts, tallies and follow-ups in one transaction.

use crate::job::{Job, LeaseId, NewJob};
use crate::store::postgres::Inner;
use crate::store::postgres::connection::fault::again;
use crate::store::postgres::connection::pool::On;
use crate::store::postgres::life::fence::{Fence, Held};
use crate::store::postgres::life::gates;
use crate::store::postgres::life::moves::{self, Moved};
use crate::store::postgres::life::names::{self, Numbers};
use crate::store::postgres::life::transitions::Endings;
use crate::store::postgres::life::{enqueue, schedules};
use crate::store::postgres::statements::Sql;
use crate::store::postgres::statements::arrays::at;
use crate::store::postgres::statements::columns::Columns;
use crate::store::postgres::upkeep::retention;
use crate::store::{Commit, Committed, DISCARDED_BY_RULE, Keep, StoreError};
use crate::tally::{Tallies, Tally};
use futures_util::future::{try_join, try_join5};
use futures_util::join;
use std::collections::HashMap;
use windlass_core::{JobId, Next, State};

pub(in crate::store::postgres) async fn commit(
    store: &Inner,
    commits: &[Commit],
    ended: &[LeaseId],
) -> Result<Vec<Committed>, StoreError> {
    again(|| commit_once(store, commits, ended)).await
}

async fn commit_once(store: &Inner, commits: &[Commit], ended: &[LeaseId]) -> Result<Vec<Committed>, StoreError> {
    let numbers = follow_up_numbers(store, commits).await?;
    let lent = store.pool.get().await?;
    let (begun, applied) = join!(lent.begin(), apply(store, On::Own(&lent), commits, &numbers, ended));
    lent.conclude(begun, applied).await
}

pub(in crate::store::postgres) async fn follow_up_numbers(
    store: &Inner,
    commits: &[Commit],
) -> Result<Vec<Numbers>, StoreError> {
    let follow_ups: Vec<NewJob> = commits.iter().flat_map(|commit| &commit.follow_ups).cloned().collect();
    names::numbers(store, &follow_ups).await
}

/// Applies commits in an open transaction. `numbers` are those of all follow-ups, in order.
pub(in crate::store::postgres) async fn apply(
    store: &Inner,
    on: On<'_>,
    commits: &[Commit],
    numbers: &[Numbers],
    ended: &[LeaseId],
) -> Result<Vec<Committed>, StoreError> {
    let mut results: Vec<Option<Committed>> = vec![None; commits.len()];
    let mut firsts = Vec::with_capacity(commits.len());
    let mut next = 0;
    for commit in commits {
        firsts.push(next);
        next += commit.follow_ups.len();
    }
    let fence = Fence::lock(on, commits).await?;
    for round in rounds(commits) {
        let batch = Batch { commits, numbers, firsts: &firsts, round: &round, fence: &fence };
        apply_round(store, on, &batch, &mut results).await?;
    }
    let is_applied = |result: &Option<Committed>| matches!(result, Some(Committed::Applied(_)));
    let applied: Vec<&Commit> =
        results.iter().zip(commits).filter(|(result, _)| is_applied(result)).map(|(_, commit)| commit).collect();
    // A job that must be decided again still runs under its lease: without it, nobody would notice that its worker
    // died.
    let asked = results.iter().zip(commits).filter(|(result, _)| **result == Some(Committed::CancelRequested));
    let kept: Vec<LeaseId> = asked.map(|(_, commit)| commit.lease).collect();
    let ids: Vec<i64> = ended.iter().filter(|lease| !kept.contains(lease)).map(|lease| lease.0).collect();
    let end_leases = async {
        if ids.is_empty() {
            return Ok(());
        }
        on.query(Sql::LeasesEnd, &[&ids]).await.map(drop)
    };
    // Sent together: claims wait for the gates that are counted here.
    let ((), opens) = try_join(end_leases, gates::end(store, on, &applied, &fence)).await?;
    if opens {
        store.wake.ring();
        store.news.notify_one();
    }
    Ok(results.into_iter().map(|result| result.unwrap_or(Committed::Stale)).collect())
}

async fn apply_round(
    store: &Inner,
    on: On<'_>,
    batch: &Batch<'_>,
    results: &mut [Option<Committed>],
) -> Result<(), StoreError> {
    let moved = moves::end_attempts(store, on, batch).await?;
    let mut tallies = Tallies::default();
    let mut follow_ups = FollowUps::default();
    let mut unmoved = Vec::new();
    for place in batch.round {
        let commit = &batch.commits[*place];
        if !moved.ids.contains(&commit.job.0) {
            unmoved.push(*place);
            continue;
        }
        tallies.add(commit.queue, &commit.kind, Tally::of(commit));
        for (nth, job) in commit.follow_ups.iter().enumerate() {
            follow_ups.push(*place, job, batch.numbers[batch.firsts[*place] + nth]);
        }
        results[*place] = Some(Committed::Applied(Vec::new()));
    }
    let ((), (), stored, (), outcomes) = try_join5(
        moves::wait_again(on, batch, &moved),
        enqueue::tally(store, on, &tallies),
        follow_ups.store(store, on),
        after_finish(store, on, batch, &moved),
        outcomes(on, batch, &unmoved),
    )
    .await?;
    for (place, id) in stored {
        if let Some(Committed::Applied(ids)) = &mut results[place] {
            ids.push(id);
        }
    }
    for (place, outcome) in unmoved.into_iter().zip(outcomes) {
        results[place] = Some(outcome);
    }
    Ok(())
}

/// One-shot schedules end with their run; jobs that are not kept are deleted.
async fn after_finish(store: &Inner, on: On<'_>, batch: &Batch<'_>, moved: &Moved) -> Result<(), StoreError> {
    if batch.fence.has_spent {
        let is_moved = |commit: &&Commit| moved.ids.contains(&commit.job.0);
        let ids: Vec<i64> = batch.finishing().filter(is_moved).map(|commit| commit.job.0).collect();
        end_one_shots(on, &ids).await?;
    }
    forget(store, on, &moved.dropped, &moved.dropped_dead).await?;
    let is_kept = |commit: &&Commit| moved.ids.contains(&commit.job.0) && !moved.dropped.contains(&commit.job.0);
    let discarded: Vec<&Commit> = batch.finishing().filter(|c| c.is_discarded()).filter(is_kept).collect();
    discard(store, on, &discarded).await?;
    supersede(store, on, batch, moved).await
}

/// Failed jobs that an error rule discards.
async fn discard(store: &Inner, on: On<'_>, commits: &[&Commit]) -> Result<(), StoreError> {
    if commits.is_empty() {
        return Ok(());
    }
    let now = store.now_on(on).await?.as_millis();
    let ids: Vec<i64> = commits.iter().map(|commit| commit.job.0).collect();
    let queues: Vec<i64> = commits.iter().map(|commit| commit.queue.0).collect();
    on.query(Sql::Discard, &[&now, &ids, &DISCARDED_BY_RULE]).await?;
    count_undead(store, on, &queues).await
}

/// Failed runs take the places of those that failed before them.
async fn supersede(store: &Inner, on: On<'_>, batch: &Batch<'_>, moved: &Moved) -> Result<(), StoreError> {
    // What an error rule discards is no dead letter.
    let has_failed = |commit: &&Commit| commit.transition.next.state() == State::Failed && !commit.is_discarded();
    let is_kept = |id: i64| moved.ids.contains(&id) && !moved.dropped.contains(&id);
    let run = |commit: &Commit| Some((commit.schedule?, commit.job));
    let mut runs: Vec<(JobId, JobId)> = batch.finishing().filter(has_failed).filter_map(run).collect();
    runs.retain(|(_, run)| is_kept(run.0));
    // All transactions lock schedules in the same order.
    runs.sort_unstable();
    let mut undead = Vec::new();
    for (schedule, run) in runs {
        undead.extend(schedules::run_failed(store, on, schedule, run).await?);
    }
    count_undead(store, on, &undead).await
}

/// Deletes finished jobs that are not kept. `dead` has the queue of each that failed.
async fn forget(store: &Inner, on: On<'_>, ids: &[i64], dead: &[i64]) -> Result<(), StoreError> {
    if ids.is_empty() {
        return Ok(());
    }
    on.query(Sql::Forget, &[&ids]).await?;
    count_undead(store, on, dead).await
}

/// Counts dead letters that are none any more, by the queue of each.
pub(in crate::store::postgres) async fn count_undead(
    store: &Inner,
    on: On<'_>,
    queues: &[i64],
) -> Result<(), StoreError> {
    if queues.is_empty() {
        return Ok(());
    }
    on.query(Sql::CountUndead, &[&store.fixed(), &queues]).await.map(drop)
}

/// Deletes spent one-shot schedules whose run is among these jobs.
async fn end_one_shots(on: On<'_>, jobs: &[i64]) -> Result<(), StoreError> {
    if jobs.is_empty() {
        return Ok(());
    }
    on.query(Sql::OneShotsEnd, &[&jobs]).await.map(drop)
}

async fn outcomes(on: On<'_>, batch: &Batch<'_>, places: &[usize]) -> Result<Vec<Committed>, StoreError> {
    if places.is_empty() {
        return Ok(Vec::new());
    }
    let all = || places.iter().map(|place| &batch.commits[*place]);
    let ids: Vec<i64> = all().map(|commit| commit.job.0).collect();
    let attempts: Vec<i32> = all().map(|commit| commit.attempt as i32).collect();
    let leases: Vec<i64> = all().map(|commit| commit.lease.0).collect();
    let statuses: Vec<&str> = all().map(|commit| commit.transition.status.as_str()).collect();
    let rows = on.query(Sql::RecordedOutcome, &[&ids, &attempts, &leases, &statuses]).await?;
    let mut outcomes = vec![Committed::Stale; places.len()];
    for row in &rows {
        let c = Columns::new(row);
        let nth = c.get::<i64>("place")? as usize - 1;
        let (is_recorded, is_repeated): (bool, bool) = (c.get("is_recorded")?, c.get("is_repeated")?);
        let is_held = batch.fence.held(&batch.commits[places[nth]]).is_some();
        outcomes[nth] = match (is_recorded, is_repeated) {
            (true, true) => Committed::Repeated,
            // The lease holds the attempt, and it has not ended: only a cancel keeps a commit from being applied.
            (false, _) if is_held => Committed::CancelRequested,
            (true | false, _) => Committed::Stale,
        };
    }
    Ok(outcomes)
}

/// Ends waiting jobs, locked by this transaction, without an attempt, and stores the deliveries that report it.
pub(in crate::store::postgres) async fn end_waiting(
    store: &Inner,
    on: On<'_>,
    endings: &[(Job, Next)],
    deliveries: &[NewJob],
    numbers: &[Numbers],
) -> Result<(), StoreError> {
    if endings.is_empty() {
        return Ok(());
    }
    let retentions = retention::retentions(store, on, endings.iter().map(|(job, _)| job.queue_id.0)).await?;
    let mut rows = Endings::default();
    let mut tallies = Tallies::default();
    let (mut dropped, mut dead) = (Vec::new(), Vec::new());
    for (job, next) in endings {
        rows.push(job, *next);
        let failed = i64::from(next.state() == State::Failed);
        tallies.add(job.queue_id, &job.kind, Tally { failed, cancelled: 1 - failed, ..Tally::default() });
        if retentions[&job.queue_id.0].1.of(next.state()) == Keep::Drop {
            dropped.push(job.id.0);
            dead.extend((failed > 0).then_some(job.queue_id.0));
        }
    }
    let runs: Vec<i64> = endings.iter().filter(|(job, _)| job.schedule.is_some()).map(|(job, _)| job.id.0).collect();
    let places: Vec<usize> = (0..deliveries.len()).collect();
    on.query(Sql::EndWaiting, &at(&store.fixed(), rows.params())).await?;
    end_one_shots(on, &runs).await?;
    forget(store, on, &dropped, &dead).await?;
    let stored = enqueue::insert(store, on, deliveries, numbers, &places);
    try_join(enqueue::tally(store, on, &tallies), stored).await.map(drop)
}

/// Commits that run in one set of statements.
pub(super) struct Batch<'a> {
    commits: &'a [Commit],
    numbers: &'a [Numbers],
    /// Where each commit's follow-ups begin in `numbers`.
    firsts: &'a [usize],
    round: &'a [usize],
    fence: &'a Fence,
}

impl Batch<'_> {
    pub(super) fn finishing(&self) -> impl Iterator<Item = &Commit> {
        self.round.iter().map(|place| &self.commits[*place]).filter(|c| c.transition.next.wait().is_none())
    }

    /// The commits whose lease holds their attempt, unless a cancel was requested that they do not honour. In id order:
    /// all transactions insert in the same order.
    pub(super) fn held(&self) -> impl Iterator<Item = (&Commit, Held)> {
        let held = |commit| self.fence.held(commit).map(|held| (commit, held));
        let mut all: Vec<(&Commit, Held)> = self.round.iter().filter_map(|place| held(&self.commits[*place])).collect();
        all.retain(|(commit, held)| commit.stands_despite_cancel() || !held.is_cancelled);
        all.sort_by_key(|(commit, _)| commit.job);
        all.into_iter()
    }
}

/// Places by round: a set statement takes each job once, so a second commit of a job waits for the next round.
fn rounds(commits: &[Commit]) -> Vec<Vec<usize>> {
    let mut rounds: Vec<Vec<usize>> = Vec::new();
    let mut seen: HashMap<JobId, usize> = HashMap::with_capacity(commits.len());
    for (place, commit) in commits.iter().enumerate() {
        let nth = seen.entry(commit.job).or_default();
        if rounds.len() == *nth {
            rounds.push(Vec::with_capacity(commits.len()));
        }
        rounds[*nth].push(place);
        *nth += 1;
    }
    rounds
}

/// Follow-ups of applied commits.
#[derive(Default)]
struct FollowUps {
    places: Vec<usize>,
    jobs: Vec<NewJob>,
    numbers: Vec<Numbers>,
}

impl FollowUps {
    fn push(&mut self, place: usize, job: &NewJob, numbers: Numbers) {
        self.places.push(place);
        self.jobs.push(job.clone());
        self.numbers.push(numbers);
    }

    async fn store(&self, inner: &Inner, on: On<'_>) -> Result<Vec<(usize, JobId)>, StoreError> {
        let all: Vec<usize> = (0..self.jobs.len()).collect();
        let stored = enqueue::insert(inner, on, &self.jobs, &self.numbers, &all).await?;
        Ok(self.places.iter().copied().zip(stored.into_iter().map(|stored| stored.id)).collect())
    }
}
