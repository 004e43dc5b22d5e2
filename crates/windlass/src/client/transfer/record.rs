//! Records: one line each, an object with one field that names what it is.

use super::fields::{Fault, Fields, Result, short, slim};
use super::{VERSION, job};
use crate::store::{
    DeadRuns, GateName, JobCopy, Missed, Overlap, Recurrence, Schedule, ScheduleSpec, SettingKey, Token, json,
};
use serde_json::{Value, json};
use windlass_core::gate::{Hold, HoldOrigin};
use windlass_core::job::{QueueName, Tenant};
use windlass_core::{Cadence, Executor, JobId, Timestamp};

/// The first line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Header {
    /// Drawn at random for each export.
    pub export: String,
    pub installation: String,
    pub exported_at: Timestamp,
    /// The highest id in use when the export began.
    pub last_id: JobId,
}

#[derive(Debug)]
pub(super) enum Record {
    Queue {
        tenant: Tenant,
        name: QueueName,
        executor: Executor,
        paused: bool,
    },
    Setting {
        key: SettingKey,
        value: String,
    },
    Token(Token),
    Hold {
        gate: GateName,
        hold: Hold,
    },
    Schedule(Box<Schedule>),
    Job(Box<JobCopy>),
    /// The last line, with the number of lines before it.
    End {
        lines: u64,
    },
}

const RECORDS: &str = "queue, setting, token, hold, schedule, job, end";

impl Header {
    pub(super) fn to_line(&self) -> String {
        json!({
            "windlass": "export",
            "version": VERSION,
            "export": self.export,
            "installation": self.installation,
            "exportedAt": self.exported_at.to_string(),
            "lastId": self.last_id.0,
        })
        .to_string()
    }

    /// The header, or what is wrong with it.
    pub(super) fn read(line: &str) -> Result<Self> {
        let wrong = |why: &str| Fault { field: "header".into(), why: why.into() };
        let value: Value = serde_json::from_str(line).map_err(|_| wrong(NO_EXPORT))?;
        if value.get("windlass").and_then(Value::as_str) != Some("export") {
            return Err(wrong(NO_EXPORT));
        }
        let f = Fields::new("header", &value)?;
        match f.large("version")? {
            VERSION => {}
            version => {
                let why = format!("this file has version {version}, and this program reads version {VERSION} only");
                return f.fault("version", why);
            }
        }
        let installation = f.text("installation")?;
        if installation.is_empty()
            || installation.len() > 64
            || !installation.bytes().all(|b| b.is_ascii_alphanumeric())
        {
            return f.fault("installation", "it must have 1 to 64 letters and digits");
        }
        Ok(Self {
            export: f.text("export")?.to_owned(),
            installation: installation.to_owned(),
            exported_at: Timestamp::parse(f.text("exportedAt")?)
                .map_or_else(|| f.fault("exportedAt", "it must be a time"), Ok)?,
            last_id: JobId(f.large("lastId")? as i64),
        })
    }
}

const NO_EXPORT: &str = "the first line must be the one that `windlass export` writes: {\"windlass\":\"export\",…}";

impl Record {
    pub(super) fn to_line(&self) -> String {
        match self {
            Self::Queue { tenant, name, executor, paused } => {
                let (tenant, name) = (tenant.as_str(), name.as_str());
                let fields =
                    json!({ "tenantId": tenant, "name": name, "executor": executor.as_str(), "paused": paused });
                json!({ "queue": slim(fields) })
            }
            Self::Setting { key, value } => {
                let (scope, tenant, name) = key.parts();
                json!({ "setting": { "scope": scope, "tenantId": tenant, "name": name, "value": value } })
            }
            Self::Token(token) => json!({ "token": token_to_json(token) }),
            Self::Hold { gate, hold } => json!({ "hold": hold_to_json(gate, hold) }),
            Self::Schedule(schedule) => json!({ "schedule": schedule_to_json(schedule) }),
            Self::Job(copy) => json!({ "job": job::to_json(copy) }),
            Self::End { lines } => json!({ "end": { "lines": lines } }),
        }
        .to_string()
    }

