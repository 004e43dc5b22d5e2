//! The queues: how full they are, how fast, and what is set for them; pause, resume, purge and change them.

mod actions;
mod limits;
mod view;

use super::error::PageError;
use super::frame::{Frame, render};
use super::plot::{self, Svg};
use super::session::Visitor;
use crate::http::{App, Query};
use askama::Template;
use axum::Router;
use axum::extract::{Path, State};
use axum::response::Response;
use axum::routing::{get, post};
use limits::{Field, GateRow};
use view::{QueueRow, Sentence};
use windlass::client::{QueueSettings, QueueStatus, Scope};
use windlass_core::job::{QueueName, Tenant};
use windlass_core::{Millis, Policy};

/// The span of the sparklines, and the length of a bar.
const SPAN: Millis = Millis::from_secs(3600);
const STEP: Millis = Millis::from_secs(120);
/// The most held and broken keys on the page of all queues.
const MOST_SHUT: usize = 100;
/// The most retries in a preview.
const PREVIEWED: u32 = 12;

#[derive(Template)]
#[template(path = "queues/page.html")]
struct Page {
    frame: Frame,
    queues: Vec<QueueRow>,
    shows_tenant: bool,
    /// What is held, and open breakers, of all queues.
    shut: Vec<(String, String, GateRow)>,
}

