//! Notices: what operators are sent about a change, in the form that each reads. Pure.

use super::operator::ROUTING_KEY;
use super::{News, NoticeForm, Operator};
use crate::client::enqueue::outgoing::{mask_after_host, mask_url};
use crate::job::{HttpCall, Job, NewJob};
use crate::store::{Alert, AlertStatus};
use serde_json::{Value, json};
use std::sync::Arc;
use windlass_core::job::{Kind, QueueName};
use windlass_core::policy::{Partial, Role};
use windlass_core::{Executor, Millis, Timestamp};

/// The queue of notices to operators.
pub const NOTICE_QUEUE: &str = "alerts";
/// The kind of a notice. Nothing of this kind is counted by any rule.
pub const NOTICE_KIND: &str = "alert";
/// The longest summary that PagerDuty accepts, in characters.
const MAX_SUMMARY: usize = 1024;

/// The notices to operators about a change. The commit that makes the change enqueues them.
#[must_use]
pub fn notices(news: News, alert: &Alert, operators: &[&Operator], installation: &str, now: Timestamp) -> Vec<NewJob> {
    operators.iter().map(|operator| notice(news, alert, operator, installation, now)).collect()
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
        notified_at: Some(now),
        tenant: String::new(),
        queue: String::new(),
        detail: "a test, sent by an operator: nothing is wrong".into(),
    };
    notice(News::Test, &alert, operator, installation, now)
}

fn notice(news: News, alert: &Alert, operator: &Operator, installation: &str, now: Timestamp) -> NewJob {
    let body = match operator.form {
        NoticeForm::Json => plain(news, alert, installation, now),
        NoticeForm::Slack => slack(news, alert, installation, now),
        NoticeForm::PagerDuty => pager_duty(news, alert, installation, now),
    };
    let policy = Partial::resolve(&[Role::Delivery.default_policy()], &Role::Delivery.default_give_up_on())
        .expect("the default policy of deliveries is whole");
    NewJob {
        queue: QueueName::new(NOTICE_QUEUE).expect("the notice queue has a name"),
        executor: Executor::Http,
        timeout: Some(Millis::from_secs(30)),
        http: Some(Arc::new(HttpCall {
            method: "POST".into(),
            url: operator.url.clone(),
            headers: Vec::new(),
            secret: match operator.form {
                NoticeForm::Json | NoticeForm::Slack => operator.secret.clone(),
                NoticeForm::PagerDuty => operator.secret.as_ref().map(|key| format!("{BODY_SECRET}{key}")),
            },
            webhook_id: Some(webhook_id(news, alert)),
        })),
        ..NewJob::new(Kind::new(NOTICE_KIND).expect("the notice kind has a name"), body.to_string(), Arc::new(policy))
    }
}

impl Job {
    /// Whether it is a notice of an alert, which the operators' settings address and sign. No caller can make one.
    #[must_use]
    pub fn is_notice(&self) -> bool {
        self.kind.as_str() == NOTICE_KIND && self.http.as_ref().is_some_and(|call| call.webhook_id.is_some())
    }

    /// The URL that it calls, for display. Of a notice only the host is shown: chat services have their secret in the
    /// path.
    #[must_use]
    pub fn shown_url(&self) -> Option<String> {
        let url = &self.http.as_ref()?.url;
        Some(if self.is_notice() { mask_after_host(url) } else { mask_url(url) })
    }
}

/// Secrets that begin with this are put into the body's `routing_key` when it is sent, and sign nothing: the stored
/// body is shown to whoever may read jobs.
pub(crate) const BODY_SECRET: &str = "body:";
/// What the stored body has instead of the key.
const SECRET_PLACE: &str = "***";

/// The same for every retry of a notice, another for each notice.
fn webhook_id(news: News, alert: &Alert) -> String {
    let Alert { rule, subject, incident, .. } = alert;
    let id = match (news, alert.notified_at) {
        (News::Reminder, Some(at)) => format!("msg_alert_{rule}_{subject}_{incident}_reminder_{}", at.as_millis()),
        _ => format!("msg_alert_{rule}_{subject}_{incident}_{}", alert.status.as_str()),
    };
    id.replace(|c: char| !c.is_ascii_alphanumeric(), "_")
}

/// A text, or nothing if it is empty.
fn filled(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}

/// Windlass's own form.
fn plain(news: News, alert: &Alert, installation: &str, now: Timestamp) -> Value {
    json!({
        "type": news.event(),
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
    })
}

/// A text for those who see only the text, and an attachment with the facts.
fn slack(news: News, alert: &Alert, installation: &str, now: Timestamp) -> Value {
    let color = match news {
        News::Fired | News::Reminder => "danger",
        News::Resolved => "good",
        News::Test => "#808080",
    };
    let field = |title: &str, value: &str| json!({ "title": title, "value": escaped(value), "short": true });
    let mut fields = vec![field("rule", &alert.rule), field("measure", &alert.measure)];
    fields.extend(filled(&alert.queue).map(|queue| field("queue", queue)));
    fields.extend(filled(&alert.tenant).map(|tenant| field("tenant", tenant)));
    fields.push(field("since", &alert.since.to_string()));
    let summary = escaped(&summary(news, alert));
    json!({
        "text": summary,
        "attachments": [{
            "color": color,
            "fallback": summary,
            "fields": fields,
            "footer": format!("windlass {installation}, incident {}", alert.incident),
            "ts": (now.as_millis() / 1000).to_string(),
        }],
    })
}

/// The same `dedup_key` for all notices of an incident, so that a reminder is no second incident and the end closes it.
fn pager_duty(news: News, alert: &Alert, installation: &str, now: Timestamp) -> Value {
    let (action, severity) = match news {
        News::Fired | News::Reminder => ("trigger", "error"),
        News::Resolved => ("resolve", "error"),
        News::Test => ("trigger", "info"),
    };
    let mut payload = json!({
        "summary": summary(news, alert).chars().take(MAX_SUMMARY).collect::<String>(),
        "source": format!("windlass {installation}"),
        "severity": severity,
        "timestamp": now.to_string(),
        "class": alert.measure,
        "custom_details": plain(news, alert, installation, now)["data"],
    });
    // What is not known must be absent, not null.
    for (field, text) in [("component", &alert.queue), ("group", &alert.tenant)] {
        if let Some(text) = filled(text) {
            payload[field] = json!(text);
        }
    }
    json!({
        ROUTING_KEY: SECRET_PLACE,
        "event_action": action,
        "dedup_key": format!("windlass/{installation}/{}/{}/{}", alert.rule, alert.subject, alert.incident),
        "payload": payload,
    })
}

fn summary(news: News, alert: &Alert) -> String {
    let queue = filled(&alert.queue).map_or_else(String::new, |queue| format!(" (queue {queue})"));
    let Alert { rule, detail, .. } = alert;
    match news {
        News::Fired => format!("Alert {rule} fires: {detail}{queue}"),
        News::Reminder => format!("Alert {rule} still fires: {detail}{queue}"),
        News::Resolved => format!("Alert {rule} is resolved{queue}"),
        News::Test => format!("Windlass: {detail}"),
    }
}

/// Slack reads `<…>` as links and commands.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests;
