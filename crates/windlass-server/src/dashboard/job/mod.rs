//! One job: its state, its attempts as a timeline, what it carries, and what can be done to it.

mod actions;
mod timeline;
mod view;

pub(super) use actions::MAX_REASON;

use super::error::PageError;
use super::frame::{Frame, render};
use super::session::Visitor;
use super::show;
use crate::http::{App, Query};
use askama::Template;
use axum::Router;
use axum::extract::{Path, State};
use axum::response::Response;
use axum::routing::{get, post};
use timeline::Timeline;
use view::{Fact, JobView, Link};

/// The most attempts that the timeline shows: the latest.
const MOST_ATTEMPTS: u32 = 100;

#[derive(Template)]
#[template(path = "job/page.html")]
struct Page {
    frame: Frame,
    job: JobView,
    facts: Vec<Fact>,
    timeline: Timeline,
    deliveries: Vec<Link>,
    payload: String,
    result: Option<String>,
    is_masked: bool,
    policy_line: String,
    policy_words: String,
    /// Why it is where it is, in two sentences.
    why: Option<String>,
}

pub(super) fn router() -> Router<App> {
    Router::new()
        .route("/jobs/{id}", get(page))
        .route("/jobs/{id}/replay", post(actions::replay))
        .route("/jobs/{id}/cancel", post(actions::cancel))
        .route("/jobs/{id}/discard", post(actions::discard))
        .route("/jobs/{id}/reschedule", post(actions::reschedule))
}

async fn page(
    State(app): State<App>,
    visitor: Visitor,
    Path(id): Path<String>,
    query: Query,
) -> Result<Response, PageError> {
    let jobs = app.windlass().jobs().within(&visitor.tenants());
    let id = show::id(&id).ok_or_else(|| PageError::not_found("job", &id))?;
    let job = jobs.get(id).await?.ok_or_else(|| PageError::not_found("job", id))?;
    let (attempts, deliveries, why) =
        tokio::try_join!(jobs.latest_attempts(id, MOST_ATTEMPTS), jobs.deliveries(&job), jobs.why(id))?;
    let now = app.now();
    let is_masked = !visitor.is_admin();
    let json = |text: &str| if is_masked { show::mask(text) } else { show::pretty(text) };
    let page = Page {
        frame: Frame::new(&app, &visitor, "jobs", format!("Job {id}"))
            .live(format!("/jobs/{id}"))
            .done(query.text("done")),
        facts: view::facts(&job, now),
        timeline: Timeline::new(&job, &attempts, now),
        deliveries: deliveries.iter().map(|job| Link::new(job, now)).collect(),
        payload: json(&job.payload),
        result: job.result.as_deref().map(json),
        is_masked,
        why: why.map(|why| why.sentences.join(" ")),
        policy_line: job.policy.to_string(),
        policy_words: windlass_core::explain(&job.policy),
        job: JobView::new(&job, now),
    };
    render(&page)
}
