//! A node's judge: looks at the store again and again, and ends alerts whose rule is gone from the configuration.

use super::Alerts;
use super::check::{change, check};
use crate::store::{Alert, AlertStatus, Store, StoreError};
use std::collections::HashMap;
use windlass_core::{Millis, Timestamp};

/// How long an alert without a rule is left alone: while nodes are replaced one by one, an older one may still have the rule.
pub const UNKNOWN_FOR: Millis = Millis::from_secs(60);
/// The longest it is left alone if it comes back time and again, because another node does have the rule.
const UNKNOWN_AT_MOST: Millis = Millis::from_secs(24 * 60 * 60);

/// Judges the rules of one node.
#[derive(Debug)]
pub struct Judge {
    alerts: Alerts,
    /// Alerts that no rule here is about, by rule and subject. As many as there are alerts in the store at most.
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

    /// Judges all rules once and ends what has none. Answers the changes this node made that people should hear of.
    ///
    /// # Errors
    /// The store's.
    pub async fn look(&mut self, store: &dyn Store) -> Result<Vec<Alert>, StoreError> {
        let mut news = check(store, &self.alerts.rules, &self.alerts.operators).await?;
        let now = store.clock().now();
        for alert in store.alerts().await? {
            let fired = match alert.status {
                AlertStatus::Resolved => continue,
                AlertStatus::Firing => true,
                AlertStatus::Pending => false,
            };
            if self.alerts.rules.iter().any(|rule| rule.is_about(&alert)) || !self.is_orphan(&alert, now) {
                continue;
            }
            let after = Alert {
                status: AlertStatus::Resolved,
                since: now,
                resolved_at: fired.then_some(now),
                detail: "no rule asks for it any more".into(),
                ..alert.clone()
            };
            news.extend(change(store, Some(&alert), after, &self.alerts.operators, now).await?);
        }
        Ok(news)
    }

    /// Whether an alert without a rule here has had none for so long that no other node can have one either.
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
