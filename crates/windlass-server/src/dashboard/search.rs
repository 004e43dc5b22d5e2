//! The search field: an id goes to the job, anything else to the list of jobs that contain it.

use super::error::PageError;
use super::session::Visitor;
use super::show;
use crate::http::{App, Query};
use axum::extract::State;
use axum::response::Redirect;

pub(super) async fn go(State(app): State<App>, visitor: Visitor, query: Query) -> Result<Redirect, PageError> {
    let text = query.text("q").unwrap_or_default().trim();
    let base = app.base_path();
    if let Some(id) = show::id(text) {
        if app.windlass().jobs().within(&visitor.tenants()).get(id).await?.is_some() {
            return Ok(Redirect::to(&format!("{base}/jobs/{id}")));
        }
        if app.windlass().schedules().within(&visitor.tenants()).get(id).await?.is_some() {
            return Ok(Redirect::to(&format!("{base}/schedules/{id}")));
        }
    }
    let encoded: String = url::form_urlencoded::byte_serialize(text.as_bytes()).collect();
    Ok(Redirect::to(&format!("{base}/jobs?q={encoded}")))
}
