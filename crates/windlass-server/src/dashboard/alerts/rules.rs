//! Alert rules on the page: set, turned off and reset without a restart.

use crate::dashboard::error::PageError;
use crate::dashboard::form::{Action, Form};
use crate::dashboard::frame::back;
use crate::http::App;
use axum::extract::State;
use axum::response::Response;
use serde_json::{Map, Value};
use windlass::alert::{Measure, Rule, default_rules};
use windlass::client::{RuleFault, SettingSource};
use windlass_core::Millis;

/// The longest name of a rule.
const MAX_NAME: usize = 64;
/// The fields of a rule that are texts, as the form has them.
const TEXTS: [&str; 7] = ["measure", "for", "queue", "tenant", "window", "remind", "quiet"];

pub(super) struct RuleRow {
    pub(super) name: String,
    pub(super) measure: &'static str,
    pub(super) threshold: String,
    pub(super) lasting: String,
    pub(super) min_count: u64,
    pub(super) queue: Option<String>,
    pub(super) tenant: Option<String>,
    /// Who is notified, how often, and when not.
    pub(super) notices: String,
    pub(super) source: String,
    pub(super) is_off: bool,
    /// An operator set it or turned it off.
    pub(super) can_reset: bool,
}

impl RuleRow {
    fn new(rule: Rule, source: Option<&SettingSource>) -> Self {
        let threshold = match rule.measure {
            Measure::DeadLetters | Measure::Exhausted => format!("{} jobs", rule.threshold),
            Measure::RetryRate => format!("{} %", rule.threshold),
            Measure::OpenBreakers => format!("{} breakers", rule.threshold),
            Measure::Backoff | Measure::OldestDue | Measure::Holds => Millis::new(rule.threshold).to_string(),
        };
        let notices = notices(&rule);
        let can_reset = source == Some(&SettingSource::Operator);
        let source = match source {
            None => "default".to_owned(),
            Some(SettingSource::Operator) => "an operator".to_owned(),
            Some(SettingSource::Node { node, origin }) => format!("{origin} of {node}"),
        };
        Self {
            name: rule.name,
            measure: rule.measure.as_str(),
            threshold,
            lasting: rule.lasting.to_string(),
            min_count: rule.min_count,
            notices,
            queue: rule.queue,
            tenant: rule.tenant,
            source,
            is_off: false,
            can_reset,
        }
    }
}

fn notices(rule: &Rule) -> String {
    let mut parts = vec![if rule.notify.is_empty() { "all".to_owned() } else { rule.notify.join(", ") }];
    parts.extend(rule.remind.map(|interval| format!("again every {interval}")));
    parts.extend(rule.quiet.as_ref().map(|hours| format!("not {hours}")));
    parts.join("; ")
}

/// The rules that are judged, and the default rules that are not.
pub(super) async fn rows(app: &App) -> Result<Vec<RuleRow>, PageError> {
    let rules = app.windlass().alerts().rules().await?;
    // Rules in a node's file replace the default rules. Without such rules, a missing default rule was turned off.
    let is_replaced = rules.iter().any(|(_, source)| matches!(source, Some(SettingSource::Node { .. })));
    let mut rows: Vec<RuleRow> = rules.into_iter().map(|(rule, source)| RuleRow::new(rule, source.as_ref())).collect();
    for rule in default_rules() {
        if !is_replaced && !rows.iter().any(|row| row.name == rule.name) {
            rows.push(RuleRow { is_off: true, ..RuleRow::new(rule, Some(&SettingSource::Operator)) });
        }
    }
    rows.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(rows)
}

pub(super) async fn set(State(app): State<App>, action: Action) -> Result<Response, PageError> {
    let name = name(&action)?;
    let fields = fields(&action.form)?;
    app.check_notified(&fields).map_err(|detail| PageError::bad(format!("notify: {detail}")))?;
    let rule = app.windlass().alerts().by(&action.visitor.caller.by).set_rule(&name, &fields).await;
    rule.map_err(|fault| match fault {
        RuleFault::Store(error) => PageError::from(error),
        RuleFault::Rule(wrong) => PageError::bad(wrong.to_string()),
        other => PageError::bad(other.to_string()),
    })?;
    Ok(back(&app, "/alerts", &format!("The rule {name} is set. All nodes follow it within seconds.")))
}

pub(super) async fn turn_off(State(app): State<App>, action: Action) -> Result<Response, PageError> {
    let name = name(&action)?;
    app.windlass().alerts().by(&action.visitor.caller.by).turn_off_rule(&name).await?;
    Ok(back(&app, "/alerts", &format!("The rule {name} is off.")))
}

pub(super) async fn reset(State(app): State<App>, action: Action) -> Result<Response, PageError> {
    let name = name(&action)?;
    app.windlass().alerts().by(&action.visitor.caller.by).reset_rule(&name).await?;
    Ok(back(&app, "/alerts", &format!("The rule {name} is as files and defaults say.")))
}

/// The rule that an administrator of all tenants names.
fn name(action: &Action) -> Result<String, PageError> {
    action.visitor.need_admin()?;
    action.visitor.for_all_tenants()?;
    let is_name = |text: &&str| {
        text.len() <= MAX_NAME && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
    };
    let form = format!("name: must be 1 to {MAX_NAME} letters, digits, dots, dashes or underscores");
    action.form.text("name").filter(is_name).map(str::to_owned).ok_or_else(|| PageError::bad(form))
}

/// The fields that were filled in. A threshold is a number or a duration, whichever it reads as.
fn fields(form: &Form) -> Result<Map<String, Value>, PageError> {
    let mut fields = Map::new();
    for name in TEXTS {
        if let Some(text) = form.text(name) {
            fields.insert(name.into(), text.into());
        }
    }
    if let Some(names) = form.text("notify") {
        let names: Vec<&str> = names.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
        fields.insert("notify".into(), names.into());
    }
    if let Some(text) = form.text("threshold") {
        fields.insert("threshold".into(), text.parse::<u64>().map_or_else(|_| text.into(), Value::from));
    }
    if let Some(count) = form.parsed("minCount", |text| text.parse::<u64>().map_err(|_| "must be a whole number"))? {
        fields.insert("minCount".into(), count.into());
    }
    Ok(fields)
}
