//! Replay and discard dead letters: by ids, or all that match a filter.

use crate::http::app::App;
use crate::http::auth::{Caller, Manage, May};
use crate::http::input::body::Body;
use crate::http::input::fields::{Faults, Fields};
use crate::http::openapi::types;
use crate::http::output::problem::{Problem, ProblemBody};
use crate::http::output::view::moment;
use axum::Json;
use axum::extract::State;
use serde::Serialize;
use std::num::NonZeroU32;
use utoipa::ToSchema;
use windlass::client::{DeadLetters, Discarded, JobFilter, MAX_BATCH, Replayed, Spacing};
use windlass_core::JobId;
use windlass_core::job::{Kind, QueueName, Tenant};

/// The highest rate of a replay, in jobs per second.
const MAX_RATE: u64 = 1000;
/// The longest reason for a discard, in bytes.
const MAX_REASON: usize = 1000;

/// Which dead letters to replay: `ids` or `filter`.
#[derive(Debug, ToSchema)]
#[schema(as = DeadLetterReplay, example = json!({"filter": {"queue": "email"}, "rate": 10}))]
#[expect(dead_code, reason = "documents what `replay` accepts")]
pub(crate) struct ReplayBody {
    /// Up to 10,000 ids; or `filter`.
    ids: Option<Vec<i64>>,
    /// `{tenant, queue, kind, class, since, fingerprint}`; an empty one needs `all`.
    #[schema(value_type = Option<types::DeadLetterFilter>)]
    filter: Option<serde_json::Value>,
    /// Confirms that an empty filter means every dead letter.
    all: Option<bool>,
    /// Jobs per second; all at once if absent.
    #[schema(minimum = 1, maximum = 1000)]
    rate: Option<u64>,
}

/// Which dead letters to discard: `ids` or `filter`.
#[derive(Debug, ToSchema)]
#[schema(as = DeadLetterDiscard, example = json!({"ids": [42], "reason": "the customer left"}))]
#[expect(dead_code, reason = "documents what `discard` accepts")]
pub(crate) struct DiscardBody {
    /// Up to 10,000 ids; or `filter`.
    ids: Option<Vec<i64>>,
    /// `{tenant, queue, kind, class, since, fingerprint}`; an empty one needs `all`.
    #[schema(value_type = Option<types::DeadLetterFilter>)]
    filter: Option<serde_json::Value>,
    /// Confirms that an empty filter means every dead letter.
    all: Option<bool>,
    /// Why, up to 1000 bytes.
    #[schema(max_length = 1000)]
    reason: Option<String>,
}

/// The result of a replay or discard.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BulkResult {
    /// How many were replayed or discarded.
    done: u64,
    /// True if the filter may match more than the 10,000 of one request: repeat the request. With `rate`, each
    /// repetition continues where the last one ended.
    more: bool,
    /// With `rate`: when the last replayed job is due.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_due_at: Option<String>,
    /// For each id given: queued, `already_live`, running, discarded, `not_dead` or `not_found`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    results: Vec<IdResult>,
}

/// The result for one id.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct IdResult {
    id: i64,
    result: &'static str,
}

/// Replay dead letters, all in one commit; `rate` spreads them over time.
///
/// With a filter, the oldest job is sent first. A request with the same filter and rate continues where the previous
/// one ended. A filter that matches more than 10,000 is therefore one sequence, even after interruptions. No dead
/// letter is sent twice.
#[utoipa::path(post, path = "/api/v1/dead-letters/replay", operation_id = "replayDeadLetters", tag = "dead letters", request_body = ReplayBody,
    responses((status = 200, body = BulkResult), (status = 422, body = ProblemBody)))]
pub(crate) async fn replay(
    State(app): State<App>,
    caller: May<Manage>,
    body: Body,
) -> Result<Json<BulkResult>, Problem> {
    let (choice, rate) = {
        let faults = Faults::default();
        let Some(fields) = Fields::open(body.json()?, "", &faults) else { return Err(faults.problem()) };
        fields.refuse_unknown(&["ids", "filter", "all", "rate"]);
        let choice = Choice::read(&fields, &caller)?;
        let rate = fields.whole("rate", 1..=MAX_RATE).and_then(|rate| NonZeroU32::new(rate as u32));
        faults.finish()?;
        (choice.ok_or_else(|| faults.problem())?, rate)
    };
    let spacing = rate.map_or(Spacing::NONE, Spacing::per_second);
    match choice {
        Choice::Ids(ids) => replay_ids(&app, &caller, ids, spacing).await,
        Choice::Filter(filter) => {
            let page = dead_letters(&app, &caller).replay(*filter, spacing).await?;
            let last_due_at = rate.and(moment(page.last_due));
            Ok(Json(BulkResult { done: page.done, more: page.more, last_due_at, results: Vec::new() }))
        }
    }
}

