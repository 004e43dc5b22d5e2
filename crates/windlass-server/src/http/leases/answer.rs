//! What a remote worker tells about its leases: still at work, done, failed. Each item is answered by itself.

use super::read::{self, Item, LeaseAction};
use crate::http::app::App;
use crate::http::auth::{May, Work};
use crate::http::input::body::Body;
use crate::http::output::problem::{Problem, ProblemBody};
use axum::Json;
use axum::extract::State;
use serde::Serialize;
use std::collections::HashSet;
use utoipa::ToSchema;
use windlass::job::{ClaimedJob, Job, LeaseId};
use windlass::leases::transition::{Trace, commit_of};
use windlass::store::{Commit, Committed, Scope, WorkerId};

/// Results of attempts.
#[derive(Debug, ToSchema)]
#[schema(as = LeaseResults, rename_all = "camelCase")]
#[expect(dead_code, reason = "documents what `items` accepts")]
pub(crate) struct ResultsBody {
    worker: String,
    results: Vec<ResultBody>,
    /// Of `extend`: how long from now; 30000 if absent.
    lease_ms: Option<u64>,
}

/// One result. `note` and `result` belong to `complete`, the fields below them to `fail`.
#[derive(Debug, ToSchema)]
#[schema(as = LeaseResult, rename_all = "camelCase")]
#[expect(dead_code, reason = "documents what `items` accepts")]
pub(crate) struct ResultBody {
    id: i64,
    attempt: u32,
    lease: String,
    note: Option<String>,
    /// JSON up to 64 KiB, kept with the job.
    #[schema(value_type = Option<Object>)]
    result: Option<serde_json::Value>,
    /// The failure's class, such as `ValidationError`; `Error` if absent.
    class: Option<String>,
    message: Option<String>,
    /// Never try again.
    permanent: Option<bool>,
    /// Wait at least this long.
    retry_after: Option<String>,
    /// Wait exactly this long.
    retry_in: Option<String>,
    /// No failure: try again after this long.
    snooze: Option<String>,
    /// No failure: the worker stops and gives the job back.
    release: Option<bool>,
    /// With `release`: false if the job's work never began.
    started: Option<bool>,
    /// End the job as cancelled.
    cancel: Option<bool>,
}

/// What became of each item.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Answers {
    results: Vec<Answer>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Answer {
    id: i64,
    attempt: u32,
    /// `ok`; `stale`: the lease was lost, nothing changed; `cancel`: stop working on it.
    result: &'static str,
}

/// Extend leases.
#[utoipa::path(post, path = "/api/v1/leases/extend", tag = "remote workers", request_body = ResultsBody,
    responses((status = 200, body = Answers), (status = 422, body = ProblemBody)))]
pub(crate) async fn extend(State(app): State<App>, _caller: May<Work>, body: Body) -> Result<Json<Answers>, Problem> {
    let (worker, lease_for, items) = read::items(&body, LeaseAction::Extend)?;
    let leases: Vec<LeaseId> = items.iter().map(|item| item.lease).collect();
    let renewed = app.store().renew(&worker, leases, lease_for).await;
    // While workers cannot renew or commit, nobody's lease may be taken for lost.
    app.windlass().record_contact(&renewed);
    let renewed = renewed?;
    let word = |item: &Item| {
        if renewed.lost.contains(&item.lease) {
            "stale"
        } else if renewed.cancel_requested.contains(&item.job) {
            "cancel"
        } else {
            "ok"
        }
    };
    Ok(Json(answers(&items, items.iter().map(word))))
}

/// Tell that attempts succeeded.
#[utoipa::path(post, path = "/api/v1/leases/complete", tag = "remote workers", request_body = ResultsBody,
    responses((status = 200, body = Answers), (status = 422, body = ProblemBody)))]
pub(crate) async fn complete(State(app): State<App>, _caller: May<Work>, body: Body) -> Result<Json<Answers>, Problem> {
    let (worker, _, items) = read::items(&body, LeaseAction::Complete)?;
    finish(&app, &worker, items).await.map(Json)
}

/// Tell that attempts failed, or give jobs back.
#[utoipa::path(post, path = "/api/v1/leases/fail", tag = "remote workers", request_body = ResultsBody,
    responses((status = 200, body = Answers), (status = 422, body = ProblemBody)))]
pub(crate) async fn fail(State(app): State<App>, _caller: May<Work>, body: Body) -> Result<Json<Answers>, Problem> {
    let (worker, _, items) = read::items(&body, LeaseAction::Fail)?;
    finish(&app, &worker, items).await.map(Json)
}

