//! One check of the alerts: read, judge, change. Any node may do it at any time.

use super::rules::{Picture, WINDOW};
use super::{Operator, Rule, is_news, notices, step};
use crate::store::{Alert, AlertChange, AlertStatus, Scope, Store, StoreError};
use windlass_core::Timestamp;

/// Judges all rules once and makes the changes that follow. Returns this node's changes that operators should know
/// about.
///
/// # Errors
/// The store cannot be used. No decision is made from incomplete data.
pub async fn check(store: &dyn Store, rules: &[Rule], operators: &[Operator]) -> Result<Vec<Alert>, StoreError> {
    let now = store.clock().now();
    let picture = Picture {
        queues: store.queues().await?,
        depths: store.depths(&Scope::All).await?,
        recent: store.tallies(&Scope::All, Some(now - WINDOW)).await?,
    };
    let known = store.alerts().await?;
    let mut news = Vec::new();
    for rule in rules {
        let reading = rule.read(&picture, now);
        let before = known.iter().find(|alert| rule.is_about(alert));
        let Some(after) = step(before, rule, &reading, now) else { continue };
        news.extend(change(store, before, after, operators, now).await?);
    }
    Ok(news)
}

/// Makes a change, with its notices, unless another node was faster. Returns it if operators should know about it.
pub(super) async fn change(
    store: &dyn Store,
    before: Option<&Alert>,
    after: Alert,
    operators: &[Operator],
    now: Timestamp,
) -> Result<Option<Alert>, StoreError> {
    let is_news = is_news(before, &after);
    let notices = match is_news && !operators.is_empty() {
        true => notices(&after, operators, &store.installation().await?, now),
        false => Vec::new(),
    };
    let before = before.map(|alert| (alert.status, alert.incident));
    let changed = store.change_alert(AlertChange { before, after: after.clone(), notices }).await?;
    if !changed || !is_news {
        return Ok(None);
    }
    log_change(&after);
    Ok(Some(after))
}

fn log_change(alert: &Alert) {
    let Alert { rule, subject, detail, incident, tenant, queue, .. } = alert;
    match alert.status {
        AlertStatus::Firing => {
            tracing::error!(rule, subject, incident, tenant_id = tenant, queue, detail, "alert {rule} fires: {detail}");
        }
        AlertStatus::Resolved | AlertStatus::Pending => {
            tracing::warn!(rule, subject, incident, tenant_id = tenant, queue, "alert {rule} is resolved");
        }
    }
}
