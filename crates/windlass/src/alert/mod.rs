//! Alerts: rules over the store's counts, judged on every node, fired once per incident across all nodes. The rules are
//! pure. The store's compare-and-set ensures that only one node makes a change.

mod check;
mod judge;
mod rules;
pub(crate) mod stored;

pub use check::check;
pub use judge::{Judge, UNKNOWN_FOR};
pub use rules::{Measure, Reading, Rule, default_rules};
pub use stored::{RULE_FIELDS, RuleError};

use crate::job::{HttpCall, NewJob};
use crate::store::{Alert, AlertStatus};
use serde_json::json;
use std::sync::Arc;
use windlass_core::job::{Kind, QueueName};
use windlass_core::policy::{Partial, Role};
use windlass_core::{Executor, Millis, Timestamp};

/// The queue of notices to operators.
pub const NOTICE_QUEUE: &str = "alerts";
/// The kind of a notice. Nothing of this kind is counted by any rule.
pub const NOTICE_KIND: &str = "alert";

/// How often rules are judged.
pub const ALERT_EVERY: Millis = Millis::from_secs(10);

/// An operator to notify, in addition to the log, the API and the metrics.
#[derive(Clone, PartialEq, Eq)]
pub struct Operator {
    /// The URL to call.
    pub url: String,
    /// `whsec_…`
    pub secret: Option<String>,
}

/// Leaves out the secret, because debug output may end up in a log.
impl std::fmt::Debug for Operator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Operator").field("url", &self.url).finish_non_exhaustive()
    }
}

/// The rules to judge and the operators to notify.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alerts {
    /// The rules to judge.
    pub rules: Vec<Rule>,
    /// Who is notified.
    pub operators: Vec<Operator>,
    /// How often to judge them.
    pub every: Millis,
}

/// The five rules with their defaults. Alerts appear only in the log, the API and the metrics.
impl Default for Alerts {
    fn default() -> Self {
        Self { rules: default_rules(), operators: Vec::new(), every: ALERT_EVERY }
    }
}

/// The next status of an alert, or `None` if nothing changes. `reading` describes the condition if it holds.
#[must_use]
pub fn step(before: Option<&Alert>, rule: &Rule, reading: &Reading, now: Timestamp) -> Option<Alert> {
    let status = before.map(|alert| alert.status);
    let (tenant, queue) = affected(rule, reading);
    match (status, &reading.holds) {
        (None | Some(AlertStatus::Resolved), Some(detail)) => {
            Some(Alert { tenant, queue, ..begin(before, rule, detail, now) })
        }
        (Some(AlertStatus::Pending), Some(detail)) => {
            let current = Alert { tenant, queue, detail: detail.clone(), ..before?.clone() };
            if now.since(current.since) > rule.lasting {
                return Some(Alert { status: AlertStatus::Firing, fired_at: Some(now), ..current });
            }
            Some(current).filter(|current| Some(current) != before)
        }
        (Some(AlertStatus::Pending), None) => {
            Some(Alert { status: AlertStatus::Resolved, since: now, ..before?.clone() })
        }
        (Some(AlertStatus::Firing), None) => {
            Some(Alert { status: AlertStatus::Resolved, since: now, resolved_at: Some(now), ..before?.clone() })
        }
        // What is shown stays current while the alert fires; operators are notified once.
        (Some(AlertStatus::Firing), Some(detail)) => {
            let current = Alert { tenant, queue, detail: detail.clone(), ..before?.clone() };
            Some(current).filter(|current| Some(current) != before)
        }
        (None | Some(AlertStatus::Resolved), None) => None,
    }
}

/// The tenant and the queue that an alert names.
fn affected(rule: &Rule, reading: &Reading) -> (String, String) {
    match &reading.worst {
        Some((tenant, queue)) => (tenant.to_string(), queue.to_string()),
        None => (String::new(), rule.queue.clone().unwrap_or_default()),
    }
}

