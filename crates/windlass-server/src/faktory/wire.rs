//! Jobs as the protocol writes them. A pushed job is stored as its payload, field by field as it was written, so that a
//! worker gets back everything that was pushed.

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use windlass::protocol::{ClaimedJob, Draft, Idempotency, KeyWindow};
use windlass::{Job, RunAt};
use windlass_core::job::{Kind, QueueName, Tenant};
use windlass_core::policy::Partial;
use windlass_core::{Millis, Priority, Timestamp};

use super::hello::hex;
use sha2::{Digest as _, Sha256};
use windlass::protocol::Catalogue;

/// The key of a job with this jid begins so.
const JID_KEY: &str = "faktory:";
/// The key of a job with `unique_for` begins so.
pub(super) const UNIQUE_KEY: &str = "faktory-unique:";
/// The jid of a job that was not pushed begins so; the rest names its attempt.
const OWN_JID: &str = "wl-";
/// The longest jid.
const MAX_JID: usize = 200;
/// Retries of a job that does not say.
const DEFAULT_RETRIES: i64 = 25;
/// How long a job is reserved that does not say.
pub(super) const DEFAULT_RESERVE: Millis = Millis::from_secs(1800);
/// The shortest and the longest reservation.
const RESERVE: (u64, u64) = (60, 86_400);

/// A job's fields in the order they were written.
#[derive(Debug, Clone)]
pub(super) struct WireJob(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for WireJob {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = WireJob;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a job, which is a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<WireJob, A::Error> {
                let mut fields: Vec<(String, Box<RawValue>)> = Vec::new();
                while let Some((name, value)) = map.next_entry::<String, Box<RawValue>>()? {
                    fields.retain(|(known, _)| *known != name);
                    fields.push((name, value));
                }
                Ok(WireJob(fields))
            }
        }
        deserializer.deserialize_map(Fields)
    }
}

impl WireJob {
    /// # Errors
    /// It is not a JSON object.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    fn raw(&self, name: &str) -> Option<&RawValue> {
        let found = self.0.iter().find(|(known, _)| known == name).map(|(_, raw)| raw.as_ref());
        found.filter(|raw| raw.get() != "null")
    }

    fn set(&mut self, name: &str, value: &Value) {
        let raw = to_raw_value(value).expect("a value is JSON");
        self.0.retain(|(known, _)| known != name);
        self.0.push((name.to_owned(), raw));
    }

    /// The job in this queue; unchanged if it is there already.
    pub(super) fn in_queue(mut self, queue: &QueueName) -> Self {
        if self.text("queue").ok().flatten().as_deref().unwrap_or("default") != queue.as_str() {
            self.set("queue", &json!(queue.as_str()));
        }
        self
    }

    fn value(&self, name: &str) -> Option<Value> {
        serde_json::from_str(self.raw(name)?.get()).ok()
    }

    fn text(&self, name: &str) -> Result<Option<String>, String> {
        match self.raw(name) {
            None => Ok(None),
            Some(raw) => serde_json::from_str(raw.get()).map(Some).map_err(|_| format!("`{name}` must be a text")),
        }
    }

    fn whole(&self, name: &str) -> Result<Option<i64>, String> {
        match self.raw(name) {
            None => Ok(None),
            Some(raw) => {
                serde_json::from_str(raw.get()).map(Some).map_err(|_| format!("`{name}` must be a whole number"))
            }
        }
    }

    pub(super) fn jid(&self) -> Option<String> {
        self.text("jid").ok().flatten().filter(|jid| !jid.is_empty())
    }

    /// The object as JSON.
    pub(super) fn json(&self) -> String {
        let mut text = String::from("{");
        for (index, (name, raw)) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            text.push_str(&format!("{comma}{}:{}", Value::String(name.clone()), raw.get()));
        }
        text.push('}');
        text
    }

    fn custom(&self) -> Value {
        self.value("custom").unwrap_or_default()
    }

    /// What happens when the job fails and no retry is left.
    pub(super) fn at_the_end(&self) -> AtTheEnd {
        if self.whole("retry").ok().flatten() == Some(0) { AtTheEnd::Discard } else { AtTheEnd::Keep }
    }

    /// How long the job is reserved for a worker.
    pub(super) fn reserve_for(&self) -> Millis {
        let asked = self.whole("reserve_for").ok().flatten().and_then(|seconds| u64::try_from(seconds).ok());
        asked
            .filter(|seconds| *seconds > 0)
            .map_or(DEFAULT_RESERVE, |s| Millis::from_secs(s.clamp(RESERVE.0, RESERVE.1)))
    }
}

