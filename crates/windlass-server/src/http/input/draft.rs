//! Reads job bodies into drafts: the native form, and the forms of families C and D.

use crate::http::auth::Caller;
use crate::http::input::fields::{Fields, is_clean, kind_of};
use crate::http::openapi::types;
use crate::http::output::problem::Problem;
use serde_json::{Map, Value};
use std::sync::Arc;
use utoipa::ToSchema;
use windlass::RunAt;
use windlass::http::MAX_HEADERS;
use windlass::protocol::{Catalogue, DEFAULT_KEY_WINDOW, Draft, HttpCall, Idempotency, KeyWindow, NewJob};
use windlass_core::job::{Kind, QueueName, Tenant};
use windlass_core::policy::{FAMILY_FIELDS, Partial};
use windlass_core::{Delivery, Millis, Priority, Timestamp};

/// The fields of a job, including other systems' names for them, but without [`FAMILY_FIELDS`].
pub(crate) const JOB_FIELDS: &[&str] = &[
    "kind",
    "queue",
    "payload",
    "tenantId",
    "priority",
    "runAt",
    "delay",
    "retry",
    "delivery",
    "timeout",
    "startBy",
    "idempotencyKey",
    "idempotencyWindow",
    "limitKey",
    "webhook",
    "http",
    "jobName",
    "api",
    "type",
];
/// The default method of an HTTP job.
const DEFAULT_METHOD: &str = "POST";
/// The default kind of an HTTP job.
const HTTP_KIND: &str = "http";

/// A job to store. Workers run a plain job; Windlass itself runs a job with `http`. A policy may also be written with
/// other systems' names (`maxRetries`, `retryDelay`, `maxRetryCount`, …) next to the other fields.
#[derive(Debug, ToSchema)]
#[schema(as = NewJob, rename_all = "camelCase", example = json!({"kind": "email", "queue": "email", "payload": {"to": "ann@example.com"}, "retry": "full-jitter"}))]
#[expect(dead_code, reason = "documents what `read` accepts; a test compares the two")]
pub(crate) struct JobBody {
    /// Chooses the handler; required unless there is `http`.
    #[schema(value_type = Option<types::KindName>)]
    kind: Option<String>,
    /// `default` if absent.
    #[schema(value_type = Option<types::QueueName>)]
    queue: Option<String>,
    /// Any JSON value up to 256 KiB; passed on byte for byte.
    #[schema(value_type = types::AnyJson, required = false)]
    payload: Option<Value>,
    /// Only with a token for all tenants.
    #[schema(value_type = Option<types::TenantName>)]
    tenant_id: Option<String>,
    /// lowest, low, normal, high, highest, or -2 to 2
    #[schema(value_type = Option<types::PriorityInput>)]
    priority: Option<String>,
    /// When to run; or give `delay`.
    #[schema(value_type = Option<types::Moment>)]
    run_at: Option<String>,
    /// How long to wait: `30s`, or milliseconds.
    #[schema(value_type = Option<types::Duration>)]
    delay: Option<String>,
    /// A policy's name, line or object.
    #[schema(value_type = Option<types::PolicyInput>)]
    retry: Option<Value>,
    /// `AT_LEAST_ONCE` if absent.
    #[schema(pattern = "^AT_(LEAST|MOST)_ONCE$")]
    delivery: Option<String>,
    /// The longest an attempt may take.
    #[schema(value_type = Option<types::Duration>)]
    timeout: Option<String>,
    /// The job fails (`expired`) if it has not started by then.
    #[schema(value_type = Option<types::Moment>)]
    start_by: Option<String>,
    /// A second job with the same key is not stored; the answer is the first job.
    #[schema(min_length = 1, max_length = 255)]
    idempotency_key: Option<String>,
    /// How long the key is kept: a duration, or `live`. 24 h if absent.
    idempotency_window: Option<String>,
    /// What per-key limits, holds and breakers apply to.
    #[schema(min_length = 1, max_length = 128)]
    limit_key: Option<String>,
    /// The webhook to send when the job finishes: `{url, events, secret, policy}`.
    #[schema(value_type = Option<types::WebhookInput>)]
    webhook: Option<Value>,
    /// A call to a URL: `{url, method, headers}`; the payload is its body.
    #[schema(value_type = Option<types::HttpInput>)]
    http: Option<Value>,
    /// Another system's name for `kind`.
    #[schema(value_type = Option<types::KindName>)]
    job_name: Option<String>,
    /// Another system's name for `http.url`.
    api: Option<String>,
    /// Another system's name for `delivery`.
    #[schema(pattern = "^AT_(LEAST|MOST)_ONCE$")]
    r#type: Option<String>,
}

