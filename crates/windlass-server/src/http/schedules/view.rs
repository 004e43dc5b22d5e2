//! Schedules as the API shows them.

use crate::http::openapi::types;
use crate::http::output::view::{CallView, WebhookView, moment, raw};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use utoipa::ToSchema;
use windlass::client::{Recurrence, Schedule};
use windlass::protocol::NewJob;
use windlass_core::{Cadence, Millis, Timestamp};

/// A schedule.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Schedule)]
pub(crate) struct ScheduleView {
    id: i64,
    tenant_id: String,
    cron: Option<String>,
    every: Option<String>,
    timezone: String,
    recurring: bool,
    overlap: &'static str,
    missed: &'static str,
    /// latest or all
    dead_letters: &'static str,
    paused: bool,
    /// When its live run is retried, or else its next firing.
    next_run_at: Option<String>,
    next_firing_at: Option<String>,
    last_firing_at: Option<String>,
    last_job_id: Option<i64>,
    created_at: String,
    job: TemplateView,
}

/// The job each firing enqueues.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ScheduledJob)]
pub(crate) struct TemplateView {
    queue: String,
    kind: String,
    priority: &'static str,
    delivery: &'static str,
    max_attempts: u32,
    #[schema(value_type = types::Policy)]
    retry: Value,
    timeout_ms: Option<u64>,
    #[schema(value_type = types::AnyJson)]
    payload: Box<RawValue>,
    http: Option<CallView>,
    webhook: Option<WebhookView>,
}

impl ScheduleView {
    pub(super) fn new(schedule: &Schedule, retry_at: Option<Timestamp>) -> Self {
        let spec = &schedule.spec;
        let interval = Cadence::interval_in(&spec.cadence);
        let next_firing = schedule.next_at.filter(|_| !schedule.paused);
        Self {
            id: schedule.id.0,
            tenant_id: spec.tenant.to_string(),
            cron: interval.is_none().then(|| spec.cadence.clone()),
            every: interval.map(|span| span.to_string()),
            timezone: spec.zone.clone(),
            recurring: spec.recurrence == Recurrence::Recurring,
            overlap: spec.overlap.as_str(),
            missed: spec.missed.as_str(),
            dead_letters: spec.dead_letters.as_str(),
            paused: schedule.paused,
            next_run_at: moment(retry_at.or(next_firing)),
            next_firing_at: moment(next_firing),
            last_firing_at: moment(schedule.last_at),
            last_job_id: schedule.last_job.map(|id| id.0),
            created_at: schedule.created_at.to_string(),
            job: TemplateView::from(&spec.template),
        }
    }
}

impl From<&NewJob> for TemplateView {
    fn from(job: &NewJob) -> Self {
        Self {
            queue: job.queue.to_string(),
            kind: job.kind.to_string(),
            priority: job.priority.as_str(),
            delivery: job.delivery.as_str(),
            max_attempts: job.max_attempts(),
            retry: job.policy.to_json(),
            timeout_ms: job.timeout.map(Millis::get),
            payload: raw(&job.payload),
            http: job.http.as_deref().map(CallView::from),
            webhook: job.webhook.as_deref().map(WebhookView::from),
        }
    }
}
