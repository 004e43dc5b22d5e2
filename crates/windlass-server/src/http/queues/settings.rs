//! PUT /queues/{name}: a queue's policy and retention, for every producer at once.

use super::{Name, Whose, whose};
use crate::http::app::App;
use crate::http::auth::{Admin, May};
use crate::http::input::body::Body;
use crate::http::input::fields::{Faults, Fields};
use crate::http::input::query::Query;
use crate::http::output::problem::{Problem, ProblemBody};
use axum::Json;
use axum::extract::State;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;
use windlass::client::catalogue::Catalogue;
use windlass::store::{Audit, Keep, SettingKey};
use windlass_core::job::{Kind, QueueName, Tenant};
use windlass_core::policy::Role;

/// The settings of a queue; what is left out goes back to its default.
#[derive(Debug, ToSchema)]
#[schema(as = QueueSettings)]
#[expect(dead_code, reason = "documents what `put` accepts")]
pub(crate) struct SettingsBody {
    /// A policy's name, line or object.
    #[schema(value_type = Option<Object>)]
    policy: Option<Value>,
    /// How long finished jobs are kept: `{"succeeded":"7d","cancelled":"7d","failed":"forever"}`; `0` drops them on finish.
    #[schema(value_type = Option<Object>)]
    retention: Option<Value>,
}

/// The settings as stored.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SettingsView {
    name: String,
    /// `*` for every tenant.
    tenant_id: String,
    #[schema(value_type = Object)]
    settings: Value,
}

/// Set a queue's policy and retention.
///
/// Jobs stored before keep the policy they were stored with. `?tenant=*` sets it for every tenant.
#[utoipa::path(put, path = "/api/v1/queues/{name}", tag = "queues",
    params(("name" = String, Path), ("tenant" = Option<String>, Query)), request_body = SettingsBody,
    responses((status = 200, body = SettingsView), (status = 422, body = ProblemBody)))]
pub(crate) async fn put(
    State(app): State<App>,
    caller: May<Admin>,
    name: Name,
    query: Query,
    body: Body,
) -> Result<Json<SettingsView>, Problem> {
    query.only(&["tenant"])?;
    let tenant = match whose(&query, &caller)? {
        Whose::Of(tenant) => Some(tenant),
        Whose::Everyones => None,
    };
    let catalogue = app.catalogue().await?;
    let settings = read(&body, &catalogue, tenant.as_ref(), &name.0)?;
    let key = SettingKey::Queue { tenant: tenant.clone(), name: name.0.to_string() };
    let text = settings.to_string();
    let is_default = settings.as_object().is_none_or(Map::is_empty);
    app.windlass().put_setting(&key, (!is_default).then_some(text.as_str())).await?;
    let shown = tenant.map_or_else(|| "*".to_owned(), |tenant| tenant.to_string());
    let detail = format!("queue {} of {shown}: {text}", name.0);
    let audit = Audit { at: app.now(), by: caller.by.clone(), action: "set queue".into(), count: 1, detail };
    app.store().audit(&audit).await?;
    Ok(Json(SettingsView { name: name.0.to_string(), tenant_id: shown, settings }))
}

fn read(body: &Body, catalogue: &Catalogue, tenant: Option<&Tenant>, queue: &QueueName) -> Result<Value, Problem> {
    let faults = Faults::default();
    let Some(fields) = Fields::open(body.json()?, "", &faults) else { return Err(faults.problem()) };
    fields.refuse_unknown(&["policy", "retention"]);
    let mut settings = Map::new();
    if let Some(policy) = fields.value("policy") {
        check_policy(&fields, catalogue, tenant, queue, &policy);
        settings.insert("policy".into(), policy);
    }
    if let Some(retention) = fields.object("retention") {
        retention.refuse_unknown(&["succeeded", "cancelled", "failed"]);
        let mut kept = Map::new();
        for name in ["succeeded", "cancelled", "failed"] {
            let keep = retention.word(name, Keep::parse, "a duration such as 7d, 0 to drop on finish, or forever");
            kept.extend(keep.map(|keep| (name.to_owned(), Value::String(keep.to_string()))));
        }
        settings.insert("retention".into(), Value::Object(kept));
    }
    faults.finish()?;
    Ok(Value::Object(settings))
}

/// A queue's policy must make whole policies of the jobs that say nothing themselves.
fn check_policy(
    fields: &Fields<'_>,
    catalogue: &Catalogue,
    tenant: Option<&Tenant>,
    queue: &QueueName,
    policy: &Value,
) {
    let kind = Kind::new("any").expect("any is a kind's name");
    let whole = catalogue
        .read(policy)
        .and_then(|own| catalogue.effective(tenant.unwrap_or(&Tenant::default()), queue, &kind, Role::Handler, &own));
    if let Err(error) = whole {
        let at = fields.pointer("policy");
        let pointer = if error.field.is_empty() || policy.is_string() { at } else { format!("{at}/{}", error.field) };
        fields.faults().add(pointer, error.to_string());
    }
}