    pub(super) fn read(line: &str) -> Result<Self> {
        let fault = |why: String| Fault { field: "record".into(), why };
        let value: Value = serde_json::from_str(line).map_err(|error| {
            let cut = if error.is_eof() { "; it is cut off" } else { "" };
            fault(format!("it is not JSON (column {}){cut}", error.column()))
        })?;
        let only = value.as_object().filter(|fields| fields.len() == 1).and_then(|fields| fields.iter().next());
        let Some((name, value)) = only else {
            return Err(fault(format!("it must be an object with one field: {RECORDS}")));
        };
        match name.as_str() {
            "queue" => queue(value),
            "setting" => setting(value),
            "token" => token(value).map(Self::Token),
            "hold" => hold(value),
            "schedule" => schedule(value).map(|schedule| Self::Schedule(Box::new(schedule))),
            "job" => job::from_json(value).map(|copy| Self::Job(Box::new(copy))),
            "end" => Ok(Self::End { lines: Fields::new("end", value)?.large("lines")? }),
            other => Err(fault(format!("`{}` is not one of {RECORDS}", short(other)))),
        }
    }
}

fn queue(value: &Value) -> Result<Record> {
    let f = Fields::new("queue", value)?;
    Ok(Record::Queue {
        tenant: f.checked("tenantId", Tenant::new(f.text("tenantId")?))?,
        name: f.checked("name", QueueName::new(f.text("name")?))?,
        executor: f.word("executor", Executor::parse, "worker, http")?,
        paused: f.flag("paused")?,
    })
}

fn setting(value: &Value) -> Result<Record> {
    let f = Fields::new("setting", value)?;
    let key = SettingKey::from_parts(f.text("scope")?, f.text("tenantId")?, f.text("name")?);
    let key = key.map_or_else(|| f.fault("scope", "scope, tenantId and name make no setting"), Ok)?;
    let value = f.text("value")?;
    if serde_json::from_str::<Value>(value).is_err() {
        return f.fault("value", "it must be the text of a JSON value");
    }
    Ok(Record::Setting { key, value: value.to_owned() })
}

fn token_to_json(token: &Token) -> Value {
    let hash: String = token.hash.iter().map(|byte| format!("{byte:02x}")).collect();
    let queues = token.queues.as_ref().map(|names| names.iter().map(QueueName::as_str).collect::<Vec<_>>());
    slim(json!({
        "id": token.id,
        "name": token.name,
        "hash": hash,
        "scopes": token.scopes,
        "tenantId": token.tenant.as_ref().map(Tenant::as_str),
        "queues": queues,
        "createdAt": token.created_at.as_millis(),
        "expiresAt": token.expires_at.map(Timestamp::as_millis),
        "revokedAt": token.revoked_at.map(Timestamp::as_millis),
    }))
}

fn token(value: &Value) -> Result<Token> {
    let f = Fields::new("token", value)?;
    let digits = f.text("hash")?;
    let byte = |at: usize| digits.get(at * 2..at * 2 + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok());
    let bytes: Option<Vec<u8>> = (0..32).map(byte).collect();
    let hash = bytes.filter(|_| digits.len() == 64).and_then(|bytes| bytes.try_into().ok());
    let tenant = f.text_if("tenantId")?.map(|name| f.checked("tenantId", Tenant::new(name))).transpose()?;
    let queues = f
        .texts_if("queues")?
        .map(|names| names.iter().map(|name| f.checked("queues", QueueName::new(name))).collect::<Result<Vec<_>>>());
    Ok(Token {
        id: f.text("id")?.to_owned(),
        name: f.text("name")?.to_owned(),
        hash: hash.map_or_else(|| f.fault("hash", "it must have 64 hexadecimal digits"), Ok)?,
        scopes: f.texts_if("scopes")?.map_or_else(|| f.fault("scopes", "it is missing"), Ok)?,
        tenant,
        queues: queues.transpose()?,
        created_at: f.moment("createdAt")?,
        expires_at: f.moment_if("expiresAt")?,
        revoked_at: f.moment_if("revokedAt")?,
    })
}