async fn replay_ids(
    app: &App,
    caller: &Caller,
    ids: Vec<JobId>,
    spacing: Spacing,
) -> Result<Json<BulkResult>, Problem> {
    let replayed = dead_letters(app, caller).replay_ids(ids.clone(), spacing).await?;
    let word = |result: &Replayed| match result {
        Replayed::Queued => "queued",
        Replayed::AlreadyLive => "already_live",
        Replayed::Running => "running",
        Replayed::NotDead => "not_dead",
        Replayed::NotFound => "not_found",
    };
    Ok(Json(BulkResult {
        done: replayed.results.iter().filter(|result| **result == Replayed::Queued).count() as u64,
        more: false,
        last_due_at: moment(replayed.last_due),
        results: id_results(&ids, replayed.results.iter().map(word)),
    }))
}

fn dead_letters<'a>(app: &'a App, caller: &Caller) -> DeadLetters<'a> {
    app.windlass().dead_letters().within(&caller.tenants()).by(&caller.by)
}

/// Declare dead letters dealt with. They stay in the archive.
#[utoipa::path(post, path = "/api/v1/dead-letters/discard", operation_id = "discardDeadLetters", tag = "dead letters", request_body = DiscardBody,
    responses((status = 200, body = BulkResult), (status = 422, body = ProblemBody)))]
pub(crate) async fn discard(
    State(app): State<App>,
    caller: May<Manage>,
    body: Body,
) -> Result<Json<BulkResult>, Problem> {
    let (choice, reason) = {
        let faults = Faults::default();
        let Some(fields) = Fields::open(body.json()?, "", &faults) else { return Err(faults.problem()) };
        fields.refuse_unknown(&["ids", "filter", "all", "reason"]);
        let choice = Choice::read(&fields, &caller)?;
        let reason = fields.parsed("reason", |text| {
            let is_clean = text.len() <= MAX_REASON && !text.contains('\0');
            if is_clean { Ok(text.to_owned()) } else { Err(format!("must be at most {MAX_REASON} bytes without NUL")) }
        });
        faults.finish()?;
        (choice.ok_or_else(|| faults.problem())?, reason.unwrap_or_default())
    };
    let dead = dead_letters(&app, &caller);
    let ids = match choice {
        Choice::Ids(ids) => ids,
        Choice::Filter(filter) => {
            let page = dead.discard(*filter, &reason).await?;
            return Ok(Json(BulkResult { done: page.done, more: page.more, last_due_at: None, results: Vec::new() }));
        }
    };
    let discarded = dead.discard_ids(ids.clone(), &reason).await?;
    let done = discarded.iter().filter(|result| **result == Discarded::Done).count() as u64;
    let word = |result: &Discarded| match result {
        Discarded::Done => "discarded",
        Discarded::NotDead => "not_dead",
        Discarded::NotFound => "not_found",
    };
    let results = id_results(&ids, discarded.iter().map(word));
    Ok(Json(BulkResult { done, more: false, last_due_at: None, results }))
}

fn id_results(ids: &[JobId], words: impl Iterator<Item = &'static str>) -> Vec<IdResult> {
    ids.iter().zip(words).map(|(id, result)| IdResult { id: id.0, result }).collect()
}

/// The selected dead letters.
#[derive(Debug)]
enum Choice {
    Ids(Vec<JobId>),
    Filter(Box<JobFilter>),
}

impl Choice {
    /// `None` if the selection is wrong; the fault is then recorded.
    fn read(fields: &Fields<'_>, caller: &Caller) -> Result<Option<Self>, Problem> {
        let is_all = fields.flag("all").unwrap_or_default();
        match (fields.has("ids"), fields.has("filter")) {
            (true, false) => Ok(Some(Self::Ids(read_ids(fields)))),
            (false, true) => {
                let Some(filter) = fields.object("filter") else { return Ok(None) };
                if filter.names().next().is_none() && !is_all {
                    fields.fault("filter", "is empty, which means every dead letter; confirm it with \"all\": true");
                }
                read_filter(&filter, caller).map(|filter| Some(Self::Filter(Box::new(filter))))
            }
            (true, true) | (false, false) => {
                fields.fault("ids", "or `filter` selects the dead letters; give exactly one of them");
                Ok(None)
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
