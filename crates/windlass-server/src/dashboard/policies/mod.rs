//! The policies: a playground that shows a policy as a plot, in words, and in an outage; and all policies by name.

mod view;

use super::error::PageError;
use super::form::Action;
use super::frame::{Frame, back, render};
use super::session::Visitor;
use crate::http::{App, Query};
use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::{get, post};
use view::{Named, Outage, Played};

/// What the playground starts with.
const FIRST: &str = "full-jitter";

#[derive(Template)]
#[template(path = "policies/page.html")]
struct Page {
    frame: Frame,
    line: String,
    outage: Outage,
    played: Result<Played, String>,
    named: Vec<Named>,
}

pub(super) fn router() -> Router<App> {
    Router::new().route("/policies", get(page)).route("/policies/save", post(save))
}

async fn page(State(app): State<App>, visitor: Visitor, query: Query) -> Result<Response, PageError> {
    let line = query.text("line").unwrap_or(FIRST).trim().to_owned();
    let outage = Outage::read(&query);
    let policies = app.windlass().policies();
    let named = policies.list().await?;
    let played = match policies.resolve(line.clone()).await {
        Ok(policy) => Ok(Played::new(line.clone(), policy, outage).await),
        Err(windlass::client::PolicyFault::Store(error)) => return Err(error.into()),
        Err(error) => Err(error.to_string()),
    };
    render(&Page {
        frame: Frame::new(&app, &visitor, "policies", "Policies").done(query.text("done")),
        named: named.iter().map(|policy| Named::new(policy, &line)).collect(),
        line,
        outage,
        played,
    })
}

/// Stores the policy under a name.
async fn save(State(app): State<App>, Action { visitor, form }: Action) -> Result<Response, PageError> {
    visitor.need_admin()?;
    visitor.for_all_tenants()?;
    let needed = |field: &'static str| form.text(field).ok_or_else(|| PageError::bad(format!("{field}: is needed")));
    let (name, line) = (needed("name")?.to_owned(), needed("line")?.to_owned());
    windlass_core::job::QueueName::new(&name).map_err(|error| PageError::bad(format!("name: {error}")))?;
    app.windlass().policies().put(&name, line.clone()).await?;
    app.windlass().audit().by(&visitor.caller.by).record("set policy", 1, format!("policy {name}: {line}")).await?;
    let encoded: String = url::form_urlencoded::byte_serialize(name.as_bytes()).collect();
    Ok(back(
        &app,
        &format!("/policies?line={encoded}"),
        &format!("Saved. Jobs may name the policy `{name}` from now on."),
    ))
}
