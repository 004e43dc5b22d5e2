//! Which parts are sealed: payloads, results, errors, notes, traces; of calls and webhooks the secret, the headers and
//! the query of the URL. Values that are not sealed (from the SQL function, or from before there was a ring) pass as
//! they are.

use super::cipher::{Belongs, Cipher, OpenError, hex};
use crate::fingerprint::place_of;
use crate::job::{HttpCall, Job, NewJob, Payload, Webhook};
use crate::store::{Commit, Schedule, ScheduleSpec, SettingKey, StoredText};
use crate::webhook::DELIVERY_KIND;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::sync::Arc;
use windlass_core::job::{Kind, Tenant};
use windlass_core::sealed::{PREFIX, Sealed, is_broken};
use windlass_core::{Attempt, JobId};

type Result<T> = std::result::Result<T, OpenError>;

/// The parameter that replaces a sealed query.
const QUERY: &str = "windlass-sealed=";
/// The header that replaces sealed headers.
const HEADERS: &str = windlass_core::sealed::PLACEHOLDER;

/// The parts of a text, if it is sealed. One that was, and is damaged, must not pass as clear text.
pub(super) fn sealed(text: &str) -> Result<Option<Sealed<'_>>> {
    if is_broken(text) { Err(OpenError::Damaged("(not readable)".into())) } else { Ok(Sealed::parse(text)) }
}

impl Cipher {
    fn open_text(&self, text: &str, belongs: Belongs<'_>) -> Result<Option<String>> {
        sealed(text)?.map(|sealed| self.open(sealed, belongs)).transpose()
    }

    fn open_field(&self, field: &mut Option<String>, belongs: Belongs<'_>) -> Result<()> {
        if let Some(text) = field.as_deref()
            && let Some(opened) = self.open_text(text, belongs)?
        {
            *field = Some(opened);
        }
        Ok(())
    }

    /// A job as it is stored.
    pub fn seal_new(&self, mut job: NewJob) -> NewJob {
        if self.ring.is_empty() {
            return job;
        }
        let is_compared = job.idempotency.is_some();
        job.payload = self.seal_payload(&job.payload, &job.tenant, &job.kind, is_compared);
        job.http = job.http.map(|call| Arc::new(self.seal_call(&call, &job.tenant)));
        job.webhook = job.webhook.map(|webhook| Arc::new(self.seal_webhook(&webhook, &job.tenant)));
        job
    }

    pub fn seal_payload(&self, payload: &str, tenant: &Tenant, kind: &Kind, is_compared: bool) -> Payload {
        let mark = is_compared.then(|| self.mark(&canonical(payload), tenant.as_str()));
        let sealed = self.seal(payload, input(tenant, kind), mark.as_deref());
        // Payloads are JSON, and so is a sealed one.
        format!("\"{sealed}\"").into()
    }

    /// A job of a schedule's template, opened.
    pub fn open_new(&self, mut job: NewJob) -> Result<NewJob> {
        if let Some(payload) = self.open_text(&job.payload, input(&job.tenant, &job.kind))? {
            job.payload = payload.into();
        }
        job.http = job.http.map(|call| self.open_call(call, &job.tenant)).transpose()?;
        job.webhook = job.webhook.map(|webhook| self.open_webhook(webhook, &job.tenant)).transpose()?;
        Ok(job)
    }

    pub fn open_job(&self, mut job: Job) -> Result<Job> {
        let opened = match self.open_text(&job.payload, input(&job.tenant, &job.kind))? {
            Some(payload) => Some(payload),
            None => self.open_report(&job.kind, &job.payload)?,
        };
        job.payload = opened.map_or(job.payload, Into::into);
        job.http = job.http.map(|call| self.open_call(call, &job.tenant)).transpose()?;
        job.webhook = job.webhook.map(|webhook| self.open_webhook(webhook, &job.tenant)).transpose()?;
        let id = job.id.to_string();
        self.open_field(&mut job.error, output(&id, "error"))?;
        if let Some(result) = &job.result
            && let Some(opened) = self.open_text(result, output(&id, "result"))?
        {
            job.result = Some(opened.into());
        }
        Ok(job)
    }

