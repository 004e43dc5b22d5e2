//! The audit: who did what.

use super::error::PageError;
use super::frame::{Frame, render};
use super::session::Visitor;
use super::show::{self, Moment};
use crate::http::App;
use askama::Template;
use axum::extract::State;
use axum::response::Response;

/// The entries on the page: the latest.
const SHOWN: u32 = 200;

#[derive(Template)]
#[template(path = "audit/page.html")]
struct Page {
    frame: Frame,
    entries: Vec<Entry>,
}

struct Entry {
    at: Moment,
    by: String,
    action: String,
    count: String,
    detail: String,
}

pub(super) async fn page(State(app): State<App>, visitor: Visitor) -> Result<Response, PageError> {
    visitor.for_all_tenants()?;
    let now = app.now();
    let entry = |audit: &windlass::client::Audit| Entry {
        at: Moment::new(audit.at, now),
        by: audit.by.clone(),
        action: audit.action.clone(),
        count: show::number(audit.count),
        detail: show::line(&audit.detail, 500),
    };
    let entries = app.windlass().audit().latest(SHOWN).await?.iter().map(entry).collect();
    let frame = Frame::new(&app, &visitor, "audit", "Audit").live("/audit");
    render(&Page { frame, entries })
}