#[derive(Template)]
#[template(path = "queues/queue.html")]
struct QueuePage {
    frame: Frame,
    queue: QueueRow,
    path: String,
    current: Option<Shown>,
    /// What the queue would do with the policy in the form.
    next: Option<Shown>,
    fault: Option<String>,
    line: String,
    retention: [(&'static str, String, String); 3],
    panels: Vec<(&'static str, Svg)>,
    /// The limits in words.
    limits: String,
    limit_fields: Vec<Field>,
    /// What the limits in the form would do, or what is wrong with them.
    limit_preview: Option<Result<String, String>>,
    gates: Vec<GateRow>,
}

/// A policy as words and a plot.
struct Shown {
    line: String,
    words: String,
    plot: Svg,
}

impl Shown {
    fn new(policy: &Policy) -> Self {
        let preview = windlass_core::preview(policy, policy.max_retries.clamp(1, PREVIEWED));
        Self {
            line: policy.to_string(),
            words: windlass_core::explain(policy),
            plot: plot::windows(&preview, policy.max_retries),
        }
    }
}

pub(super) fn router() -> Router<App> {
    Router::new()
        .route("/queues", get(page))
        .route("/queues/{tenant}/{name}", get(queue))
        .route("/queues/{tenant}/{name}/pause", post(actions::pause))
        .route("/queues/{tenant}/{name}/resume", post(actions::resume))
        .route("/queues/{tenant}/{name}/purge", post(actions::purge))
        .route("/queues/{tenant}/{name}/settings", post(actions::change))
        .route("/queues/{tenant}/{name}/limits", post(limits::change))
        .route("/queues/{tenant}/{name}/hold", post(limits::hold))
        .route("/queues/{tenant}/{name}/release", post(limits::release))
}

/// A queue in an address, within what the visitor may see.
pub(super) fn find(visitor: &Visitor, tenant: &str, name: &str) -> Result<(Tenant, QueueName), PageError> {
    let missing = || PageError::not_found("queue", name);
    let tenant = Tenant::new(tenant).map_err(|_| missing())?;
    if !visitor.tenants().covers(&tenant) {
        return Err(missing());
    }
    Ok((tenant, QueueName::new(name).map_err(|_| missing())?))
}

async fn page(State(app): State<App>, visitor: Visitor, query: Query) -> Result<Response, PageError> {
    let scope = visitor.tenants();
    let (queues, stats) = (app.windlass().queues().within(&scope), app.windlass().stats().within(&scope));
    let gates = queues.gates();
    let (queues, series, shut) = tokio::try_join!(queues.list(), stats.series(SPAN, STEP), gates.held())?;
    let now = app.now();
    let shut = shut.iter().take(MOST_SHUT).map(|status| {
        let tenant = status.name.tenant.as_ref().map_or_else(|| "*".to_owned(), ToString::to_string);
        (tenant, status.name.queue.to_string(), GateRow::new(status, now))
    });
    let row = |queue: &QueueStatus| {
        let counts = series.queues.get(&(queue.tenant.clone(), queue.name.clone()));
        QueueRow::new(queue, counts.map(Vec::as_slice), series.total.len(), now)
    };
    render(&Page {
        frame: Frame::new(&app, &visitor, "queues", "Queues").live("/queues").done(query.text("done")),
        queues: queues.iter().map(row).collect(),
        shows_tenant: visitor.sees_all(),
        shut: shut.collect(),
    })
}

async fn queue(
    State(app): State<App>,
    visitor: Visitor,
    Path((tenant, name)): Path<(String, String)>,
    query: Query,
) -> Result<Response, PageError> {
    let (tenant, name) = find(&visitor, &tenant, &name)?;
    let scope = Scope::Tenant(tenant.clone());
    let (queues, stats) = (app.windlass().queues().within(&scope), app.windlass().stats().within(&scope));
    let gates = queues.gates();
    let (all, settings, series, gates) = tokio::try_join!(
        queues.list(),
        queues.settings(&name),
        stats.series(SPAN, Millis::from_secs(60)),
        gates.of(&name, limits::MOST_GATES),
    )?;
    let status = all.iter().find(|queue| queue.name == name).ok_or_else(|| PageError::not_found("queue", &name))?;
    let counts = series.queues.get(&(tenant.clone(), name.clone()));
    let now = app.now();
    let (next, fault) = match query.text("policy") {
        None => (None, None),
        Some(line) => match app.windlass().policies().resolve(line.to_owned()).await {
            Ok(policy) => (Some(Shown::new(&policy)), None),
            Err(error) => (None, Some(error.to_string())),
        },
    };
    let path = format!("/queues/{tenant}/{name}");
    render(&QueuePage {
        frame: Frame::new(&app, &visitor, "queues", name.to_string()).live(&path).done(query.text("done")),
        current: status.effective_policy.as_ref().map(Shown::new),
        next,
        fault,
        line: query.text("policy").map_or_else(|| own_line(&settings), str::to_owned),
        retention: retention(&settings, status),
        limits: limits::in_words(&status.flow, Some(status)),
        limit_fields: limits::fields(&settings, &query),
        limit_preview: limits::preview(&app, &query, &settings, status).await,
        gates: gates.iter().map(|status| GateRow::new(status, now)).collect(),
        panels: panels(counts.map(Vec::as_slice).unwrap_or_default(), series.step, series.total.len()),
        queue: QueueRow::new(status, counts.map(Vec::as_slice), series.total.len(), now),
        path,
    })
}

/// The policy that is set for the queue, as text.
fn own_line(settings: &QueueSettings) -> String {
    match &settings.policy {
        Some(serde_json::Value::String(line)) => line.clone(),
        Some(object) => object.to_string(),
        None => String::new(),
    }
}

/// For each end of a job: its name, what is set here, and what applies.
fn retention(settings: &QueueSettings, status: &QueueStatus) -> [(&'static str, String, String); 3] {
    let (own, all) = (settings.retention, status.retention);
    let text = |keep: Option<windlass::client::Keep>| keep.map_or_else(String::new, |keep| keep.to_string());
    [
        ("succeeded", text(own.succeeded), all.succeeded.to_string()),
        ("failed", text(own.failed), all.failed.to_string()),
        ("cancelled", text(own.cancelled), all.cancelled.to_string()),
    ]
}

fn panels(counts: &[windlass::client::Tally], step: Millis, steps: usize) -> Vec<(&'static str, Svg)> {
    let panel = |name: &'static str, class, of: fn(&windlass::client::Tally) -> i64| {
        let mut values: Vec<i64> = counts.iter().map(of).collect();
        values.resize(steps, 0);
        (name, plot::bars(name, class, &values, step))
    };
    vec![
        panel("Enqueued", "info", |tally| tally.enqueued),
        panel("Succeeded", "ok", |tally| tally.succeeded),
        panel("Retried", "warn", |tally| tally.retried),
        panel("Failed", "bad", |tally| tally.failed),
    ]
}

impl QueuePage {
    fn sentence(&self) -> Sentence {
        Sentence::new(&self.queue)
    }
}
