//! The alerts: which conditions hold now, and which held before.

use super::error::PageError;
use super::frame::{Frame, render};
use super::session::Visitor;
use super::show::{Moment, StateView};
use crate::http::App;
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use windlass::client::AlertStatus;

#[derive(Template)]
#[template(path = "alerts/page.html")]
struct Page {
    frame: Frame,
    alerts: Vec<AlertRow>,
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

pub(super) async fn page(State(app): State<App>, visitor: Visitor) -> Result<Response, PageError> {
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
    let frame = Frame::new(&app, &visitor, "alerts", "Alerts").live("/alerts");
    render(&Page { frame, alerts: alerts.iter().map(row).collect() })
}

const fn status(status: AlertStatus) -> StateView {
    match status {
        AlertStatus::Firing => StateView { word: "firing", shape: "▲" },
        AlertStatus::Pending => StateView { word: "pending", shape: "◔" },
        AlertStatus::Resolved => StateView { word: "resolved", shape: "✓" },
    }
}
