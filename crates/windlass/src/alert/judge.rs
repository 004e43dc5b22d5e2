//! A node's judge: judges the rules at intervals, and ends alerts whose rule is gone from the configuration.

use super::Alerts;
use super::check::{change, check};
use super::stored::with_operators;
use crate::store::{Alert, AlertStatus, Store, StoreError};
use std::collections::HashMap;
use windlass_core::{Millis, Timestamp};

/// How long an alert without a rule is kept. During a rolling deploy, an older node may still have the rule.
pub const UNKNOWN_FOR: Millis = Millis::from_secs(60);
/// The longest such an alert is kept if another node that has the rule raises it again and again.
const UNKNOWN_AT_MOST: Millis = Millis::from_secs(24 * 60 * 60);

/// Judges the rules of one node.
#[derive(Debug)]
pub struct Judge {
    alerts: Alerts,
    /// Alerts that belong to no rule of this node, by rule and subject. At most as many as there are alerts in the
    /// store.
    unknown: HashMap<(String, String), Unknown>,
}

#[derive(Debug)]
struct Unknown {
    incident: i64,
    seen_at: Timestamp,
    wait: Millis,
}

impl Judge {
    /// Makes one.
    #[must_use]
    pub fn new(alerts: Alerts) -> Self {
        Self { alerts, unknown: HashMap::new() }
    }

    /// How often the rules are judged.
    #[must_use]
    pub const fn every(&self) -> Millis {
        self.alerts.every
    }

    /// Judges all rules once and ends alerts without a rule. Returns this node's changes that operators should know
    /// about.
    ///
    /// # Errors
    /// The store cannot be used.
    pub async fn look(&mut self, store: &dyn Store) -> Result<Vec<Alert>, StoreError> {
        // Read each time: operators change rules without a restart.
        let rules = with_operators(&self.alerts.rules, &store.stored_settings().await?);
        let mut news = check(store, &rules, &self.alerts.operators).await?;
        let now = store.clock().now();
        for alert in store.alerts().await? {
            let fired = match alert.status {
                AlertStatus::Resolved => continue,
                AlertStatus::Firing => true,
                AlertStatus::Pending => false,
            };
            if rules.iter().any(|rule| rule.is_about(&alert)) || !self.is_orphan(&alert, now) {
                continue;
            }
            let after = Alert {
                status: AlertStatus::Resolved,
                since: now,
                resolved_at: fired.then_some(now),
                detail: "its rule is no longer configured".into(),
                ..alert.clone()
            };
            news.extend(change(store, Some(&alert), after, None, &self.alerts.operators, now).await?);
        }
        Ok(news)
    }

    /// Whether an alert has had no rule here for so long that no other node can have one either.
    fn is_orphan(&mut self, alert: &Alert, now: Timestamp) -> bool {
        let key = (alert.rule.clone(), alert.subject.clone());
        let first = Unknown { incident: alert.incident, seen_at: now, wait: UNKNOWN_FOR };
        let unknown = self.unknown.entry(key).or_insert(first);
        if unknown.incident != alert.incident {
            let Alert { rule, subject, .. } = alert;
            tracing::warn!(rule, subject, "alert {rule} has no rule on this node, but another node raised it again");
            let wait = Millis::new(unknown.wait.get().saturating_mul(2)).min(UNKNOWN_AT_MOST);
            *unknown = Unknown { incident: alert.incident, seen_at: now, wait };
        }
        now.since(unknown.seen_at) >= unknown.wait
    }
}
