//! Bodies of schedules: the native form, and family D's, whose job's fields stand beside the schedule's.

use crate::http::auth::Caller;
use crate::http::input::draft::{self, Beside, JOB_FIELDS};
use crate::http::input::fields::Fields;
use crate::http::output::problem::Problem;
use windlass::client::{Missed, Overlap, Recurrence, Schedule, ScheduleBuilder, ScheduleSpec};
use windlass::protocol::{Catalogue, NewJob};
use windlass_core::job::Tenant;
use windlass_core::policy::FAMILY_FIELDS;
use windlass_core::{Cadence, Timestamp};

/// The fields of a schedule that are not its job's.
pub(crate) const SCHEDULE_FIELDS: &[&str] =
    &["cron", "every", "schedule", "timezone", "recurring", "isRecurring", "overlap", "missed", "paused", "job"];
/// What a run gets from its firing, not from the template.
const FIRING_FIELDS: &[&str] = &["runAt", "delay", "startBy", "idempotencyKey", "idempotencyWindow"];

/// The fields of a schedule that a body gives. What is left out keeps its default or what it was.
#[derive(Debug)]
pub(crate) struct ScheduleFields {
    /// Text and time zone, checked.
    cadence: Option<(String, String)>,
    recurrence: Option<Recurrence>,
    overlap: Option<Overlap>,
    missed: Option<Missed>,
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
        if let Some(paused) = self.paused {
            schedule = schedule.set_paused(paused);
        }
        match self.template {
            Some(template) => schedule.complete_template(template),
            None => schedule,
        }
    }
}

/// Reads a new schedule. `None` if a field is wrong, which is then among the faults.
///
/// # Errors
/// It names another tenant than the caller's.
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
        fields.fault("paused", "is not for new schedules; make it, then pause it");
    }
    let is_whole = template.is_some() && cadence.is_some();
    let read = ScheduleFields { template, cadence, paused: None, ..others(fields) };
    Ok(is_whole.then_some(read))
}

/// Reads a change of `schedule`: what is left out stays.
///
/// # Errors
/// It names another tenant than the caller's.
pub(super) fn read_change(
    fields: &Fields<'_>,
    caller: &Caller,
    catalogue: &Catalogue,
    schedule: &Schedule,
    now: Timestamp,
) -> Result<ScheduleFields, Problem> {
    fields.refuse_unknown(SCHEDULE_FIELDS);
    let template = if fields.has("job") { read_template(fields, caller, catalogue)? } else { None };
    if template.as_ref().is_some_and(|template| template.tenant != schedule.spec.tenant) {
        fields.fault("job/tenantId", "cannot move a schedule to another tenant");
    }
    let cadence = read_cadence(fields, Some(&schedule.spec), now);
    Ok(ScheduleFields { template, cadence, ..others(fields) })
}

/// The fields that a new schedule and a change read alike.
fn others(fields: &Fields<'_>) -> ScheduleFields {
    ScheduleFields {
        cadence: None,
        recurrence: recurrence(fields),
        overlap: overlap(fields),
        missed: missed(fields),
        paused: fields.flag("paused"),
        template: None,
    }
}

fn read_template(fields: &Fields<'_>, caller: &Caller, catalogue: &Catalogue) -> Result<Option<NewJob>, Problem> {
    if !fields.has("job") {
        return template_in(fields, caller, catalogue);
    }
    for name in fields.names().filter(|name| JOB_FIELDS.contains(name) && *name != "tenantId") {
        fields.fault(name, "stands under `job`, or beside it, not both");
    }
    let Some(job) = fields.object("job") else { return Ok(None) };
    job.refuse_unknown(&[JOB_FIELDS, FAMILY_FIELDS].concat());
    if let Some(outer) = fields.parsed("tenantId", Tenant::new) {
        caller.tenant(Some(outer.clone()))?;
        if job.parsed("tenantId", Tenant::new).is_none_or(|inner| inner != outer) {
            fields.fault("tenantId", "stands under `job`");
        }
    }
    template_in(&job, caller, catalogue)
}

fn template_in(job: &Fields<'_>, caller: &Caller, catalogue: &Catalogue) -> Result<Option<NewJob>, Problem> {
    for name in FIRING_FIELDS.iter().filter(|name| job.has(name)) {
        job.fault(name, "is set by each firing; a schedule's job has none");
    }
    let draft = draft::read(job, caller, catalogue, &Beside::default())?;
    Ok(draft.and_then(|draft| draft::complete(job, catalogue, draft)))
}

/// The cadence's text and time zone, checked. `None` if none is given, or a wrong one, which has then been told.
fn read_cadence(fields: &Fields<'_>, old: Option<&ScheduleSpec>, now: Timestamp) -> Option<(String, String)> {
    let given: Vec<&str> = ["cron", "schedule", "every"].into_iter().filter(|name| fields.has(name)).collect();
    if let [_, second, ..] = given[..] {
        fields.fault(second, "and another say when the schedule fires; give one of cron and every");
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