/// What becomes of a job that has failed for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AtTheEnd {
    /// It is a dead letter.
    Keep,
    /// It is discarded.
    Discard,
}

/// The key under which the job with this jid is found.
pub(super) fn key_of(jid: &str) -> String {
    format!("{JID_KEY}{jid}")
}

/// A pushed job as a draft.
///
/// # Errors
/// The field that is wrong, and what is accepted.
pub(super) fn draft(job: &WireJob, catalogue: &Catalogue) -> Result<Draft, String> {
    let jid = job.text("jid")?.filter(|jid| !jid.is_empty()).ok_or("a job must have a jid")?;
    if jid.len() > MAX_JID || jid.chars().any(char::is_control) || jid.starts_with(OWN_JID) {
        return Err(format!("a jid must be at most {MAX_JID} bytes of plain text and not begin with {OWN_JID}"));
    }
    let jobtype = job.text("jobtype")?.filter(|name| !name.is_empty()).ok_or("a job must have a jobtype")?;
    let kind = Kind::new(&jobtype).map_err(|error| format!("jobtype: {error}"))?;
    if !job.raw("args").is_some_and(|args| args.get().starts_with('[')) {
        return Err("a job must have args, an array".into());
    }
    let custom = job.custom();
    let word = |name: &str| custom.get(name).and_then(Value::as_str);
    let tenant = word("tenant").map(Tenant::new).transpose().map_err(|error| format!("custom.tenant: {error}"))?;
    let queue = job.text("queue")?.filter(|name| !name.is_empty());
    let queue = queue.map(|name| QueueName::new(&name)).transpose().map_err(|error| format!("queue: {error}"))?;
    job.whole("reserve_for")?;
    Ok(Draft {
        tenant: tenant.unwrap_or_default(),
        queue,
        priority: priority(job.whole("priority")?),
        run_at: run_at(job)?,
        retry: retry(job, &custom, catalogue)?,
        idempotency: Some(idempotency(job, &jid, &custom)),
        traceparent: word("traceparent").map(Into::into),
        limit_key: word("limitKey").map(str::to_owned),
        ..Draft::new(kind, job.json())
    })
}

/// 1 to 9, and 5 is normal.
fn priority(given: Option<i64>) -> Priority {
    match given {
        Some(..=2) => Priority::Lowest,
        Some(3 | 4) => Priority::Low,
        None | Some(5) => Priority::Normal,
        Some(6 | 7) => Priority::High,
        Some(8..) => Priority::Highest,
    }
}

fn run_at(job: &WireJob) -> Result<RunAt, String> {
    match job.text("at")?.as_deref() {
        None | Some("") => Ok(RunAt::Now),
        Some(at) => {
            Timestamp::parse(at).map(RunAt::At).ok_or_else(|| format!("`at` must be a moment (RFC 3339), not {at}"))
        }
    }
}

