//! Reads the bodies of remote workers.

use crate::http::input::body::Body;
use crate::http::input::fields::{Faults, Fields, is_clean};
use crate::http::output::problem::Problem;
use serde_json::value::RawValue;
use windlass::protocol::{LeaseId, Payload};
use windlass::remote::{
    AttemptResult, DEFAULT_LEASE, HeldAttempt, MAX_ITEMS, MAX_LEASE, MAX_RESULT, MAX_WAIT, MIN_LEASE, RemoteWorker,
    TakeRequest, WorkScope,
};
use windlass_core::failure::ERROR;
use windlass_core::job::{Kind, QueueName};
use windlass_core::{Advice, Failure, JobId, Millis, Outcome, Progress};

/// The longest worker name.
const MAX_NAME: usize = 128;

/// The action of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LeaseAction {
    Extend,
    Complete,
    Fail,
}

pub(super) fn take_request(body: &Body, scope: WorkScope) -> Result<TakeRequest, Problem> {
    let faults = Faults::default();
    let Some(fields) = Fields::open(body.json()?, "", &faults) else { return Err(faults.problem()) };
    fields.refuse_unknown(&["worker", "queues", "kinds", "max", "waitMs", "leaseMs"]);
    let worker = worker(&fields);
    let queues = fields.texts("queues", MAX_ITEMS, QueueName::new).unwrap_or_default();
    let kinds = fields.texts("kinds", MAX_ITEMS, Kind::new);
    if kinds.as_ref().is_some_and(Vec::is_empty) {
        fields.fault("kinds", "must name at least one kind; leave it out to take jobs of every kind");
    }
    let max = fields.whole("max", 1..=MAX_ITEMS as u64).unwrap_or(1) as u32;
    let wait = Millis::new(fields.whole("waitMs", 0..=MAX_WAIT.get()).unwrap_or(0));
    let lease_for = lease_for(&fields);
    faults.finish()?;
    let worker = RemoteWorker::new(worker.ok_or_else(|| faults.problem())?, scope);
    Ok(TakeRequest { worker, queues, kinds, max, wait, lease_for })
}

/// The worker, lease length and items of a request.
pub(super) fn items(body: &Body, action: LeaseAction) -> Result<(String, Millis, Vec<AttemptResult>), Problem> {
    let faults = Faults::default();
    let Some(fields) = Fields::open(body.json()?, "", &faults) else { return Err(faults.problem()) };
    let known: &[&str] = match action {
        LeaseAction::Extend => &["worker", "results", "leaseMs"],
        LeaseAction::Complete | LeaseAction::Fail => &["worker", "results"],
    };
    fields.refuse_unknown(known);
    let worker = worker(&fields);
    let lease_for = lease_for(&fields);
    let raw = fields.needed("results", fields.list("results", MAX_ITEMS), "a list of {id, attempt, lease, …}");
    let items: Vec<AttemptResult> =
        raw.unwrap_or_default().into_iter().enumerate().filter_map(|(i, raw)| item(raw, i, action, &faults)).collect();
    faults.finish()?;
    Ok((worker.ok_or_else(|| faults.problem())?, lease_for, items))
}

fn worker(fields: &Fields<'_>) -> Option<String> {
    let name = fields.parsed("worker", |text| {
        let is_name = !text.is_empty() && text.len() <= MAX_NAME && !text.chars().any(char::is_control);
        if is_name { Ok(text.to_owned()) } else { Err(format!("must be 1 to {MAX_NAME} bytes of plain text")) }
    });
    fields.needed("worker", name, "the worker's name")
}

fn lease_for(fields: &Fields<'_>) -> Millis {
    fields.whole("leaseMs", MIN_LEASE.get()..=MAX_LEASE.get()).map_or(DEFAULT_LEASE, Millis::new)
}

fn item(raw: &RawValue, index: usize, action: LeaseAction, faults: &Faults) -> Option<AttemptResult> {
    let fields = Fields::open(raw, format!("/results/{index}"), faults)?;
    let known: &[&str] = match action {
        LeaseAction::Extend => &["id", "attempt", "lease"],
        LeaseAction::Complete => &["id", "attempt", "lease", "note", "result"],
        LeaseAction::Fail => &[
            "id",
            "attempt",
            "lease",
            "note",
            "class",
            "message",
            "trace",
            "permanent",
            "retryAfter",
            "retryIn",
            "snooze",
            "release",
            "started",
            "cancel",
        ],
    };
    fields.refuse_unknown(known);
    let job = fields.needed("id", fields.whole("id", 1..=i64::MAX as u64), "the job's id");
    let attempt = fields.needed("attempt", fields.whole("attempt", 1..=u64::from(u32::MAX)), "the attempt's number");
    let lease = fields.word("lease", LeaseId::parse, "the lease that came with the job");
    let lease = fields.needed("lease", lease, "the lease that came with the job");
    let outcome = match action {
        LeaseAction::Extend | LeaseAction::Complete => Outcome::Succeeded,
        LeaseAction::Fail => outcome(&fields),
    };
    let note = fields.lossy_text("note");
    let result = result(&fields);
    let held = HeldAttempt { job: JobId(job? as i64), attempt: attempt? as u32, lease: lease? };
    Some(AttemptResult { held, outcome, note, result })
}

fn result(fields: &Fields<'_>) -> Option<Payload> {
    let raw = fields.raw("result")?;
    if raw.get().len() > MAX_RESULT || !is_clean(raw.get()) {
        fields.fault("result", format!("must be JSON of at most {MAX_RESULT} bytes, without unpaired surrogates"));
    }
    Some(raw.get().into())
}

/// The outcome of a failed item: a failure with advice, or an outcome that is not a failure.
fn outcome(fields: &Fields<'_>) -> Outcome {
    let asks: Vec<&str> = ["permanent", "retryAfter", "retryIn", "snooze", "release", "cancel"]
        .into_iter()
        .filter(|name| fields.raw(name).is_some_and(|raw| raw.get() != "false"))
        .collect();
    if let [first, second, ..] = asks[..] {
        fields.fault(second, format!("contradicts `{first}`; give one of them"));
    }
    let (permanent, retry_after, retry_in) =
        (fields.flag("permanent"), fields.duration("retryAfter"), fields.duration("retryIn"));
    let (snooze, release, cancel) = (fields.duration("snooze"), fields.flag("release"), fields.flag("cancel"));
    let started = fields.flag("started");
    if let Some(span) = snooze {
        return Outcome::Snoozed(span);
    }
    if release == Some(true) {
        return Outcome::Released(if started == Some(false) { Progress::NotStarted } else { Progress::Started });
    }
    if cancel == Some(true) {
        return Outcome::Cancelled;
    }
    let advice = match (permanent, retry_after, retry_in) {
        (Some(true), _, _) => Advice::Permanent,
        (_, Some(span), _) => Advice::RetryAfter(span),
        (_, _, Some(span)) => Advice::RetryIn(span),
        (Some(false) | None, None, None) => Advice::None,
    };
    let class = fields.lossy_text("class").filter(|class| !class.is_empty()).unwrap_or_else(|| ERROR.into());
    let message = fields.lossy_text("message").unwrap_or_default();
    let trace = fields.lossy_text("trace");
    Outcome::Failed(Failure { advice, trace, ..Failure::new(message).class(class) })
}
