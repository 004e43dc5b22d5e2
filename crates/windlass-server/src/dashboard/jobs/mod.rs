//! The list of jobs: filters, search, pages; and actions on all jobs of a filter.

mod bulk;
pub(super) mod filter;
mod view;

use super::error::PageError;
use super::frame::{Frame, render};
use super::session::Visitor;
use crate::http::{App, Query};
use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::{get, post};
use filter::Choice;
pub(super) use view::JobRow;
use windlass::client::Page as Keyset;
use windlass_core::State as JobState;

/// Jobs on one page.
const PER_PAGE: u32 = 50;

#[derive(Template)]
#[template(path = "jobs/page.html")]
struct Page {
    frame: Frame,
    choice: Choice,
    rows: Vec<JobRow>,
    /// The address of the next page.
    older: Option<String>,
    is_first: bool,
    /// How far a search looked.
    searched: Option<String>,
    shows_tenant: bool,
}

pub(super) fn router() -> Router<App> {
    Router::new()
        .route("/jobs", get(page))
        .route("/jobs/bulk/{action}", get(bulk::confirm))
        .route("/jobs/bulk/{action}/start", post(bulk::start))
}

async fn page(State(app): State<App>, visitor: Visitor, query: Query) -> Result<Response, PageError> {
    let choice = Choice::read(&query, &visitor)?;
    let jobs = app.windlass().jobs().within(&visitor.tenants());
    let after = query.cursor()?;
    let (found, searched) = match &choice.text {
        Some(text) => {
            let found = jobs.search(text, &choice.filter, PER_PAGE).await?;
            let searched = view::searched(&found);
            (found.jobs, Some(searched))
        }
        None => (jobs.list(&choice.filter, Keyset { after, ..Keyset::newest(PER_PAGE) }).await?, None),
    };
    let is_full = found.len() as u32 == PER_PAGE && searched.is_none();
    let last = found.last().map(|job| job.id).filter(|_| is_full);
    let now = app.now();
    let address = choice.address("/jobs");
    let live = if searched.is_none() && after.is_none() { address.clone() } else { String::new() };
    let page = Page {
        frame: Frame::new(&app, &visitor, "jobs", "Jobs").live(live).done(query.text("done")),
        rows: found.iter().map(|job| JobRow::new(job, now)).collect(),
        older: last.map(|id| choice.with("/jobs", "cursor", &id.to_string())),
        is_first: after.is_none(),
        searched,
        shows_tenant: visitor.sees_all(),
        choice,
    };
    render(&page)
}

/// The states of the filter, with whether each is chosen.
impl Page {
    fn states(&self) -> Vec<(super::show::StateView, bool)> {
        let chosen = |state: &JobState| (super::show::state(*state), self.choice.filter.states.contains(state));
        filter::STATES.iter().map(chosen).collect()
    }
}