async fn finish(app: &App, worker: &WorkerId, items: Vec<Item>) -> Result<Answers, Problem> {
    let mut jobs = Vec::with_capacity(items.len());
    for item in &items {
        jobs.push(find(app, item).await?);
    }
    let mut decided: Vec<Option<Commit>> = items
        .iter()
        .zip(&jobs)
        .map(|(item, job)| job.as_ref().map(|found| decide(app, worker, item, &found.job)))
        .collect();
    let held: HashSet<LeaseId> =
        jobs.iter().flatten().filter_map(|found| found.held.then_some(found.job.lease)).collect();
    let mut committed = commit(app, decided.clone(), &held).await?;
    let asked: Vec<usize> = (0..items.len()).filter(|i| committed[*i] == Some(Committed::CancelRequested)).collect();
    if !asked.is_empty() {
        // A cancel was requested meanwhile: decide again, knowing it.
        for i in &asked {
            let job = jobs[*i].as_ref().map(|found| found.job.with_cancel_requested());
            decided[*i] = job.map(|job| decide(app, worker, &items[*i], &job));
        }
        let again = asked.iter().map(|i| decided[*i].clone()).collect();
        for (i, result) in asked.iter().zip(commit(app, again, &held).await?) {
            committed[*i] = result;
        }
    }
    for ((found, commit), result) in jobs.iter().zip(&decided).zip(&committed) {
        if let (Some(found), Some(commit), Some(Committed::Applied(_))) = (found, commit, result) {
            app.windlass().remote_ended(&worker.0, &found.job, commit).await;
        }
    }
    items.iter().for_each(|item| app.leased().forget(item.lease));
    let word = |result: &Option<Committed>| match result {
        Some(Committed::Applied(_) | Committed::Repeated) => "ok",
        Some(Committed::Stale | Committed::CancelRequested) | None => "stale",
    };
    Ok(answers(&items, committed.iter().map(word)))
}

/// A job that a result is about.
struct Found {
    job: ClaimedJob,
    /// Whether the lease was the job's when we looked: only then may its row go.
    held: bool,
}

/// The job of an item: as this server handed it out, as the store says the lease holds it, or (ended before) as it is.
async fn find(app: &App, item: &Item) -> Result<Option<Found>, Problem> {
    let is_it = |job: &ClaimedJob| job.id == item.job && job.attempt == item.attempt;
    if let Some(job) = app.leased().find(item.lease).filter(is_it) {
        return Ok(Some(Found { job, held: true }));
    }
    if let Some(job) = app.store().held(vec![item.lease]).await?.into_iter().find(is_it) {
        return Ok(Some(Found { job, held: true }));
    }
    let job = app.store().job(&Scope::All, item.job).await?;
    let job = job.map(|job| ClaimedJob { job: Job { attempt: item.attempt, ..job }, lease: item.lease });
    Ok(job.map(|job| Found { job, held: false }))
}

fn decide(app: &App, worker: &WorkerId, item: &Item, job: &ClaimedJob) -> Commit {
    let now = app.now();
    let trace = Trace {
        started_at: job.claimed_at.unwrap_or(now),
        finished_at: now,
        worker: worker.to_string(),
        note: item.note.clone(),
        result: item.result.clone(),
    };
    commit_of(job, &item.outcome, trace, app.random().roll())
}

/// Commits what there is, and ends the leases of what was applied.
async fn commit(
    app: &App,
    decided: Vec<Option<Commit>>,
    held: &HashSet<LeaseId>,
) -> Result<Vec<Option<Committed>>, Problem> {
    let present: Vec<Commit> = decided.iter().flatten().cloned().collect();
    if present.is_empty() {
        return Ok(vec![None; decided.len()]);
    }
    // What a late cancel cannot turn ends its lease in the same commit; the others' leases must outlive a second decision.
    let is_sure = present.iter().all(Commit::stands_despite_cancel);
    let leases: Vec<LeaseId> = present.iter().map(|commit| commit.lease).collect();
    let ended = if is_sure { leases.iter().copied().filter(|l| held.contains(l)).collect() } else { Vec::new() };
    let results = app.store().commit(present, ended).await;
    app.windlass().record_contact(&results);
    let results = results?;
    if !is_sure {
        let is_over = |result: &Committed| matches!(result, Committed::Applied(_) | Committed::Repeated);
        let over = leases.into_iter().zip(&results).filter(|(lease, result)| held.contains(lease) && is_over(result));
        app.store().commit(Vec::new(), over.map(|(lease, _)| lease).collect()).await?;
    }
    let mut results = results.into_iter();
    Ok(decided.iter().map(|commit| commit.as_ref().and_then(|_| results.next())).collect())
}

fn answers(items: &[Item], words: impl Iterator<Item = &'static str>) -> Answers {
    let answer = |(item, result): (&Item, &'static str)| Answer { id: item.job.0, attempt: item.attempt, result };
    Answers { results: items.iter().zip(words).map(answer).collect() }
}
