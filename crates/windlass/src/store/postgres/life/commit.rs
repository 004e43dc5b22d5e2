//! Commit: transitions by set statements, fenced, with attempts, tallies and follow-ups in one transaction.

use crate::job::{Job, LeaseId, NewJob};
use crate::store::postgres::Inner;
use crate::store::postgres::connection::pool::On;
use crate::store::postgres::life::enqueue;
use crate::store::postgres::life::names::{self, Numbers};
use crate::store::postgres::life::transitions::{Ending, Finishes, Successes, Waits};
use crate::store::postgres::statements::Sql;
use crate::store::postgres::statements::arrays::at;
use crate::store::postgres::statements::columns::Columns;
use crate::store::postgres::statements::row::Row;
use crate::store::postgres::upkeep::partitions::{self, Class};
use crate::store::postgres::upkeep::retention;
use crate::store::{Commit, Committed, Keep, StoreError};
use crate::tally::{Tallies, Tally};
use futures_util::future::{try_join3, try_join4};
use futures_util::join;
use std::collections::{HashMap, HashSet};
use windlass_core::{JobId, Next, State};

pub(in crate::store::postgres) async fn commit(
    store: &Inner,
    commits: &[Commit],
    ended: &[LeaseId],
) -> Result<Vec<Committed>, StoreError> {
    partitions::finishing(store, || commit_once(store, commits, ended)).await
}

async fn commit_once(store: &Inner, commits: &[Commit], ended: &[LeaseId]) -> Result<Vec<Committed>, StoreError> {
    partitions::ensure_partitions(store, classes(commits)).await?;
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
    for round in rounds(commits) {
        let batch = Batch { commits, numbers, firsts: &firsts, round: &round };
        apply_round(store, on, &batch, &mut results).await?;
    }
    // A job that must be decided again still runs under its lease: without it, nobody would notice that its worker
    // died.
    let asked = results.iter().zip(commits).filter(|(result, _)| **result == Some(Committed::CancelRequested));
    let kept: Vec<LeaseId> = asked.map(|(_, commit)| commit.lease).collect();
    let ids: Vec<i64> = ended.iter().filter(|lease| !kept.contains(lease)).map(|lease| lease.0).collect();
    if !ids.is_empty() {
        on.query(Sql::LeasesEnd, &[&ids]).await?;
    }
    Ok(results.into_iter().map(|result| result.unwrap_or(Committed::Stale)).collect())
}

