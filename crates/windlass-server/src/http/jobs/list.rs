//! GET /jobs: a filtered list, paged by keyset.

use crate::http::app::App;
use crate::http::auth::{Caller, May, Read};
use crate::http::input::query::Query;
use crate::http::output::page::Listing;
use crate::http::output::problem::Problem;
use crate::http::output::view::JobView;
use axum::Json;
use axum::extract::State;
use windlass::Job;
use windlass::client::JobFilter;
use windlass_core::job::{Kind, QueueName, Tenant};
use windlass_core::{Executor, JobId, State as JobState};

/// The longest class that a filter accepts.
const MAX_WORD: usize = 200;
const FILTERS: &[&str] = &["queue", "tenant", "kind", "class", "since", "limit", "cursor", "order"];

/// List jobs, newest first.
#[utoipa::path(get, path = "/api/v1/jobs", operation_id = "listJobs", tag = "jobs",
    params(
        ("state" = Option<String>, Query, description = "One or more states, separated by commas; other systems' names are accepted"),
        ("queue" = Option<String>, Query), ("tenant" = Option<String>, Query), ("kind" = Option<String>, Query),
        ("class" = Option<String>, Query, description = "Class of the last failure"),
        ("since" = Option<String>, Query, description = "Created (live jobs) or finished at or after this moment"),
        ("schedule" = Option<i64>, Query), ("parent" = Option<i64>, Query), ("executor" = Option<String>, Query),
        ("limit" = Option<u32>, Query), ("cursor" = Option<String>, Query, description = "`next` of the previous page"),
        ("order" = Option<String>, Query, description = "newest (default) or oldest")),
    responses((status = 200, body = Listing<JobView>)))]
pub(crate) async fn list(
    State(app): State<App>,
    caller: May<Read>,
    query: Query,
) -> Result<Json<Listing<JobView>>, Problem> {
    query.only(&[FILTERS, &["state", "schedule", "parent", "executor"]].concat())?;
    let mut filter = filter(&query, &caller)?;
    filter.states = states(&query)?;
    let id = |text: &str| text.parse().map(JobId).map_err(|_| "must be an id, a whole number");
    filter.schedule = query.parsed("schedule", id)?;
    filter.parent = query.parsed("parent", id)?;
    filter.executor = query.parsed("executor", |word| Executor::parse(word).ok_or("must be worker or http"))?;
    let page = query.page()?;
    let stored = app.windlass().jobs().within(&caller.tenants());
    let jobs = stored.list(&filter, Listing::<JobView>::one_more(page)).await?;
    let (holders, waiting) = (stored.holders(&jobs).await?, stored.waiting(&jobs).await?);
    let view = |job: &Job| JobView::from(job).held_by(&holders).waiting(&waiting);
    Ok(Json(Listing::new(&jobs, page, |job| job.id, view)))
}

/// The filters that jobs and dead letters share.
pub(crate) fn filter(query: &Query, caller: &Caller) -> Result<JobFilter, Problem> {
    Ok(JobFilter {
        queue: query.parsed("queue", QueueName::new)?,
        tenant: caller.narrowed(query.parsed("tenant", Tenant::new)?)?,
        kind: query.parsed("kind", Kind::new)?,
        error_class: query.parsed("class", word)?,
        since: query.moment("since")?,
        ..JobFilter::default()
    })
}

/// A class. A longer one is refused: cut to this length, it would find jobs of other classes.
fn word(text: &str) -> Result<String, String> {
    let is_short = text.chars().count() <= MAX_WORD;
    if is_short { Ok(text.to_owned()) } else { Err(format!("must be at most {MAX_WORD} characters")) }
}

fn states(query: &Query) -> Result<Vec<JobState>, Problem> {
    let mut states = Vec::new();
    for word in query.all("state").flat_map(|text| text.split(',')).map(str::trim) {
        states.extend(state(word)?);
    }
    states.dedup();
    Ok(states)
}

/// A state by its own name or by another system's name.
fn state(word: &str) -> Result<Vec<JobState>, Problem> {
    let lower = word.to_ascii_lowercase();
    Ok(match lower.as_str() {
        "fatal" | "dead" => vec![JobState::Failed],
        "completed" => vec![JobState::Succeeded],
        "scheduled" | "ready" => vec![JobState::Queued, JobState::Retrying],
        "retry" => vec![JobState::Retrying],
        own => match JobState::parse(own) {
            Some(state) => vec![state],
            None => {
                let form = "must be queued, running, retrying, succeeded, failed or cancelled";
                return Err(Problem::query("state", form));
            }
        },
    })
}
