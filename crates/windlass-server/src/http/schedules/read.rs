//! Reads the bodies of schedules: the native form, and the form of family D, which mixes the fields of job and
//! schedule.

use crate::http::auth::Caller;
use crate::http::input::draft::{self, JOB_FIELDS, RequestHeaders};
use crate::http::input::fields::Fields;
use crate::http::output::problem::Problem;
use std::sync::Arc;
use windlass::client::{DeadRuns, Missed, Overlap, Recurrence, Schedule, ScheduleBuilder, ScheduleSpec};
use windlass::protocol::{Catalogue, Draft, NewJob};
use windlass_core::job::Tenant;
use windlass_core::policy::FAMILY_FIELDS;
use windlass_core::{Cadence, Policy, Timestamp};

/// The fields of a schedule, without those of its job.
pub(crate) const SCHEDULE_FIELDS: &[&str] = &[
    "cron",
    "every",
    "schedule",
    "timezone",
    "recurring",
    "isRecurring",
    "overlap",
    "missed",
    "deadLetters",
    "paused",
    "job",
];
/// The fields that a run gets from its firing, not from the template.
const FIRING_FIELDS: &[&str] = &["runAt", "delay", "startBy", "idempotencyKey", "idempotencyWindow"];

/// The fields of a schedule's job that a change may set by themselves; others need the whole `job`.
const CHANGED_JOB_FIELDS: &[&str] = &["api", "type", "delivery", "retry", "priority", "payload", "timeout"];
/// Other systems' names for the number of retries.
const COUNT_FIELDS: &[&str] = &["maxRetryCount", "maxRetries", "MaxRetries"];

/// The fields of a schedule in a body. An omitted field keeps its default or its current value.
#[derive(Debug)]
pub(crate) struct ScheduleFields {
    /// Text and time zone, checked.
    cadence: Option<(String, String)>,
    recurrence: Option<Recurrence>,
    overlap: Option<Overlap>,
    missed: Option<Missed>,
    dead_letters: Option<DeadRuns>,
    paused: Option<bool>,
    template: Option<NewJob>,
}