/// The policy that `custom` names, with as many retries as the job says.
fn retry(job: &WireJob, custom: &Value, catalogue: &Catalogue) -> Result<Partial, String> {
    let named = match custom.get("policy").filter(|policy| !policy.is_null()) {
        Some(policy) => catalogue.read(policy).map_err(|error| format!("custom.policy: {error}"))?,
        None => Partial::default(),
    };
    let retries = match (job.whole("retry")?, named.max_retries) {
        (Some(given), _) => given,
        (None, Some(_)) => return Ok(named),
        (None, None) => DEFAULT_RETRIES,
    };
    let retries = u32::try_from(retries.max(0)).unwrap_or(u32::MAX).min(windlass_core::policy::MAX_RETRIES);
    Ok(Partial { max_retries: Some(retries), ..named })
}

/// A jid is unique while its job is live. With `unique_for`, no second job of the same type, queue and args is stored
/// within that many seconds.
fn idempotency(job: &WireJob, jid: &str, custom: &Value) -> Idempotency {
    match custom.get("unique_for").and_then(Value::as_u64).filter(|seconds| *seconds > 0) {
        None => Idempotency { key: key_of(jid).into(), window: KeyWindow::Live },
        Some(seconds) => {
            let mut hash = Sha256::new();
            for name in ["jobtype", "queue", "args"] {
                hash.update(job.value(name).unwrap_or_default().to_string());
                hash.update([0]);
            }
            let key = format!("{UNIQUE_KEY}{}", hex(&hash.finalize()));
            Idempotency { key: key.into(), window: KeyWindow::For(Millis::from_secs(seconds)) }
        }
    }
}

/// The attempt that a jid of our own names: id, number, lease.
pub(super) fn own_attempt(jid: &str) -> Option<windlass::remote::HeldAttempt> {
    let mut parts = jid.strip_prefix(OWN_JID)?.split('-');
    let job = windlass_core::JobId(parts.next()?.parse().ok()?);
    let attempt = parts.next()?.parse().ok()?;
    let lease = windlass::protocol::LeaseId::parse(parts.next()?)?;
    Some(windlass::remote::HeldAttempt { job, attempt, lease })
}

/// The job that was pushed, or one made from a job that came another way.
pub(super) fn of(job: &Job) -> WireJob {
    let pushed = WireJob::read(&job.payload).ok().filter(|wire| wire.jid().is_some() && wire.raw("jobtype").is_some());
    pushed.unwrap_or_else(|| {
        let mut wire = WireJob(Vec::new());
        wire.set("jobtype", &json!(job.kind.as_str()));
        let args = serde_json::from_str::<Box<RawValue>>(&job.payload).unwrap_or_default();
        let is_list = args.get().starts_with('[');
        let args = if is_list { args.get().to_owned() } else { format!("[{}]", args.get()) };
        wire.0.push(("args".into(), RawValue::from_string(args).unwrap_or_default()));
        wire.set("retry", &json!(job.policy.max_attempts() - 1));
        wire.set("reserve_for", &json!(DEFAULT_RESERVE.get() / 1000));
        wire
    })
}

/// A job as its worker gets it.
pub(super) fn fetched(job: &ClaimedJob, failure: Option<Value>) -> WireJob {
    let mut wire = of(job);
    if wire.jid().is_none() {
        wire.set("jid", &json!(format!("{OWN_JID}{}-{}-{}", job.id, job.attempt, job.lease)));
    }
    wire.set("queue", &json!(job.queue.as_str()));
    if wire.raw("created_at").is_none() {
        wire.set("created_at", &json!(job.created_at.to_string()));
    }
    wire.set("enqueued_at", &json!(job.due_at.to_string()));
    if let Some(failure) = failure {
        wire.set("failure", &failure);
    }
    wire
}

/// The job as compact JSON, for globs: its fields in their order, without spaces between them.
pub(super) fn compact(job: &Job) -> String {
    let (mut text, mut in_string, mut escaped) = (String::new(), false, false);
    for character in of(job).json().chars() {
        match character {
            _ if escaped => escaped = false,
            '\\' if in_string => escaped = true,
            '"' => in_string = !in_string,
            ' ' | '\t' | '\r' | '\n' if !in_string => continue,
            _ => {}
        }
        text.push(character);
    }
    text
}