/// The values that a request gives in its headers.
#[derive(Debug, Clone, Default)]
pub(crate) struct RequestHeaders {
    pub(crate) key: Option<String>,
    pub(crate) traceparent: Option<Arc<str>>,
}

/// Reads a job's fields. `None` if a field is wrong; the fault is then recorded.
///
/// # Errors
/// The job names a tenant or queue that is not the caller's.
pub(crate) fn read(
    fields: &Fields<'_>,
    caller: &Caller,
    catalogue: &Catalogue,
    headers: &RequestHeaders,
) -> Result<Option<Draft>, Problem> {
    let tenant = caller.tenant(fields.parsed("tenantId", Tenant::new))?;
    let http = call(fields);
    let kind = kind(fields, http.is_some());
    let payload = payload(fields, "payload");
    let draft = Draft {
        tenant,
        queue: fields.parsed("queue", QueueName::new),
        priority: priority(fields).unwrap_or_default(),
        run_at: run_at(fields),
        start_by: fields.moment("startBy"),
        retry: retry(fields, catalogue),
        delivery: delivery(fields),
        timeout: fields.duration("timeout"),
        idempotency: idempotency(fields, headers),
        http,
        webhook: webhook(fields, catalogue),
        traceparent: headers.traceparent.clone(),
        limit_key: fields.text("limitKey"),
        ..Draft::new(kind.clone().unwrap_or_else(http_kind), payload)
    };
    if kind.is_none() || !fields.faults().is_empty() {
        return Ok(None);
    }
    caller.check_queue(&draft.queue.clone().unwrap_or_default())?;
    Ok(Some(draft))
}

/// Completes a draft. Records a fault at the pointer of the wrong field in the body.
pub(crate) fn complete(fields: &Fields<'_>, catalogue: &Catalogue, draft: Draft) -> Option<NewJob> {
    match catalogue.complete(draft) {
        Ok(job) => Some(job),
        Err(error) => {
            fields.faults().add(draft_pointer(fields, &error.field), error.message);
            None
        }
    }
}

/// Other systems' names are next to the job's fields, not under `retry` or `http`.
fn draft_pointer(fields: &Fields<'_>, path: &str) -> String {
    if path.starts_with("http/") && fields.has("api") {
        return fields.pointer("api");
    }
    let family = path.strip_prefix("retry/").filter(|name| FAMILY_FIELDS.contains(name) && fields.has(name));
    format!("{}/{}", fields.at(), family.unwrap_or(path))
}

fn http_kind() -> Kind {
    Kind::new(HTTP_KIND).expect("the kind of HTTP jobs is a name")
}

fn kind(fields: &Fields<'_>, is_http: bool) -> Option<Kind> {
    if fields.has("kind") && fields.has("jobName") {
        fields.fault("jobName", "is another name for `kind`; give one of them");
    }
    let name = if fields.has("jobName") { "jobName" } else { "kind" };
    if !fields.has(name) && is_http {
        return Some(http_kind());
    }
    fields.needed("kind", fields.parsed(name, Kind::new), "the name of the handler (or give `http` to call a URL)")
}

/// The field's JSON text, byte for byte.
pub(crate) fn payload(fields: &Fields<'_>, name: &str) -> String {
    let Some(raw) = fields.raw(name) else { return "null".into() };
    if !is_clean(raw.get()) {
        fields.fault(name, "contains an unpaired surrogate, which is not a character");
    }
    raw.get().to_owned()
}

fn call(fields: &Fields<'_>) -> Option<HttpCall> {
    if let Some(url) = fields.text("api") {
        if fields.has("http") {
            fields.fault("api", "is another name for `http.url`; give one of them");
        }
        return Some(HttpCall {
            method: DEFAULT_METHOD.into(),
            url,
            headers: Vec::new(),
            secret: None,
            webhook_id: None,
        });
    }
    let http = fields.object("http")?;
    http.refuse_unknown(&["url", "method", "headers"]);
    let url = http.needed("url", http.text("url"), "an http or https URL")?;
    let method = http.text("method").unwrap_or_else(|| DEFAULT_METHOD.into());
    Some(HttpCall { method, url, headers: headers(&http), secret: None, webhook_id: None })
}

fn headers(http: &Fields<'_>) -> Vec<(String, String)> {
    let Some(headers) = http.object("headers") else { return Vec::new() };
    let names: Vec<String> = headers.names().map(str::to_owned).collect();
    if names.len() > MAX_HEADERS {
        http.fault("headers", format!("has {} headers; at most {MAX_HEADERS} are accepted", names.len()));
        return Vec::new();
    }
    names.into_iter().filter_map(|name| headers.text(&name).map(|value| (name, value))).collect()
}