    /// The body of a delivery that a store made of a job that it could not open: it reports the job's error as it was
    /// stored, bound to that job. `None` if there is nothing to open in it.
    pub fn open_report(&self, kind: &Kind, body: &str) -> Result<Option<String>> {
        if kind.as_str() != DELIVERY_KIND || !body.contains(PREFIX) {
            return Ok(None);
        }
        let Ok(mut report) = serde_json::from_str::<Value>(body) else { return Ok(None) };
        let data = &report["data"];
        let (Some(job), Some(error)) = (data["id"].as_i64(), data["error"].as_str()) else { return Ok(None) };
        let Some(opened) = self.open_text(error, output(&job.to_string(), "error"))? else { return Ok(None) };
        report["data"]["error"] = opened.into();
        Ok(Some(report.to_string()))
    }

    pub fn open_attempt(&self, job: JobId, mut attempt: Attempt) -> Result<Attempt> {
        let id = job.to_string();
        self.open_field(&mut attempt.error, output(&id, "error"))?;
        self.open_field(&mut attempt.note, output(&id, "note"))?;
        self.open_field(&mut attempt.trace, output(&id, "trace"))?;
        Ok(attempt)
    }

    /// What an attempt left, as it is stored.
    pub fn seal_commit(&self, mut commit: Commit) -> Commit {
        if self.ring.is_empty() {
            return commit;
        }
        let id = commit.job.to_string();
        // Fingerprints stay in clear. They are made from the mark, because the store cannot read the message.
        let mark = commit.error.as_deref().map(|error| place_mark(error, commit.trace.as_deref()));
        let seal = |text: &String, field, mark: Option<&str>| self.seal(text, output(&id, field), mark);
        commit.error = commit.error.as_ref().map(|text| seal(text, "error", mark.as_deref()));
        commit.note = commit.note.as_ref().map(|text| seal(text, "note", None));
        commit.trace = commit.trace.as_ref().map(|text| seal(text, "trace", None));
        let result = |text: &Payload| format!("\"{}\"", self.seal(text, output(&id, "result"), None)).into();
        commit.result = commit.result.as_ref().map(result);
        commit.follow_ups = commit.follow_ups.into_iter().map(|job| self.seal_new(job)).collect();
        commit
    }

    pub fn seal_call(&self, call: &HttpCall, tenant: &Tenant) -> HttpCall {
        let headers = match call.headers.as_slice() {
            [] => Vec::new(),
            headers => {
                let text = serde_json::to_string(headers).unwrap_or_default();
                vec![(HEADERS.to_owned(), self.seal(&text, of_call(tenant, "headers"), None))]
            }
        };
        HttpCall {
            method: call.method.clone(),
            url: self.seal_url(&call.url, tenant),
            headers,
            secret: call.secret.as_ref().map(|secret| self.seal(secret, of_call(tenant, "secret"), None)),
            webhook_id: call.webhook_id.clone(),
        }
    }

    fn open_call(&self, call: Arc<HttpCall>, tenant: &Tenant) -> Result<Arc<HttpCall>> {
        let mut opened = (*call).clone();
        opened.url = self.open_url(&call.url, tenant)?;
        if let [(name, value)] = call.headers.as_slice()
            && name == HEADERS
            && let Some(text) = self.open_text(value, of_call(tenant, "headers"))?
        {
            opened.headers = serde_json::from_str(&text).unwrap_or_default();
        }
        self.open_field(&mut opened.secret, of_call(tenant, "secret"))?;
        Ok(if opened == *call { call } else { Arc::new(opened) })
    }

    pub fn seal_webhook(&self, webhook: &Webhook, tenant: &Tenant) -> Webhook {
        Webhook {
            url: self.seal_url(&webhook.url, tenant),
            secret: webhook.secret.as_ref().map(|secret| self.seal(secret, of_call(tenant, "secret"), None)),
            ..webhook.clone()
        }
    }

    fn open_webhook(&self, webhook: Arc<Webhook>, tenant: &Tenant) -> Result<Arc<Webhook>> {
        let mut opened = (*webhook).clone();
        opened.url = self.open_url(&webhook.url, tenant)?;
        self.open_field(&mut opened.secret, of_call(tenant, "secret"))?;
        Ok(if opened == *webhook { webhook } else { Arc::new(opened) })
    }

