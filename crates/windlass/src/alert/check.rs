//! One check of the alerts: read, judge, change. Any node may do it at any time.

use super::rules::Picture;
use super::{News, Operator, Rule, news, notices, step};
use crate::client::queues::MAX_GATES;
use crate::store::{Alert, AlertChange, AlertStatus, Scope, Store, StoreError};
use std::collections::BTreeSet;
use windlass_core::{Millis, Timestamp};

/// Judges all rules once and makes the changes that follow. Returns this node's changes that operators were notified
/// of.
///
/// # Errors
/// The store cannot be used. No decision is made from incomplete data.
pub async fn check(store: &dyn Store, rules: &[Rule], operators: &[Operator]) -> Result<Vec<Alert>, StoreError> {
    let now = store.clock().now();
    let mut picture = Picture {
        queues: store.queues().await?,
        depths: store.depths(&Scope::All).await?,
        recent: Vec::new(),
        gates: store.gates(&Scope::All, None, MAX_GATES).await?,
    };
    let known = store.alerts().await?;
    let mut shown = Vec::new();
    let windows: BTreeSet<Millis> = rules.iter().map(|rule| rule.window).collect();
    for window in windows {
        picture.recent = store.tallies(&Scope::All, Some(now - window)).await?;
        for rule in rules.iter().filter(|rule| rule.window == window) {
            let reading = rule.read(&picture, now);
            let before = known.iter().find(|alert| rule.is_about(alert));
            let after = step(before, rule, &reading, now).or_else(|| before.cloned());
            let Some(after) = after else { continue };
            shown.extend(change(store, before, after, Some(rule), operators, now).await?);
        }
    }
    Ok(shown)
}

/// Makes a change, with its notices, unless nothing changes or another node was faster. Returns it if operators were
/// notified of it.
pub(super) async fn change(
    store: &dyn Store,
    before: Option<&Alert>,
    after: Alert,
    rule: Option<&Rule>,
    operators: &[Operator],
    now: Timestamp,
) -> Result<Option<Alert>, StoreError> {
    let news = news(before, &after, rule, now);
    let notified_at = match news {
        Some(News::Fired | News::Reminder) => Some(now),
        Some(News::Resolved | News::Test) | None => after.notified_at,
    };
    let after = Alert { notified_at, ..after };
    if before == Some(&after) {
        return Ok(None);
    }
    let meant: Vec<&Operator> =
        operators.iter().filter(|operator| rule.is_none_or(|rule| rule.notifies(operator))).collect();
    let notices = match news {
        Some(news) if !meant.is_empty() => notices(news, &after, &meant, &store.installation().await?, now),
        Some(_) | None => Vec::new(),
    };
    let is_other = before.map(|alert| alert.status) != Some(after.status);
    let before = before.map(|alert| (alert.status, alert.incident, alert.notified_at));
    if !store.change_alert(AlertChange { before, after: after.clone(), notices }).await? {
        return Ok(None);
    }
    if is_other {
        log_change(before.map(|(status, ..)| status), &after);
    }
    Ok(news.map(|_| after))
}

fn log_change(before: Option<AlertStatus>, alert: &Alert) {
    let Alert { rule, subject, detail, incident, tenant, queue, .. } = alert;
    match (before, alert.status) {
        (_, AlertStatus::Firing) => {
            tracing::error!(rule, subject, incident, tenant_id = tenant, queue, detail, "alert {rule} fires: {detail}");
        }
        (Some(AlertStatus::Firing), AlertStatus::Resolved) => {
            tracing::warn!(rule, subject, incident, tenant_id = tenant, queue, "alert {rule} is resolved");
        }
        (_, AlertStatus::Resolved | AlertStatus::Pending) => {}
    }
}