pub(crate) fn priority(fields: &Fields<'_>) -> Option<Priority> {
    const FORM: &str = "lowest, low, normal, high, highest, or a whole number from -2 to 2";
    let raw = fields.raw("priority")?;
    if raw.get().starts_with('"') {
        return fields.word("priority", Priority::parse, FORM);
    }
    let priority = raw.get().parse().ok().and_then(Priority::from_rank);
    if priority.is_none() {
        fields.fault("priority", format!("must be {FORM}"));
    }
    priority
}

fn run_at(fields: &Fields<'_>) -> RunAt {
    if fields.has("runAt") && fields.has("delay") {
        fields.fault("delay", "contradicts `runAt`; give one of them");
    }
    let after = fields.duration("delay").map(RunAt::After);
    fields.moment("runAt").map(RunAt::At).or(after).unwrap_or(RunAt::Now)
}

/// The new time of a waiting job.
pub(crate) fn new_run_at(fields: &Fields<'_>, now: Timestamp) -> Option<Timestamp> {
    (fields.has("runAt") || fields.has("delay")).then(|| run_at(fields).moment(now))
}

pub(crate) fn delivery(fields: &Fields<'_>) -> Delivery {
    const FORM: &str = "AT_LEAST_ONCE or AT_MOST_ONCE";
    let own = fields.word("delivery", Delivery::parse, FORM);
    let foreign = fields.word("type", Delivery::parse, FORM);
    if own.is_some() && foreign.is_some() && own != foreign {
        fields.fault("type", "contradicts `delivery`; give one of them");
    }
    own.or(foreign).unwrap_or(Delivery::AtLeastOnce)
}

/// `retry`, with other systems' names next to it or instead of it.
pub(crate) fn retry(fields: &Fields<'_>, catalogue: &Catalogue) -> Partial {
    let mut object = match fields.value("retry") {
        None => Map::new(),
        Some(Value::Object(object)) => object,
        Some(line @ Value::String(_)) => Map::from_iter([("policy".to_owned(), line)]),
        Some(_) => {
            let what = fields.raw("retry").map_or("null", kind_of);
            fields.fault("retry", format!("must be a policy's name, line or object, not {what}"));
            return Partial::default();
        }
    };
    for name in FAMILY_FIELDS.iter().filter(|name| fields.has(name)) {
        if object.contains_key(*name) {
            fields.fault(name, "is given under `retry` too; give it once");
        }
        object.insert((*name).to_owned(), fields.value(name).unwrap_or_default());
    }
    if object.is_empty() {
        return Partial::default();
    }
    // The error of a line contains its own position.
    let alone = object.len() == 1 && fields.raw("retry").is_some_and(|raw| raw.get().starts_with('"'));
    let value = if alone { object.remove("policy").unwrap_or_default() } else { Value::Object(object) };
    catalogue.read(&value).unwrap_or_else(|error| {
        let path = if error.field.is_empty() { "retry".to_owned() } else { format!("retry/{}", error.field) };
        let pointer = if alone { fields.pointer("retry") } else { draft_pointer(fields, &path) };
        let reported = windlass_core::PolicyError { field: if alone { error.field } else { String::new() }, ..error };
        fields.faults().add(pointer, reported.to_string());
        Partial::default()
    })
}

fn webhook(fields: &Fields<'_>, catalogue: &Catalogue) -> Option<windlass::client::WebhookDraft> {
    let value = fields.value("webhook")?;
    let read = catalogue.read_webhook(&value);
    read.map_err(|error| {
        let at = fields.pointer("webhook");
        let pointer = if error.field.is_empty() { at } else { format!("{at}/{}", error.field) };
        fields.faults().add(pointer, error.message);
    })
    .ok()
}

fn idempotency(fields: &Fields<'_>, headers: &RequestHeaders) -> Option<Idempotency> {
    let window = fields.parsed("idempotencyWindow", |text| match text {
        "live" => Ok(KeyWindow::Live),
        _ => Millis::parse(text).map(KeyWindow::For),
    });
    let key = fields.text("idempotencyKey").or_else(|| headers.key.clone());
    if key.is_none() && fields.has("idempotencyWindow") {
        fields.fault("idempotencyWindow", "has no effect without an `idempotencyKey`");
    }
    let window = window.unwrap_or(KeyWindow::For(DEFAULT_KEY_WINDOW));
    key.map(|key| Idempotency { key: key.into(), window })
}