    /// The query and fragment are sealed; scheme, host and path stay.
    fn seal_url(&self, url: &str, tenant: &Tenant) -> String {
        match url.find(['?', '#']) {
            Some(at) if !url[at..].contains(QUERY) => {
                format!("{}?{QUERY}{}", &url[..at], self.seal(&url[at..], of_call(tenant, "url"), None))
            }
            Some(_) | None => url.to_owned(),
        }
    }

    fn open_url(&self, url: &str, tenant: &Tenant) -> Result<String> {
        let Some((place, query)) = url.split_once('?') else { return Ok(url.to_owned()) };
        let sealed = query.strip_prefix(QUERY).map(|text| self.open_text(text, of_call(tenant, "url"))).transpose()?;
        Ok(sealed.flatten().map_or_else(|| url.to_owned(), |query| format!("{place}{query}")))
    }

    pub fn seal_spec(&self, spec: ScheduleSpec) -> ScheduleSpec {
        ScheduleSpec { template: self.seal_new(spec.template), ..spec }
    }

    pub fn open_schedule(&self, schedule: Schedule) -> Result<Schedule> {
        let template = self.open_new(schedule.spec.template)?;
        Ok(Schedule { spec: ScheduleSpec { template, ..schedule.spec }, ..schedule })
    }

    /// The JSON of a setting with its secrets sealed: fields named `secret`, queries of fields named `url`.
    pub fn seal_setting(&self, key: &SettingKey, text: &str) -> String {
        let Some(tenant) = tenant_of(key).filter(|_| !self.ring.is_empty()) else { return text.to_owned() };
        self.walk(text, &|name, value| match name {
            "secret" => Ok(Some(self.seal(value, of_call(&tenant, "secret"), None))),
            "url" => Ok(Some(self.seal_url(value, &tenant))),
            _ => Ok(None),
        })
        .unwrap_or_else(|_| text.to_owned())
    }

    pub fn open_setting(&self, key: &SettingKey, text: &str) -> Result<String> {
        let Some(tenant) = tenant_of(key).filter(|_| text.contains(PREFIX)) else {
            return Ok(text.to_owned());
        };
        self.walk(text, &|name, value| match name {
            "secret" => self.open_text(value, of_call(&tenant, "secret")),
            "url" => self.open_url(value, &tenant).map(Some),
            _ => Ok(None),
        })
    }

    fn walk(&self, text: &str, change: &dyn Fn(&str, &str) -> Result<Option<String>>) -> Result<String> {
        let Ok(before) = serde_json::from_str::<Value>(text) else { return Ok(text.to_owned()) };
        let mut value = before.clone();
        walk(&mut value, change)?;
        // The same value in other words would count as a change.
        Ok(if value == before { text.to_owned() } else { value.to_string() })
    }
}

fn walk(value: &mut Value, change: &dyn Fn(&str, &str) -> Result<Option<String>>) -> Result<()> {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Value::String(text) => {
                        if let Some(changed) = change(name, text)? {
                            *text = changed;
                        }
                    }
                    Value::Object(_) | Value::Array(_) => walk(value, change)?,
                    Value::Null | Value::Bool(_) | Value::Number(_) => {}
                }
            }
        }
        Value::Array(items) => items.iter_mut().try_for_each(|item| walk(item, change))?,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    Ok(())
}

/// Whose secrets a setting may hold. Jobs copy those of their tenant, so these belong to the tenant too.
fn tenant_of(key: &SettingKey) -> Option<Tenant> {
    match key {
        SettingKey::Tenant { name } => Some(name.clone()),
        SettingKey::Secret { tenant, .. } => Some(tenant.clone()),
        SettingKey::Alert { .. } => Some(Tenant::default()),
        SettingKey::Queue { .. }
        | SettingKey::Kind { .. }
        | SettingKey::Policy { .. }
        | SettingKey::Server { .. }
        | SettingKey::Quota { .. } => None,
    }
}

/// What a producer gave: bound to tenant and kind. The job's id is not known before it is stored.
pub(super) fn input<'a>(tenant: &'a Tenant, kind: &'a Kind) -> Belongs<'a> {
    Belongs { tenant: tenant.as_str(), subject: kind.as_str(), field: "payload" }
}

/// What an attempt left: bound to the job.
pub(super) const fn output<'a>(id: &'a str, field: &'a str) -> Belongs<'a> {
    Belongs { tenant: "", subject: id, field }
}

