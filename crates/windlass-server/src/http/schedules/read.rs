//! Bodies of schedules: the native form, and family D's, whose job's fields stand beside the schedule's.

use super::cadence;
use crate::http::auth::Caller;
use crate::http::input::draft::{self, Beside, JOB_FIELDS};
use crate::http::input::fields::Fields;
use crate::http::output::problem::Problem;
use windlass::client::catalogue::Catalogue;
use windlass::job::NewJob;
use windlass::store::{Missed, Overlap, Recurrence, Schedule, ScheduleChange, ScheduleSpec};
use windlass_core::job::Tenant;
use windlass_core::policy::FAMILY_FIELDS;
use windlass_core::{Cadence, Timestamp};

/// The fields of a schedule that are not its job's.
pub(crate) const SCHEDULE_FIELDS: &[&str] =
    &["cron", "every", "schedule", "timezone", "recurring", "isRecurring", "overlap", "missed", "paused", "job"];
/// What a run gets from its firing, not from the template.
const FIRING_FIELDS: &[&str] = &["runAt", "delay", "startBy", "idempotencyKey", "idempotencyWindow"];

/// Reads a new schedule. `None` if a field is wrong, which has then been told.
///
/// # Errors
/// It names another tenant than the caller's.
pub(crate) fn read_new(
    fields: &Fields<'_>,
    caller: &Caller,
    catalogue: &Catalogue,
    now: Timestamp,
) -> Result<Option<ScheduleSpec>, Problem> {
    let template = read_template(fields, caller, catalogue)?;
    let cadence = read_cadence(fields, None, now);
    if cadence.is_none() && !["cron", "every", "schedule"].iter().any(|name| fields.has(name)) {
        fields.fault("cron", "is needed: a cron line such as \"*/10 * * * *\" (or give `every`)");
    }
    if fields.flag("paused") == Some(true) {
        fields.fault("paused", "is not for new schedules; make it, then pause it");
    }
    let spec = template.zip(cadence).map(|(template, (cadence, zone))| ScheduleSpec {
        tenant: template.tenant.clone(),
        cadence,
        zone,
        recurrence: recurrence(fields).unwrap_or(Recurrence::Recurring),
        overlap: overlap(fields).unwrap_or(Overlap::Skip),
        missed: missed(fields).unwrap_or(Missed::One),
        template,
    });
    Ok(spec)
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
) -> Result<ScheduleChange, Problem> {
    fields.refuse_unknown(SCHEDULE_FIELDS);
    let mut spec = schedule.spec.clone();
    if fields.has("job")
        && let Some(template) = read_template(fields, caller, catalogue)?
    {
        if template.tenant != spec.tenant {
            fields.fault("job/tenantId", "cannot move a schedule to another tenant");
        }
        spec.template = template;
    }
    let cadence = read_cadence(fields, Some(&spec), now);
    let is_new = cadence.is_some();
    if let Some((cadence, zone)) = cadence {
        (spec.cadence, spec.zone) = (cadence, zone);
    }
    spec.recurrence = recurrence(fields).unwrap_or(spec.recurrence);
    spec.overlap = overlap(fields).unwrap_or(spec.overlap);
    spec.missed = missed(fields).unwrap_or(spec.missed);
    let paused = fields.flag("paused");
    let resumes = schedule.paused && paused == Some(false);
    // Firings that fell into a pause are not made up for.
    let next = || cadence::of(&spec, schedule.created_at).ok().and_then(|cadence| cadence.next_after(now));
    let next_at = (is_new || resumes).then(next);
    Ok(ScheduleChange { spec: Some(spec), paused, next_at })
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
        "every" => cadence::interval_text(fields.duration("every")?),
        "timezone" => old?.cadence.clone(),
        _ => fields.text(name)?,
    };
    if cadence::interval(&text).is_some() && zone.is_some() {
        fields.fault("timezone", "has no effect on an interval");
        return None;
    }
    let zone = zone.or_else(|| old.map(|spec| spec.zone.clone())).unwrap_or_else(|| "UTC".into());
    match cadence::read(&text, &zone, now) {
        Ok(Cadence::Cron(line)) => Some((line.text().to_owned(), line.zone().to_owned())),
        Ok(Cadence::Every(_)) => Some((text, "UTC".into())),
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
    cadence::read(&text, &zone, now).ok()
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
