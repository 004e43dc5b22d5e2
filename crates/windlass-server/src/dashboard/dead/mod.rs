//! Dead letters: failed jobs that await manual action, grouped by cause; replay them at a rate, or discard them.

mod actions;
mod filter;
mod view;

use super::error::PageError;
use super::frame::{Frame, render};
use super::jobs::JobRow;
use super::session::Visitor;
use super::show;
use crate::http::{App, Query};
use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::{get, post};
use filter::Choice;
use view::Group;
use windlass::client::Page as Keyset;
use windlass_core::Millis;

/// The most groups on the page: the largest.
const MOST_GROUPS: u32 = 50;
/// Jobs on the page of a group.
const PER_PAGE: u32 = 50;
/// The span of the sparklines, and the length of a bar.
const SPAN: Millis = Millis::from_secs(86_400);
const STEP: Millis = Millis::from_secs(3600);

#[derive(Template)]
#[template(path = "dead/page.html")]
struct Page {
    frame: Frame,
    choice: Choice,
    groups: Vec<Group>,
    total: u64,
    shown: String,
    is_capped: bool,
    shows_tenant: bool,
}

#[derive(Template)]
#[template(path = "dead/group.html")]
struct GroupPage {
    frame: Frame,
    group: Option<Group>,
    rows: Vec<JobRow>,
    older: Option<String>,
}

pub(super) fn router() -> Router<App> {
    Router::new()
        .route("/dead-letters", get(page))
        .route("/dead-letters/group", get(group))
        .route("/dead-letters/all/{action}", get(actions::confirm))
        .route("/dead-letters/replay", post(actions::replay))
        .route("/dead-letters/discard", post(actions::discard))
}

async fn page(State(app): State<App>, visitor: Visitor, query: Query) -> Result<Response, PageError> {
    let choice = Choice::read(&query, &visitor)?;
    let dead = app.windlass().dead_letters().within(&visitor.tenants());
    let (groups, series) =
        tokio::try_join!(dead.groups(&choice.filter, MOST_GROUPS), dead.series(&choice.filter, SPAN, STEP))?;
    let now = app.now();
    let total = groups.iter().map(|group| group.count).sum();
    let frame = Frame::new(&app, &visitor, "dead-letters", "Dead letters");
    render(&Page {
        frame: frame.live(choice.address("/dead-letters")).done(query.text("done")),
        is_capped: groups.len() as u32 == MOST_GROUPS,
        groups: groups.iter().map(|group| Group::new(group, &series, now)).collect(),
        total,
        shown: show::number(total),
        shows_tenant: visitor.sees_all(),
        choice,
    })
}

async fn group(State(app): State<App>, visitor: Visitor, query: Query) -> Result<Response, PageError> {
    let choice = Choice::read(&query, &visitor)?;
    let dead = app.windlass().dead_letters().within(&visitor.tenants());
    let page = Keyset { after: query.cursor()?, ..Keyset::newest(PER_PAGE) };
    let (groups, series, jobs) = tokio::try_join!(
        dead.groups(&choice.filter, 1),
        dead.series(&choice.filter, SPAN, STEP),
        dead.list(&choice.filter, page)
    )?;
    let now = app.now();
    let last = jobs.last().filter(|_| jobs.len() as u32 == PER_PAGE).map(|job| job.id.to_string());
    render(&GroupPage {
        frame: Frame::new(&app, &visitor, "dead-letters", "Dead letters of one cause"),
        group: groups.first().map(|group| Group::new(group, &series, now)),
        rows: jobs.iter().map(|job| JobRow::new(job, now)).collect(),
        older: last.map(|id| choice.with("/dead-letters/group", "cursor", &id)),
    })
}
