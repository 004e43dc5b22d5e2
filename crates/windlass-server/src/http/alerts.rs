//! Alert rules: set, list, remove and test them without a restart. Only for callers for all tenants.

use super::app::App;
use super::auth::{Admin, May, Read};
use super::input::body::Body;
use super::output::page::Listing;
use super::output::problem::{Fault, Kind, Problem, ProblemBody};
use axum::Json;
use axum::extract::{Path, State};
use hyper::StatusCode;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use windlass::alert::{NoticeForm, Rule};
use windlass::client::{RuleFault, SettingSource};
use windlass::http::{mask_after_host, mask_url};

/// The longest name of a rule.
const MAX_NAME: usize = 64;

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(put, remove)).routes(routes!(test))
}

/// An alert rule. Omitted fields are those of the default rule of its measure.
#[derive(Debug, ToSchema)]
#[schema(as = NewAlertRule, rename_all = "camelCase", example = json!({"measure": "oldest_due", "threshold": "2m", "for": "5m", "queue": "email"}))]
#[expect(dead_code, reason = "documents what `put` accepts")]
pub(crate) struct RuleBody {
    /// What it measures: `dead_letters`, `retry_rate`, `exhausted`, `backoff`, `oldest_due`, `open_breakers` or
    /// `holds`. May be omitted if the rule's name is one of them.
    #[schema(pattern = "^(dead_letters|retry_rate|exhausted|backoff|oldest_due|open_breakers|holds)$")]
    measure: Option<String>,
    /// From where on it holds: a number of jobs or breakers, a percentage for `retry_rate`, a duration for `backoff`,
    /// `oldest_due` and `holds`.
    #[schema(value_type = Option<super::openapi::types::AnyJson>)]
    threshold: Option<Value>,
    /// How long it must hold before the alert fires.
    #[schema(value_type = Option<super::openapi::types::Duration>)]
    r#for: Option<String>,
    /// For rates: the least number of attempts that count.
    min_count: Option<u64>,
    /// Only this queue; all if absent.
    #[schema(value_type = Option<super::openapi::types::QueueName>)]
    queue: Option<String>,
    /// Only this tenant; all if absent.
    #[schema(value_type = Option<super::openapi::types::TenantName>)]
    tenant: Option<String>,
    /// How far back `retry_rate`, `exhausted` and `backoff` look: 1m to 24h.
    #[schema(value_type = Option<super::openapi::types::Duration>)]
    window: Option<String>,
    /// The names of the operators to notify (see `alerts.urls`); all if absent or empty.
    notify: Option<Vec<String>>,
    /// How often operators are reminded while the alert fires; never if absent.
    #[schema(value_type = Option<super::openapi::types::Duration>)]
    remind: Option<String>,
    /// When nobody is notified of an alert that fires, such as `22:00-07:00 Europe/Berlin`. If it still fires
    /// afterwards, it is reported then.
    quiet: Option<String>,
    /// True: the rule of this name is not judged. Give no other field with it.
    off: Option<bool>,
}

/// An alert rule that the nodes judge.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = AlertRule)]
pub(crate) struct RuleView {
    /// The rule's name, which its alerts and notices carry.
    name: String,
    /// `dead_letters`, `retry_rate`, `exhausted`, `backoff`, `oldest_due`, `open_breakers` or `holds`
    measure: &'static str,
    /// A number, or a duration.
    #[schema(value_type = super::openapi::types::AnyJson)]
    threshold: Value,
    /// How long it must hold before the alert fires.
    r#for: String,
    /// For rates: the least number of attempts that count.
    min_count: u64,
    /// Only this queue; null for all.
    queue: Option<String>,
    /// Only this tenant; null for all.
    tenant: Option<String>,
    /// How far back rates and counts look.
    window: String,
    /// The names of the operators to notify; empty for all.
    notify: Vec<String>,
    /// How often operators are reminded while the alert fires; null for never.
    remind: Option<String>,
    /// When nobody is notified of an alert that fires.
    quiet: Option<String>,
    /// Who set it: `default`, `operator` (by API or command line), or where in a node's file.
    source: String,
    /// True: it is turned off and not judged.
    off: bool,
}