async fn apply_round(
    store: &Inner,
    on: On<'_>,
    batch: &Batch<'_>,
    results: &mut [Option<Committed>],
) -> Result<(), StoreError> {
    let (finished, waiting) = move_jobs(store, on, batch).await?;
    let mut tallies = Tallies::default();
    let mut follow_ups = FollowUps::default();
    let mut unmoved = Vec::new();
    for place in batch.round {
        let commit = &batch.commits[*place];
        if !finished.contains_key(&commit.job.0) && !waiting.contains(&commit.job.0) {
            unmoved.push(*place);
            continue;
        }
        tallies.add(commit.queue, &commit.kind, Tally::of(commit));
        for (nth, job) in commit.follow_ups.iter().enumerate() {
            follow_ups.push(*place, job, batch.numbers[batch.firsts[*place] + nth]);
        }
        results[*place] = Some(Committed::Applied(Vec::new()));
    }
    let schedules: Vec<i64> = finished.values().copied().flatten().collect();
    let ((), stored, (), outcomes) = try_join4(
        enqueue::tally(store, on, &tallies),
        follow_ups.store(store, on),
        end_one_shots(on, &schedules),
        outcomes(on, batch.commits, &unmoved),
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

/// Runs the statements that move jobs: the ids that finished, with their schedules, and those that wait.
async fn move_jobs(
    store: &Inner,
    on: On<'_>,
    batch: &Batch<'_>,
) -> Result<(HashMap<i64, Option<i64>>, HashSet<i64>), StoreError> {
    let retentions = retention::retentions(store, on, batch.finishing().map(|commit| commit.queue.0)).await?;
    let reported = earlier_errors(store, on, batch).await?;
    let mut finishes = Finishes::default();
    let mut successes = Successes::default();
    let mut waits = Waits::default();
    // In id order: all transactions lock the same rows in the same order.
    let mut sorted: Vec<&Commit> = batch.round.iter().map(|place| &batch.commits[*place]).collect();
    sorted.sort_by_key(|commit| commit.job);
    for commit in sorted {
        match commit.transition.next {
            Next::Wait { state, due_at, delay } => waits.push(commit, state, due_at, delay),
            next @ (Next::Succeeded | Next::Failed(_) | Next::Cancelled) => {
                let known = &retentions[&commit.queue.0];
                if commit.is_plain() && known.1.succeeded != Keep::Drop {
                    successes.push(commit);
                    continue;
                }
                let own = (commit.error_class.as_deref(), commit.error.as_deref());
                let earlier = reported.get(&commit.job).map(|(class, error)| (class.as_deref(), error.as_deref()));
                finishes.end(&Ending {
                    id: commit.job,
                    attempt: commit.attempt,
                    lease: Some(commit.lease),
                    stands: commit.stands_despite_cancel(),
                    next,
                    failures: commit.transition.failures,
                    crashes: commit.transition.crashes,
                    keep: known.1.of(next.state()),
                    error: if own.0.is_some() { own } else { earlier.unwrap_or(own) },
                    kind: &commit.kind,
                    queue: &known.0,
                });
                finishes.with_attempt(commit);
            }
        }
    }
    let (mut finished, succeeded, waiting) =
        try_join3(run_finishes(store, on, &finishes), run_successes(store, on, &successes), run_waits(on, &waits))
            .await?;
    finished.extend(succeeded);
    Ok((finished, waiting))
}

async fn run_finishes(
    store: &Inner,
    on: On<'_>,
    finishes: &Finishes<'_>,
) -> Result<HashMap<i64, Option<i64>>, StoreError> {
    if finishes.id.is_empty() {
        return Ok(HashMap::new());
    }
    let now = store.fixed();
    finished(&on.query(Sql::Finish, &at(&now, finishes.params())).await?)
}

async fn run_successes(
    store: &Inner,
    on: On<'_>,
    successes: &Successes<'_>,
) -> Result<HashMap<i64, Option<i64>>, StoreError> {
    if successes.id.is_empty() {
        return Ok(HashMap::new());
    }
    let now = store.fixed();
    finished(&on.query(Sql::Succeed, &at(&now, successes.params())).await?)
}

/// What earlier attempts recorded, for the rare dead letter whose last attempt recorded nothing.
async fn earlier_errors(
    store: &Inner,
    on: On<'_>,
    batch: &Batch<'_>,
) -> Result<HashMap<JobId, (Option<String>, Option<String>)>, StoreError> {
    let silent = |commit: &&Commit| matches!(commit.transition.next, Next::Failed(_)) && commit.error_class.is_none();
    let ids: Vec<i64> = batch.finishing().filter(silent).map(|commit| commit.job.0).collect();
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let rows = on.query(Sql::LiveLock, &[&ids]).await?;
    let jobs = names::jobs_in(store, on, &rows).await?;
    Ok(jobs.into_iter().map(|job| (job.id, (job.error_class, job.error))).collect())
}

async fn end_one_shots(on: On<'_>, schedules: &[i64]) -> Result<(), StoreError> {
    if schedules.is_empty() {
        return Ok(());
    }
    on.query(Sql::OneShotsEnd, &[&schedules]).await.map(drop)
}

async fn outcomes(on: On<'_>, commits: &[Commit], places: &[usize]) -> Result<Vec<Committed>, StoreError> {
    if places.is_empty() {
        return Ok(Vec::new());
    }
    let all = || places.iter().map(|place| &commits[*place]);
    let ids: Vec<i64> = all().map(|commit| commit.job.0).collect();
    let attempts: Vec<i32> = all().map(|commit| commit.attempt as i32).collect();
    let leases: Vec<i64> = all().map(|commit| commit.lease.0).collect();
    let statuses: Vec<&str> = all().map(|commit| commit.transition.status.as_str()).collect();
    let rows = on.query(Sql::RecordedOutcome, &[&ids, &attempts, &leases, &statuses]).await?;
    let mut outcomes = vec![Committed::Stale; places.len()];
    for row in &rows {
        let c = Columns::new(row);
        let place: i64 = c.get("place")?;
        let (is_cancel, is_repeated): (bool, bool) = (c.get("cancel")?, c.get("repeated")?);
        outcomes[place as usize - 1] = match (is_cancel, is_repeated) {
            (true, _) => Committed::CancelRequested,
            (false, true) => Committed::Repeated,
            (false, false) => Committed::Stale,
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
    let retentions = retention::retentions(store, on, endings.iter().map(|(job, _)| job.queue_id.0)).await?;
    let mut finishes = Finishes::default();
    let mut tallies = Tallies::default();
    for (job, next) in endings {
        finishes.end(&Ending {
            id: job.id,
            attempt: job.attempt,
            lease: None,
            stands: true,
            next: *next,
            failures: job.failures,
            crashes: job.crashes,
            keep: retentions[&job.queue_id.0].1.of(next.state()),
            error: (job.error_class.as_deref(), job.error.as_deref()),
            kind: &job.kind,
            queue: &job.queue,
        });
        finishes.without_attempt();
        let failed = i64::from(next.state() == State::Failed);
        tallies.add(job.queue_id, &job.kind, Tally { failed, cancelled: 1 - failed, ..Tally::default() });
    }
    let schedules: Vec<i64> = endings.iter().filter_map(|(job, _)| job.schedule).map(|id| id.0).collect();
    let places: Vec<usize> = (0..deliveries.len()).collect();
    run_finishes(store, on, &finishes).await?;
    try_join4(
        enqueue::tally(store, on, &tallies),
        enqueue::insert(store, on, deliveries, numbers, &places),
        end_one_shots(on, &schedules),
        async { Ok(()) },
    )
    .await
    .map(drop)
}

/// Ids that finished, with their schedules.
fn finished(rows: &[Row]) -> Result<HashMap<i64, Option<i64>>, StoreError> {
    let pair = |row| {
        let c = Columns::new(row);
        Ok((c.get("id")?, c.get("schedule_id")?))
    };
    rows.iter().map(pair).collect()
}

async fn run_waits(on: On<'_>, waits: &Waits<'_>) -> Result<HashSet<i64>, StoreError> {
    if waits.id.is_empty() {
        return Ok(HashSet::new());
    }
    let rows = on.query(Sql::Wait, &waits.params()).await?;
    rows.iter().map(|row| Columns::new(row).get("id")).collect()
}

/// The archive's parts that these commits need.
pub(in crate::store::postgres) fn classes(commits: &[Commit]) -> impl Iterator<Item = Class> + use<> {
    let is_needed =
        |class: &Class| commits.iter().any(|commit| Class::of(commit.transition.next.state()) == Some(*class));
    let needed: Vec<Class> = Class::ALL.into_iter().filter(is_needed).collect();
    needed.into_iter()
}

/// Commits that run in one set of statements.
struct Batch<'a> {
    commits: &'a [Commit],
    numbers: &'a [Numbers],
    /// Where each commit's follow-ups begin in `numbers`.
    firsts: &'a [usize],
    round: &'a [usize],
}

impl Batch<'_> {
    fn finishing(&self) -> impl Iterator<Item = &Commit> {
        self.round.iter().map(|place| &self.commits[*place]).filter(|c| c.transition.next.wait().is_none())
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