impl ScheduleFields {
    pub(crate) fn fill(self, mut schedule: ScheduleBuilder<'_>) -> ScheduleBuilder<'_> {
        if let Some((text, zone)) = self.cadence {
            let is_interval = Cadence::interval_in(&text).is_some();
            schedule = schedule.cron(&text);
            schedule = if is_interval { schedule } else { schedule.time_zone(&zone) };
        }
        if let Some(recurrence) = self.recurrence {
            schedule = schedule.recurrence(recurrence);
        }
        if let Some(overlap) = self.overlap {
            schedule = schedule.overlap(overlap);
        }
        if let Some(missed) = self.missed {
            schedule = schedule.missed(missed);
        }
        if let Some(keep) = self.dead_letters {
            schedule = schedule.dead_letters(keep);
        }
        if let Some(paused) = self.paused {
            schedule = schedule.set_paused(paused);
        }
        match self.template {
            Some(template) => schedule.complete_template(template),
            None => schedule,
        }
    }
}

/// Reads a new schedule. `None` if a field is wrong; the fault is then recorded.
///
/// # Errors
/// The body names a tenant that is not the caller's.
pub(crate) fn read_new(
    fields: &Fields<'_>,
    caller: &Caller,
    catalogue: &Catalogue,
    now: Timestamp,
) -> Result<Option<ScheduleFields>, Problem> {
    let template = read_template(fields, caller, catalogue)?;
    let cadence = read_cadence(fields, None, now);
    if cadence.is_none() && !["cron", "every", "schedule"].iter().any(|name| fields.has(name)) {
        fields.fault("cron", "is needed: a cron line such as \"*/10 * * * *\" (or give `every`)");
    }
    if fields.flag("paused") == Some(true) {
        fields.fault("paused", "is not accepted for a new schedule; create it, then pause it");
    }
    let is_whole = template.is_some() && cadence.is_some();
    let read = ScheduleFields { template, cadence, paused: None, ..others(fields) };
    Ok(is_whole.then_some(read))
}

/// Reads a change of `schedule`. Omitted fields do not change.
///
/// # Errors
/// The body names a tenant that is not the caller's.
pub(super) fn read_change(
    fields: &Fields<'_>,
    caller: &Caller,
    catalogue: &Catalogue,
    schedule: &Schedule,
    now: Timestamp,
) -> Result<ScheduleFields, Problem> {
    fields.refuse_unknown(&[SCHEDULE_FIELDS, CHANGED_JOB_FIELDS, FAMILY_FIELDS].concat());
    let template = if fields.has("job") {
        for name in CHANGED_JOB_FIELDS.iter().chain(FAMILY_FIELDS).filter(|name| fields.has(name)) {
            fields.fault(name, "belongs under `job` or next to it, not both");
        }
        read_template(fields, caller, catalogue)?
    } else {
        changed_template(fields, catalogue, &schedule.spec.template)
    };
    if template.as_ref().is_some_and(|template| template.tenant != schedule.spec.tenant) {
        fields.fault("job/tenantId", "cannot move a schedule to another tenant");
    }
    let cadence = read_cadence(fields, Some(&schedule.spec), now);
    Ok(ScheduleFields { template, cadence, ..others(fields) })
}

/// A schedule's job with single fields changed. `None` if none of them is given, or if one is wrong.
fn changed_template(fields: &Fields<'_>, catalogue: &Catalogue, old: &NewJob) -> Option<NewJob> {
    let has_any = |names: &[&str]| names.iter().any(|name| fields.has(name));
    if !has_any(CHANGED_JOB_FIELDS) && !has_any(FAMILY_FIELDS) {
        return None;
    }
    let mut http = old.http.as_deref().cloned();
    match (fields.text("api"), &mut http) {
        (Some(url), Some(call)) => call.url = url,
        (Some(_), None) => fields.fault("api", "belongs to a job that calls a URL; the job of this schedule does not"),
        (None, _) => {}
    }
    let is_count = |name: &str| COUNT_FIELDS.contains(&name);
    let has_policy = fields.has("retry") || FAMILY_FIELDS.iter().any(|name| !is_count(name) && fields.has(name));
    let draft = Draft {
        tenant: old.tenant.clone(),
        queue: Some(old.queue.clone()),
        priority: draft::priority(fields).unwrap_or(old.priority),
        delivery: if has_any(&["type", "delivery"]) { draft::delivery(fields) } else { old.delivery },
        timeout: fields.duration("timeout").or(old.timeout),
        retry: draft::retry(fields, catalogue),
        http,
        ..Draft::new(
            old.kind.clone(),
            if fields.has("payload") { draft::payload(fields, "payload") } else { old.payload.to_string() },
        )
    };
    let made = draft::complete(fields, catalogue, draft)?;
    let policy = match COUNT_FIELDS.iter().any(|name| fields.has(name)) {
        _ if has_policy => made.policy.clone(),
        // A number of retries changes nothing else of the policy.
        true => Arc::new(Policy { max_retries: made.policy.max_retries, ..(*old.policy).clone() }),
        false => old.policy.clone(),
    };
    Some(NewJob { policy, webhook: old.webhook.clone(), ..made })
}

/// The fields that are read the same way for a new schedule and for a change.
fn others(fields: &Fields<'_>) -> ScheduleFields {
    ScheduleFields {
        cadence: None,
        recurrence: recurrence(fields),
        overlap: overlap(fields),
        missed: missed(fields),
        dead_letters: fields.word("deadLetters", DeadRuns::parse, "latest or all"),
        paused: fields.flag("paused"),
        template: None,
    }
}

fn read_template(fields: &Fields<'_>, caller: &Caller, catalogue: &Catalogue) -> Result<Option<NewJob>, Problem> {
    if !fields.has("job") {
        return template_in(fields, caller, catalogue);
    }
    for name in fields.names().filter(|name| JOB_FIELDS.contains(name) && *name != "tenantId") {
        fields.fault(name, "belongs under `job` or next to it, not both");
    }
    let Some(job) = fields.object("job") else { return Ok(None) };
    job.refuse_unknown(&[JOB_FIELDS, FAMILY_FIELDS].concat());
    if let Some(outer) = fields.parsed("tenantId", Tenant::new) {
        caller.tenant(Some(outer.clone()))?;
        if job.parsed("tenantId", Tenant::new).is_none_or(|inner| inner != outer) {
            fields.fault("tenantId", "belongs under `job`");
        }
    }
    template_in(&job, caller, catalogue)
}

fn template_in(job: &Fields<'_>, caller: &Caller, catalogue: &Catalogue) -> Result<Option<NewJob>, Problem> {
    for name in FIRING_FIELDS.iter().filter(|name| job.has(name)) {
        job.fault(name, "is set by each firing; a schedule's job has none");
    }
    let draft = draft::read(job, caller, catalogue, &RequestHeaders::default())?;
    Ok(draft.and_then(|draft| draft::complete(job, catalogue, draft)))
}

/// The cadence's text and time zone, checked. `None` if none is given or it is wrong; a fault is then recorded.
fn read_cadence(fields: &Fields<'_>, old: Option<&ScheduleSpec>, now: Timestamp) -> Option<(String, String)> {
    let given: Vec<&str> = ["cron", "schedule", "every"].into_iter().filter(|name| fields.has(name)).collect();
    if let [_, second, ..] = given[..] {
        fields.fault(second, "contradicts another field that says when the schedule fires; give either cron or every");
        return None;
    }
    let zone = fields.text("timezone");
    let name = match (given.first(), &zone) {
        (Some(name), _) => *name,
        (None, Some(_)) => "timezone",
        (None, None) => return None,
    };
    let text = match name {
        "every" => Cadence::interval_text(fields.duration("every")?),
        "timezone" => old?.cadence.clone(),
        _ => fields.text(name)?,
    };
    if Cadence::interval_in(&text).is_some() && zone.is_some() {
        fields.fault("timezone", "has no effect on an interval");
        return None;
    }
    let zone = zone.or_else(|| old.map(|spec| spec.zone.clone())).unwrap_or_else(|| "UTC".into());
    match Cadence::read(&text, &zone, now) {
        Ok(cadence) => Some((cadence.text(), cadence.zone().to_owned())),
        Err(error @ windlass_core::CadenceError::Zone(_)) => {
            fields.fault("timezone", error.to_string());
            None
        }
        Err(error) => {
            fields.fault(name, error.to_string());
            None
        }
    }
}

/// Reads a cadence alone, for a preview.
pub(super) fn read_cadence_only(fields: &Fields<'_>, now: Timestamp) -> Option<Cadence> {
    let (text, zone) = read_cadence(fields, None, now)?;
    Cadence::read(&text, &zone, now).ok()
}

fn recurrence(fields: &Fields<'_>) -> Option<Recurrence> {
    let (own, foreign) = (fields.flag("recurring"), fields.flag("isRecurring"));
    if own.is_some() && foreign.is_some() && own != foreign {
        fields.fault("isRecurring", "contradicts `recurring`; give one of them");
    }
    own.or(foreign).map(|goes_on| if goes_on { Recurrence::Recurring } else { Recurrence::OneShot })
}

fn overlap(fields: &Fields<'_>) -> Option<Overlap> {
    fields.word("overlap", Overlap::parse, "skip or allow")
}

fn missed(fields: &Fields<'_>) -> Option<Missed> {
    fields.word("missed", Missed::parse, "one or skip")
}