/// Parts of calls and webhooks: bound to the tenant, because a delivery takes them from its job.
fn of_call<'a>(tenant: &'a Tenant, field: &'a str) -> Belongs<'a> {
    Belongs { tenant: tenant.as_str(), subject: "", field }
}

/// Equal for equal JSON values.
fn canonical(payload: &str) -> String {
    fn write(value: &Value, text: &mut String) {
        match value {
            Value::Object(fields) => {
                let mut names: Vec<&String> = fields.keys().collect();
                names.sort();
                text.push('{');
                for name in names {
                    text.push_str(&Value::from(name.as_str()).to_string());
                    text.push(':');
                    write(&fields[name], text);
                    text.push(',');
                }
                text.push('}');
            }
            Value::Array(items) => {
                text.push('[');
                for item in items {
                    write(item, text);
                    text.push(',');
                }
                text.push(']');
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => text.push_str(&value.to_string()),
        }
    }
    let Ok(value) = serde_json::from_str::<Value>(payload) else { return payload.to_owned() };
    let mut text = String::new();
    write(&value, &mut text);
    text
}

/// The same for failures that the fingerprint counts as one.
pub(super) fn place_mark(error: &str, trace: Option<&str>) -> String {
    let digest = Sha256::digest(place_of(error, trace));
    format!("f={}", hex(&digest[..16]))
}

/// The same parts, sealed with the first key.
impl Cipher {
    pub fn renew_new(&self, mut job: NewJob) -> Result<NewJob> {
        let payload = self.renew_text(&job.payload, input(&job.tenant, &job.kind))?;
        job.payload = payload.map_or(job.payload, |text| format!("\"{text}\"").into());
        job.http = job.http.map(|call| self.renew_call(&call, &job.tenant).map(Arc::new)).transpose()?;
        job.webhook = job.webhook.map(|webhook| self.renew_webhook(&webhook, &job.tenant).map(Arc::new)).transpose()?;
        Ok(job)
    }

    pub fn renew_call(&self, call: &HttpCall, tenant: &Tenant) -> Result<HttpCall> {
        let mut renewed = call.clone();
        renewed.url = self.renew_url(&call.url, tenant)?;
        renewed.headers = match call.headers.as_slice() {
            [(name, value)] if name == HEADERS => {
                let text = self.renew_text(value, of_call(tenant, "headers"))?;
                vec![(name.clone(), text.unwrap_or_else(|| value.clone()))]
            }
            _ => self.seal_call(call, tenant).headers,
        };
        renewed.secret = self.renew_secret(call.secret.as_deref(), tenant)?;
        Ok(renewed)
    }

    pub fn renew_webhook(&self, webhook: &Webhook, tenant: &Tenant) -> Result<Webhook> {
        let (url, secret) =
            (self.renew_url(&webhook.url, tenant)?, self.renew_secret(webhook.secret.as_deref(), tenant)?);
        Ok(Webhook { url, secret, ..webhook.clone() })
    }

    /// The secrets of a setting's JSON.
    pub fn renew_setting(&self, row: &StoredText, text: &str) -> Result<String> {
        let [scope, of, name, ..] = row.place.name.as_slice() else { return Ok(text.to_owned()) };
        let key = SettingKey::from_parts(scope, of, name);
        let Some(tenant) = key.as_ref().and_then(tenant_of) else { return Ok(text.to_owned()) };
        self.walk(text, &|name, value| match name {
            "secret" => self.renew_secret(Some(value), &tenant),
            "url" => self.renew_url(value, &tenant).map(Some),
            _ => Ok(None),
        })
    }

    fn renew_secret(&self, secret: Option<&str>, tenant: &Tenant) -> Result<Option<String>> {
        let Some(secret) = secret else { return Ok(None) };
        Ok(Some(self.renew_text(secret, of_call(tenant, "secret"))?.unwrap_or_else(|| secret.to_owned())))
    }

    fn renew_url(&self, url: &str, tenant: &Tenant) -> Result<String> {
        let sealed = url.split_once('?').and_then(|(place, query)| Some((place, query.strip_prefix(QUERY)?)));
        match sealed {
            Some((place, text)) => {
                let renewed = self.renew_text(text, of_call(tenant, "url"))?;
                Ok(renewed.map_or_else(|| url.to_owned(), |text| format!("{place}?{QUERY}{text}")))
            }
            None => Ok(self.seal_url(url, tenant)),
        }
    }
}
