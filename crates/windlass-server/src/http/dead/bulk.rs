//! Replay and discard dead letters: by ids, or all that match a filter.

use crate::http::app::App;
use crate::http::auth::{Caller, Enqueue, May};
use crate::http::body::Body;
use crate::http::fields::{Faults, Fields};
use crate::http::problem::{Problem, ProblemBody};
use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;
use windlass::store::{Discard, Discarded, JobFilter, MAX_BATCH, Order, Page, Replay, ReplayOnly, Replayed};
use windlass_core::job::{Kind, QueueName, Tenant};
use windlass_core::{JobId, Millis};

/// The fastest rate that spaces jobs, in jobs per second.
const MAX_RATE: u64 = 1000;
/// Longest reason of a discard, in bytes.
const MAX_REASON: usize = 1000;

/// Which dead letters.
#[derive(Debug, ToSchema)]
#[schema(as = DeadLetterChoice)]
#[expect(dead_code, reason = "documents what `replay` and `discard` accept")]
pub(crate) struct ChoiceBody {
    /// Up to 10,000 ids; or `filter`.
    ids: Option<Vec<i64>>,
    /// `{tenant, queue, kind, class, since, fingerprint}`; `{}` means all.
    #[schema(value_type = Option<Object>)]
    filter: Option<serde_json::Value>,
    /// Replay: jobs per second, 1 to 1000; all at once if absent.
    rate: Option<u64>,
    /// Discard: why.
    reason: Option<String>,
}

/// What became of the dead letters.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BulkResult {
    /// Sent again, or discarded.
    done: u64,
    /// True if the filter matches more than one request takes (10,000): repeat it.
    more: bool,
    /// For each id given: queued, `already_live`, running, discarded, `not_dead` or `not_found`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    results: Vec<IdResult>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct IdResult {
    id: i64,
    result: &'static str,
}

/// Send dead letters again, all in one commit; `rate` spaces them.
#[utoipa::path(post, path = "/api/v1/dead-letters/replay", tag = "dead letters", request_body = ChoiceBody,
    responses((status = 200, body = BulkResult), (status = 422, body = ProblemBody)))]
pub(crate) async fn replay(
    State(app): State<App>,
    caller: May<Enqueue>,
    body: Body,
) -> Result<Json<BulkResult>, Problem> {
    let (choice, rate) = {
        let faults = Faults::default();
        let Some(fields) = Fields::open(body.json()?, "", &faults) else { return Err(faults.problem()) };
        fields.refuse_unknown(&["ids", "filter", "rate"]);
        let choice = Choice::read(&fields, &caller)?;
        let rate = fields.whole("rate", 1..=MAX_RATE);
        faults.finish()?;
        (choice, rate)
    };
    let (ids, more, is_listed) = choice.ids(&app, &caller).await?;
    let spacing = rate.map_or(Millis::ZERO, |rate| Millis::new(1000 / rate));
    let replay = Replay { ids: ids.clone(), only: ReplayOnly::DeadLetters, spacing, by: caller.by.clone() };
    let replayed =
        if ids.is_empty() { Vec::new() } else { app.windlass().replay_in(&caller.tenants(), replay).await? };
    let done = replayed.iter().filter(|result| **result == Replayed::Queued).count() as u64;
    let word = |result: &Replayed| match result {
        Replayed::Queued => "queued",
        Replayed::AlreadyLive => "already_live",
        Replayed::Running => "running",
        Replayed::NotFound => "not_found",
    };
    Ok(Json(BulkResult { done, more, results: told(is_listed, &ids, replayed.iter().map(word)) }))
}

/// Declare dead letters dealt with. They stay in the archive.
#[utoipa::path(post, path = "/api/v1/dead-letters/discard", tag = "dead letters", request_body = ChoiceBody,
    responses((status = 200, body = BulkResult), (status = 422, body = ProblemBody)))]
