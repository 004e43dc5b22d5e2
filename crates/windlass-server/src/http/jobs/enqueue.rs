//! POST /jobs: one job, durable when answered. A body with a `schedule` makes a schedule, as family D writes it.

use crate::http::app::App;
use crate::http::auth::{Caller, Enqueue, May};
use crate::http::input::body::Body;
use crate::http::input::draft::{self, Beside, JOB_FIELDS, JobBody};
use crate::http::input::fields::{Faults, Fields};
use crate::http::output::problem::{Kind, Problem, ProblemBody};
use crate::http::output::view::JobView;
use crate::http::schedules::{self, SCHEDULE_FIELDS};
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use hyper::StatusCode;
use hyper::header::{HeaderMap, LOCATION};
use windlass::Job;
use windlass::client::{Atomicity, Enqueued};
use windlass::protocol::{NewJob, QueueId};
use windlass_core::policy::FAMILY_FIELDS;
use windlass_core::{JobId, Millis, State as JobState, Timestamp};

/// Longest `traceparent` that is looked at.
const TRACEPARENT_LENGTH: usize = 55;

/// Store one job.
///
/// Durable when answered. A body with `schedule` (a cron line) makes a schedule instead.
#[utoipa::path(post, path = "/api/v1/jobs", tag = "jobs",
    params(("Idempotency-Key" = Option<String>, Header, description = "Like `idempotencyKey` in the body")),
    request_body = JobBody,
    responses(
        (status = 201, description = "Stored", body = JobView),
        (status = 200, description = "The idempotency key stands for this job already", body = JobView),
        (status = 409, description = "The key stands for a job of another kind or payload", body = ProblemBody),
        (status = 422, description = "Wrong fields", body = ProblemBody),
    ))]
pub(crate) async fn enqueue(
    State(app): State<App>,
    caller: May<Enqueue>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let catalogue = app.catalogue().await?;
    let made = {
        let faults = Faults::default();
        let raw = body.json()?;
        let Some(fields) = Fields::open(raw, "", &faults) else { return Err(faults.problem()) };
        let beside = beside(&headers, &fields)?;
        if fields.has("schedule") {
            fields.refuse_unknown(&[JOB_FIELDS, FAMILY_FIELDS, SCHEDULE_FIELDS].concat());
            let made = schedules::read_new(&fields, &caller, &catalogue, app.now())?;
            faults.finish()?;
            Made::Schedule(made)
        } else {
            let made = read_job(&fields, &caller, &catalogue, &beside)?;
            faults.finish()?;
            Made::Job(made)
        }
    };
    match made {
        Made::Schedule(None) | Made::Job(None) => Err(Problem::new(Kind::Invalid, "the body is wrong")),
        Made::Schedule(Some(new)) => schedules::add(&app, &caller, new).await,
        Made::Job(Some(job)) => store(&app, &caller, job).await,
    }
}

enum Made {
    Schedule(Option<schedules::ScheduleFields>),
    Job(Option<NewJob>),
}

fn read_job(
    fields: &Fields<'_>,
    caller: &Caller,
    catalogue: &windlass::protocol::Catalogue,
    beside: &Beside,
) -> Result<Option<NewJob>, Problem> {
    fields.refuse_unknown(&[JOB_FIELDS, FAMILY_FIELDS, &["isRecurring", "schedule"]].concat());
    if fields.flag("isRecurring") == Some(true) {
        fields.fault("isRecurring", "needs a `schedule`, such as \"*/10 * * * *\"");
    }
    let draft = draft::read(fields, caller, catalogue, beside)?;
    Ok(draft.and_then(|draft| draft::complete(fields, catalogue, draft)))
}

async fn store(app: &App, caller: &Caller, job: NewJob) -> Result<Response, Problem> {
    let stored = app.windlass().enqueue_jobs(vec![job.clone()], Atomicity::Each).await?;
    match stored.into_iter().next() {
        Some(Enqueued::Created { id, created_at, due_at }) => {
            let view = JobView::from(&stored_job(job, id, created_at, due_at));
            let location = format!("/api/v1/jobs/{id}");
            Ok((StatusCode::CREATED, [(LOCATION, location)], Json(view)).into_response())
        }
        Some(Enqueued::Existing(id)) => match app.windlass().jobs().within(&caller.tenants()).get(id).await? {
            Some(found) => Ok(Json(JobView::from(&found)).into_response()),
            // Its queue keeps no finished jobs; that it was accepted is all there is to say.
            None => Ok(Json(serde_json::json!({ "id": id.0 })).into_response()),
        },
        Some(Enqueued::KeyConflict(id)) => Err(key_conflict(id)),
        Some(Enqueued::Refused(why)) => Err(Problem::new(Kind::Invalid, why)),
        Some(Enqueued::NotStored) | None => Err(Problem::new(Kind::Internal, "the store gave no answer for the job")),
    }
}

pub(crate) fn key_conflict(id: JobId) -> Problem {
    let detail = format!("the idempotency key stands for job {id}, which has another kind or payload");
    Problem::new(Kind::KeyConflict, detail)
}

/// The job as the store now holds it.
fn stored_job(new: NewJob, id: JobId, created_at: Timestamp, due_at: Timestamp) -> Job {
    Job {
        id,
        tenant: new.tenant,
        queue: new.queue,
        queue_id: QueueId(0),
        executor: new.executor,
        kind: new.kind,
        payload: new.payload,
        priority: new.priority,
        state: JobState::Queued,
        reason: None,
        delivery: new.delivery,
        policy: new.policy,
        attempt: 0,
        failures: 0,
        crashes: 0,
        replays: 0,
        created_at,
        due_at,
        first_attempt_at: None,
        claimed_at: None,
        finished_at: None,
        previous_delay: Millis::ZERO,
        start_by: new.start_by,
        timeout: new.timeout,
        idempotency_key: new.idempotency.map(|i| i.key),
        cancel_requested: false,
        error_class: None,
        error: None,
        result: None,
        discarded_at: None,
        discard_reason: None,
        http: new.http,
        webhook: new.webhook,
        schedule: new.schedule,
        parent: new.parent,
        traceparent: new.traceparent,
    }
}

/// What the headers say: a key, which must not contradict the body's, and a trace.
fn beside(headers: &HeaderMap, fields: &Fields<'_>) -> Result<Beside, Problem> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let key = headers.get("idempotency-key").map(|value| {
        let text = value.to_str().unwrap_or_default().trim();
        // The draft standard writes it in quotes; many clients do not.
        let bare = text.strip_prefix('"').and_then(|t| t.strip_suffix('"')).unwrap_or(text);
        bare.to_owned()
    });
    if let (Some(header), Some(own)) = (&key, fields.text("idempotencyKey"))
        && *header != own
    {
        let detail = "the header Idempotency-Key and the field idempotencyKey differ; give one of them";
        return Err(Problem::new(Kind::KeyMismatch, detail));
    }
    let is_trace =
        |text: &&str| text.len() == TRACEPARENT_LENGTH && text.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
    Ok(Beside { key, traceparent: text("traceparent").filter(is_trace).map(str::to_owned) })
}
