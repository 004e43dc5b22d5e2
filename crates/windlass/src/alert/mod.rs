//! Alerts: rules over the store's counts, judged on every node, fired once per incident across all nodes. The rules are
//! pure. The store's compare-and-set ensures that only one node makes a change.

mod check;
mod judge;
pub(crate) mod notice;
pub(crate) mod operator;
mod rules;
pub(crate) mod stored;

pub use check::check;
pub use judge::{Judge, UNKNOWN_FOR};
pub use notice::{NOTICE_KIND, NOTICE_QUEUE, notices};
pub use operator::{NoticeForm, Operator};
pub use rules::{Measure, Reading, Rule, default_rules};
pub use stored::{RULE_FIELDS, RuleError};

use crate::store::{Alert, AlertStatus};
use windlass_core::{Millis, Timestamp};

/// How often rules are judged.
pub const ALERT_EVERY: Millis = Millis::from_secs(10);

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

/// The rules with their defaults. Alerts appear only in the log, the API and the metrics.
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
        notified_at: None,
        detail: detail.into(),
    }
}

/// What operators are notified of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum News {
    /// An alert fires.
    Fired,
    /// It still fires.
    Reminder,
    /// It no longer fires.
    Resolved,
    /// A test, sent by an operator.
    Test,
}

impl News {
    /// The event's name in JSON notices.
    #[must_use]
    pub const fn event(self) -> &'static str {
        match self {
            Self::Fired => "alert.fired",
            Self::Reminder => "alert.reminder",
            Self::Resolved => "alert.resolved",
            Self::Test => "alert.test",
        }
    }
}

/// What operators should be notified of now. `alert` is the current state, after its change if there was one.
///
/// In quiet hours nobody is notified of an alert that fires; if it still fires when they end, it is reported then. The
/// end of an alert is always reported to those who know of it, and an alert that nobody knows of ends unreported.
#[must_use]
pub fn news(before: Option<&Alert>, alert: &Alert, rule: Option<&Rule>, now: Timestamp) -> Option<News> {
    let is_quiet = || rule.and_then(|rule| rule.quiet.as_ref()).is_some_and(|quiet| quiet.contains(now));
    match (alert.status, alert.notified_at) {
        (AlertStatus::Firing, None) => (!is_quiet()).then_some(News::Fired),
        (AlertStatus::Firing, Some(last)) => {
            let interval = rule.and_then(|rule| rule.remind)?;
            (now.since(last) >= interval && !is_quiet()).then_some(News::Reminder)
        }
        (AlertStatus::Resolved, Some(_)) => {
            let fired = before.is_some_and(|alert| alert.status == AlertStatus::Firing);
            fired.then_some(News::Resolved)
        }
        (AlertStatus::Resolved, None) | (AlertStatus::Pending, _) => None,
    }
}

#[cfg(test)]
mod tests;