fn begin(before: Option<&Alert>, rule: &Rule, detail: &str, now: Timestamp) -> Alert {
    let fires_at_once = rule.lasting.is_zero();
    Alert {
        rule: rule.name.clone(),
        measure: rule.measure.as_str().into(),
        subject: rule.subject().into(),
        tenant: String::new(),
        queue: String::new(),
        status: if fires_at_once { AlertStatus::Firing } else { AlertStatus::Pending },
        incident: before.map_or(0, |alert| alert.incident) + 1,
        since: now,
        fired_at: fires_at_once.then_some(now),
        resolved_at: None,
        detail: detail.into(),
    }
}

/// Whether to notify operators: an alert fires, or a fired one is resolved. An incident that ended before it fired is
/// not reported.
#[must_use]
pub fn is_news(before: Option<&Alert>, after: &Alert) -> bool {
    match after.status {
        AlertStatus::Firing => before.is_none_or(|alert| alert.status != AlertStatus::Firing),
        AlertStatus::Resolved => before.is_some_and(|alert| alert.status == AlertStatus::Firing),
        AlertStatus::Pending => false,
    }
}

/// The notices to operators about a change. The commit that makes the change enqueues them.
#[must_use]
pub fn notices(alert: &Alert, operators: &[Operator], installation: &str, now: Timestamp) -> Vec<NewJob> {
    operators.iter().map(|operator| notice(alert, operator, installation, now)).collect()
}

/// A text, or nothing if it is empty.
fn filled(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}

/// A notice that only shows whether notices arrive.
pub(crate) fn test_notice(operator: &Operator, installation: &str, now: Timestamp, nonce: u64) -> NewJob {
    let alert = Alert {
        rule: "test".into(),
        measure: "test".into(),
        subject: String::new(),
        status: AlertStatus::Firing,
        // Part of the notice's id: no two tests have the same one. Small enough for every reader of JSON.
        incident: (nonce >> 12) as i64,
        since: now,
        fired_at: Some(now),
        resolved_at: None,
        tenant: String::new(),
        queue: String::new(),
        detail: "a test, sent by an operator: nothing is wrong".into(),
    };
    notice_of("alert.test", &alert, operator, installation, now)
}

fn notice(alert: &Alert, operator: &Operator, installation: &str, now: Timestamp) -> NewJob {
    let event = match alert.status {
        AlertStatus::Firing => "alert.fired",
        AlertStatus::Resolved | AlertStatus::Pending => "alert.resolved",
    };
    notice_of(event, alert, operator, installation, now)
}

fn notice_of(event: &str, alert: &Alert, operator: &Operator, installation: &str, now: Timestamp) -> NewJob {
    let body = json!({
        "type": event,
        "timestamp": now.to_string(),
        "data": {
            "installation": installation,
            "rule": alert.rule,
            "measure": alert.measure,
            "tenantId": filled(&alert.tenant),
            "queue": filled(&alert.queue),
            "subject": alert.subject,
            "incident": alert.incident,
            "since": alert.since.to_string(),
            "firedAt": alert.fired_at.map(|at| at.to_string()),
            "resolvedAt": alert.resolved_at.map(|at| at.to_string()),
            "detail": alert.detail,
        },
    });
    let policy = Partial::resolve(&[Role::Delivery.default_policy()], &Role::Delivery.default_give_up_on())
        .expect("the default policy of deliveries is whole");
    let webhook_id = format!("msg_alert_{}_{}_{}_{}", alert.rule, alert.subject, alert.incident, alert.status.as_str());
    NewJob {
        queue: QueueName::new(NOTICE_QUEUE).expect("the notice queue has a name"),
        executor: Executor::Http,
        timeout: Some(Millis::from_secs(30)),
        http: Some(Arc::new(HttpCall {
            method: "POST".into(),
            url: operator.url.clone(),
            headers: Vec::new(),
            secret: operator.secret.clone(),
            webhook_id: Some(webhook_id.replace(|c: char| !c.is_ascii_alphanumeric(), "_")),
        })),
        ..NewJob::new(Kind::new(NOTICE_KIND).expect("the notice kind has a name"), body.to_string(), Arc::new(policy))
    }
}

#[cfg(test)]
mod tests;