fn hold_to_json(gate: &GateName, hold: &Hold) -> Value {
    let by = match &hold.origin {
        HoldOrigin::Operator(by) => Some(by.as_str()),
        HoldOrigin::RetryAfter | HoldOrigin::Rule => None,
    };
    slim(json!({
        "tenantId": gate.tenant.as_ref().map(Tenant::as_str),
        "queue": gate.queue.as_str(),
        "key": gate.key.as_deref(),
        "since": hold.since.as_millis(),
        "until": hold.until.as_millis(),
        "origin": hold.origin.as_str(),
        "by": by,
        "reason": hold.reason,
    }))
}

fn hold(value: &Value) -> Result<Record> {
    let f = Fields::new("hold", value)?;
    let by = f.text_if("by")?.unwrap_or_default();
    let origin = |word: &str| match word {
        "operator" => Some(HoldOrigin::Operator(by.to_owned())),
        "retryAfter" => Some(HoldOrigin::RetryAfter),
        "rule" => Some(HoldOrigin::Rule),
        _ => None,
    };
    let gate = GateName {
        tenant: f.text_if("tenantId")?.map(|name| f.checked("tenantId", Tenant::new(name))).transpose()?,
        queue: f.checked("queue", QueueName::new(f.text("queue")?))?,
        key: f.shared_if("key")?,
    };
    let hold = Hold {
        since: f.moment("since")?,
        until: f.moment("until")?,
        origin: f.word("origin", origin, "operator, retryAfter, rule")?,
        reason: f.text("reason")?.to_owned(),
    };
    Ok(Record::Hold { gate, hold })
}

fn schedule_to_json(schedule: &Schedule) -> Value {
    let Schedule { spec, .. } = schedule;
    let template: Value = serde_json::from_str(&json::template_to_text(&spec.template)).unwrap_or_default();
    slim(json!({
        "id": schedule.id.0,
        "tenantId": spec.tenant.as_str(),
        "cadence": spec.cadence,
        "zone": spec.zone,
        "recurrence": spec.recurrence.as_str(),
        "overlap": spec.overlap.as_str(),
        "missed": spec.missed.as_str(),
        "deadLetters": spec.dead_letters.as_str(),
        "template": template,
        "paused": schedule.paused,
        "nextAt": schedule.next_at.map(Timestamp::as_millis),
        "lastAt": schedule.last_at.map(Timestamp::as_millis),
        "lastJob": schedule.last_job.map(|id| id.0),
        "lastDead": schedule.last_dead.map(|id| id.0),
        "createdAt": schedule.created_at.as_millis(),
    }))
}

fn schedule(value: &Value) -> Result<Schedule> {
    let f = Fields::new("schedule", value)?;
    let id = f.id("id")?;
    let created_at = f.moment("createdAt")?;
    let template = f.stored_if("template", |text| json::template_from_text(text, id))?;
    let (cadence, zone) = (f.text("cadence")?, f.text("zone")?);
    f.checked("cadence", Cadence::read(cadence, zone, created_at))?;
    let spec = ScheduleSpec {
        tenant: f.checked("tenantId", Tenant::new(f.text("tenantId")?))?,
        cadence: cadence.to_owned(),
        zone: zone.to_owned(),
        recurrence: f.word("recurrence", Recurrence::parse, "recurring, one_shot")?,
        overlap: f.word("overlap", Overlap::parse, "skip, allow")?,
        missed: f.word("missed", Missed::parse, "one, skip")?,
        dead_letters: f.word("deadLetters", DeadRuns::parse, "latest, all")?,
        template: template.map_or_else(|| f.fault("template", "it is missing"), Ok)?,
    };
    Ok(Schedule {
        id,
        spec,
        paused: f.flag("paused")?,
        next_at: f.moment_if("nextAt")?,
        last_at: f.moment_if("lastAt")?,
        last_job: f.id_if("lastJob")?,
        last_dead: f.id_if("lastDead")?,
        created_at,
    })
}