pub(crate) async fn discard(
    State(app): State<App>,
    caller: May<Enqueue>,
    body: Body,
) -> Result<Json<BulkResult>, Problem> {
    let (choice, reason) = {
        let faults = Faults::default();
        let Some(fields) = Fields::open(body.json()?, "", &faults) else { return Err(faults.problem()) };
        fields.refuse_unknown(&["ids", "filter", "reason"]);
        let choice = Choice::read(&fields, &caller)?;
        let reason = fields.parsed("reason", |text| {
            let is_clean = text.len() <= MAX_REASON && !text.contains('\0');
            if is_clean { Ok(text.to_owned()) } else { Err(format!("must be at most {MAX_REASON} bytes without NUL")) }
        });
        faults.finish()?;
        (choice, reason.unwrap_or_default())
    };
    let (ids, more, is_listed) = choice.ids(&app, &caller).await?;
    let discard = Discard { ids: ids.clone(), reason, by: caller.by.clone() };
    let results = if ids.is_empty() { Vec::new() } else { app.store().discard(&caller.tenants(), discard).await? };
    let done = results.iter().filter(|result| **result == Discarded::Done).count() as u64;
    let word = |result: &Discarded| match result {
        Discarded::Done => "discarded",
        Discarded::NotDead => "not_dead",
        Discarded::NotFound => "not_found",
    };
    Ok(Json(BulkResult { done, more, results: told(is_listed, &ids, results.iter().map(word)) }))
}

/// Only ids the caller gave are told one by one.
fn told(is_listed: bool, ids: &[JobId], words: impl Iterator<Item = &'static str>) -> Vec<IdResult> {
    if !is_listed {
        return Vec::new();
    }
    ids.iter().zip(words).map(|(id, result)| IdResult { id: id.0, result }).collect()
}

/// Which dead letters are meant.
#[derive(Debug)]
enum Choice {
    Ids(Vec<JobId>),
    Filter(Box<JobFilter>),
    /// Wrong, and told.
    None,
}

impl Choice {
    fn read(fields: &Fields<'_>, caller: &Caller) -> Result<Self, Problem> {
        match (fields.has("ids"), fields.has("filter")) {
            (true, false) => Ok(Self::Ids(read_ids(fields))),
            (false, true) => {
                let Some(filter) = fields.object("filter") else { return Ok(Self::None) };
                read_filter(&filter, caller).map(|filter| Self::Filter(Box::new(filter)))
            }
            (true, true) | (false, false) => {
                fields.fault("ids", "or `filter` says which dead letters; give one of them");
                Ok(Self::None)
            }
        }
    }

    /// The ids, oldest first; whether a filter matches more; whether they were given one by one.
    async fn ids(self, app: &App, caller: &Caller) -> Result<(Vec<JobId>, bool, bool), Problem> {
        match self {
            Self::None => Ok((Vec::new(), false, true)),
            Self::Ids(ids) => Ok((ids, false, true)),
            Self::Filter(filter) => {
                let page = Page { after: None, limit: MAX_BATCH as u32, order: Order::OldestFirst };
                let jobs = app.store().jobs(&caller.tenants(), &filter, page).await?;
                let more = jobs.len() == MAX_BATCH;
                Ok((jobs.iter().map(|job| job.id).collect(), more, false))
            }
        }
    }
}

fn read_ids(fields: &Fields<'_>) -> Vec<JobId> {
    let mut ids = Vec::new();
    for (index, raw) in fields.list("ids", MAX_BATCH).unwrap_or_default().into_iter().enumerate() {
        match raw.get().parse::<i64>() {
            Ok(id) if id > 0 => ids.push(JobId(id)),
            Ok(_) | Err(_) => fields.faults().add(format!("/ids/{index}"), "must be an id, a whole number"),
        }
    }
    ids
}

fn read_filter(filter: &Fields<'_>, caller: &Caller) -> Result<JobFilter, Problem> {
    filter.refuse_unknown(&["tenant", "queue", "kind", "class", "since", "fingerprint"]);
    Ok(JobFilter {
        tenant: caller.narrowed(filter.parsed("tenant", Tenant::new))?,
        queue: filter.parsed("queue", QueueName::new),
        kind: filter.parsed("kind", Kind::new),
        error_class: filter.text("class"),
        since: filter.moment("since"),
        fingerprint: filter.text("fingerprint"),
        dead_letters: true,
        ..JobFilter::default()
    })
}