/// A rule that was set or turned off.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
#[schema(as = AlertRuleAnswer)]
pub(crate) enum RuleAnswer {
    Set(Box<RuleView>),
    Off(OffView),
}

/// A rule that was turned off.
#[derive(Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)] // In the document it has no other fields, so that a whole rule is not one of these.
#[schema(as = AlertRuleOff)]
pub(crate) struct OffView {
    /// The rule's name.
    name: String,
    /// Always true.
    off: bool,
}

/// Notices that were sent as a test.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = AlertTest)]
pub(crate) struct TestView {
    /// The jobs that carry the notices, one for each URL.
    items: Vec<NoticeView>,
}

/// A notice on its way to an operator.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = AlertNotice)]
pub(crate) struct NoticeView {
    /// The job that carries the notice.
    job_id: i64,
    /// The operator's name.
    name: String,
    /// The form of the notice: `json`, `slack` or `pagerduty`.
    form: &'static str,
    /// Where it goes, without secrets.
    url: String,
}

/// List the alert rules in force.
#[utoipa::path(get, path = "/api/v1/alerts/rules", operation_id = "listAlertRules", tag = "fleet",
    responses((status = 200, body = Listing<RuleView>)))]
async fn list(State(app): State<App>, caller: May<Read>) -> Result<Json<Listing<RuleView>>, Problem> {
    caller.for_all_tenants()?;
    let alerts = app.windlass().alerts();
    let mut rules: Vec<RuleView> =
        alerts.rules().await?.into_iter().map(|(rule, source)| RuleView::new(&rule, source.as_ref(), false)).collect();
    let off = alerts.rules_turned_off().await?;
    rules.extend(off.iter().map(|rule| RuleView::new(rule, Some(&SettingSource::Operator), true)));
    rules.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(Json(Listing::whole(rules)))
}

/// Set an alert rule.
///
/// Adds it, or changes the one of this name. All nodes judge it within seconds. `{"off":true}` disables a rule, even
/// one from a file.
#[utoipa::path(put, path = "/api/v1/alerts/rules/{name}", operation_id = "setAlertRule", tag = "fleet",
    params(("name" = String, Path, description = "The rule's name")), request_body = RuleBody,
    responses((status = 200, body = RuleAnswer), (status = 404, body = ProblemBody), (status = 422, body = ProblemBody)))]
async fn put(
    State(app): State<App>,
    caller: May<Admin>,
    path: Path<String>,
    body: Body,
) -> Result<Json<RuleAnswer>, Problem> {
    caller.for_all_tenants()?;
    let name = checked(&path.0)?;
    let fields: Map<String, Value> = match serde_json::from_str(body.json()?.get()) {
        Ok(Value::Object(fields)) => fields,
        Ok(_) | Err(_) => return Err(Problem::field("", "must be an object with the fields of a rule")),
    };
    let alerts = app.windlass().alerts().by(&caller.by);
    let rule = match fields.get("off") {
        None | Some(Value::Bool(false)) => {
            let mut fields = fields;
            fields.remove("off");
            app.check_notified(&fields).map_err(|detail| Problem::field("/notify", detail))?;
            alerts.set_rule(name, &fields).await.map_err(refused)?
        }
        Some(Value::Bool(true)) if fields.len() == 1 => {
            if !alerts.turn_off_rule(name).await? {
                return Err(Problem::not_found("alert rule", name));
            }
            return Ok(Json(RuleAnswer::Off(OffView { name: name.to_owned(), off: true })));
        }
        Some(_) => return Err(Problem::field("/off", "must be true, without other fields, or false")),
    };
    Ok(Json(RuleAnswer::Set(Box::new(RuleView::new(&rule, Some(&SettingSource::Operator), false)))))
}

