//! The alerts: which conditions hold now, which held before, and the rules that say so.

mod rules;

use super::error::PageError;
use super::frame::{Frame, render};
use super::session::Visitor;
use super::show::{Moment, StateView};
use crate::http::{App, Query};
use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::{get, post};
use rules::RuleRow;
use windlass::alert::Measure;
use windlass::client::AlertStatus;

#[derive(Template)]
#[template(path = "alerts/page.html")]
struct Page {
    frame: Frame,
    alerts: Vec<AlertRow>,
    rules: Vec<RuleRow>,
    measures: [&'static str; Measure::ALL.len()],
    can_change: bool,
}

struct AlertRow {
    rule: String,
    subject: String,
    status: StateView,
    incident: i64,
    detail: String,
    since: Moment,
    resolved: Option<Moment>,
}

pub(super) fn router() -> Router<App> {
    Router::new()
        .route("/alerts", get(page))
        .route("/alerts/rules/set", post(rules::set))
        .route("/alerts/rules/turn-off", post(rules::turn_off))
        .route("/alerts/rules/reset", post(rules::reset))
}

async fn page(State(app): State<App>, visitor: Visitor, query: Query) -> Result<Response, PageError> {
    visitor.for_all_tenants()?;
    let now = app.now();
    let mut alerts = app.windlass().alerts().list().await?;
    let rank = |status: AlertStatus| match status {
        AlertStatus::Firing => 0,
        AlertStatus::Pending => 1,
        AlertStatus::Resolved => 2,
    };
    alerts.sort_by_key(|alert| (rank(alert.status), std::cmp::Reverse(alert.since)));
    let row = |alert: &windlass::client::Alert| AlertRow {
        rule: alert.rule.replace('_', " "),
        subject: if alert.subject.is_empty() { "everything".into() } else { alert.subject.clone() },
        status: status(alert.status),
        incident: alert.incident,
        detail: alert.detail.clone(),
        since: Moment::new(alert.fired_at.unwrap_or(alert.since), now),
        resolved: Moment::some(alert.resolved_at, now),
    };
    let frame = Frame::new(&app, &visitor, "alerts", "Alerts").live("/alerts").done(query.text("done"));
    let (rules, measures) = (rules::rows(&app).await?, Measure::ALL.map(Measure::as_str));
    let can_change = visitor.is_admin();
    render(&Page { frame, alerts: alerts.iter().map(row).collect(), rules, measures, can_change })
}

const fn status(status: AlertStatus) -> StateView {
    match status {
        AlertStatus::Firing => StateView { word: "firing", shape: "▲" },
        AlertStatus::Pending => StateView { word: "pending", shape: "◔" },
        AlertStatus::Resolved => StateView { word: "resolved", shape: "✓" },
    }
}