/// Remove what operators set for an alert rule.
///
/// The rule of this name in a node's file, or the default rule, is judged again; without either the rule is gone.
#[utoipa::path(delete, path = "/api/v1/alerts/rules/{name}", operation_id = "removeAlertRule", tag = "fleet",
    params(("name" = String, Path, description = "The rule's name")),
    responses((status = 204), (status = 404, body = ProblemBody), (status = 422, body = ProblemBody)))]
async fn remove(State(app): State<App>, caller: May<Admin>, path: Path<String>) -> Result<StatusCode, Problem> {
    caller.for_all_tenants()?;
    let name = checked(&path.0)?;
    if app.windlass().alerts().by(&caller.by).reset_rule(name).await? {
        Ok(StatusCode::NO_CONTENT)
    } else {
        let detail = format!("no operator has set the alert rule {name}, so there is nothing to remove");
        Err(Problem::new(Kind::NotFound, detail))
    }
}

/// Send one test notice to each of the operators' URLs.
///
/// The notices are jobs of the queue `alerts`, signed and retried like every notice. They say `alert.test`.
#[utoipa::path(post, path = "/api/v1/alerts/test", operation_id = "testAlerts", tag = "fleet",
    responses((status = 202, body = TestView),
        (status = 409, description = "This node has no URLs to notify (alerts.urls)", body = ProblemBody)))]
async fn test(State(app): State<App>, caller: May<Admin>) -> Result<(StatusCode, Json<TestView>), Problem> {
    caller.for_all_tenants()?;
    if app.operators().is_empty() {
        return Err(Problem::conflict("this node has no URLs to notify; set alerts.urls in its configuration"));
    }
    let jobs = app.windlass().alerts().by(&caller.by).test(app.operators()).await?;
    let items = jobs.iter().zip(app.operators());
    let items = items.map(|(job, operator)| NoticeView {
        job_id: job.0,
        name: operator.name.clone(),
        form: operator.form.as_str(),
        url: match operator.form {
            NoticeForm::Slack => mask_after_host(&operator.url),
            NoticeForm::Json | NoticeForm::PagerDuty => mask_url(&operator.url),
        },
    });
    let items = items.collect();
    Ok((StatusCode::ACCEPTED, Json(TestView { items })))
}

fn checked(name: &str) -> Result<&str, Problem> {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b" ._:-".contains(&b);
    let begins = name.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric());
    let is_name = begins && name.len() <= MAX_NAME && name.bytes().all(is_plain);
    if is_name {
        Ok(name)
    } else {
        Err(Problem::new(
            Kind::Invalid,
            format!("a rule's name matches [A-Za-z0-9][A-Za-z0-9 ._:-]{{0,{}}}", MAX_NAME - 1),
        ))
    }
}

fn refused(fault: RuleFault) -> Problem {
    match fault {
        RuleFault::Rule(error) => {
            let detail = error.form.trim_start_matches(": ").to_owned();
            Problem::invalid(vec![Fault { pointer: format!("/{}", error.field), detail }])
        }
        RuleFault::Store(error) => error.into(),
        other => Problem::new(Kind::Internal, other.to_string()),
    }
}

impl RuleView {
    fn new(rule: &Rule, source: Option<&SettingSource>, off: bool) -> Self {
        let stored = rule.to_json();
        Self {
            name: rule.name.clone(),
            measure: rule.measure.as_str(),
            threshold: stored["threshold"].clone(),
            r#for: rule.lasting.to_string(),
            min_count: rule.min_count,
            queue: rule.queue.clone(),
            tenant: rule.tenant.clone(),
            window: rule.window.to_string(),
            notify: rule.notify.clone(),
            remind: rule.remind.map(|interval| interval.to_string()),
            quiet: rule.quiet.as_ref().map(ToString::to_string),
            source: match source {
                None => "default".into(),
                Some(SettingSource::Operator) => "operator".into(),
                Some(SettingSource::Node { origin, .. }) => origin.clone(),
            },
            off,
        }
    }
}
