//! The deliveries of a job as the API shows them: where each webhook goes, and its attempts.

use super::app::App;
use super::output::view::{AttemptView, JobView, moment};
use serde::Serialize;
use utoipa::ToSchema;
use windlass::Job;
use windlass::StoreError;
use windlass::client::Scope;
use windlass_core::{Attempt, Reason, State};

/// The most attempts shown for each delivery.
const SHOWN_ATTEMPTS: u32 = 20;

/// A job with its webhook deliveries.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct JobWithDeliveries {
    #[serde(flatten)]
    pub(crate) job: JobView,
    /// The latest 20 deliveries, oldest first. Each one is a separate job.
    pub(crate) deliveries: Vec<DeliveryView>,
}

/// A webhook delivery.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Delivery)]
pub(crate) struct DeliveryView {
    /// The delivery is a job: `/api/v1/jobs/{id}` shows all its fields.
    id: i64,
    state: &'static str,
    url: Option<String>,
    /// The header `webhook-id`, the same for every attempt.
    webhook_id: Option<String>,
    attempt: u32,
    max_attempts: u32,
    next_run_at: Option<String>,
    finished_at: Option<String>,
    reason: Option<&'static str>,
    error_class: Option<String>,
    error: Option<String>,
    /// Its latest attempts, oldest first.
    history: Vec<AttemptView>,
}

/// The webhook deliveries of a job, with their attempts.
///
/// # Errors
/// The store cannot be read.
pub(crate) async fn of(app: &App, scope: &Scope, job: &Job) -> Result<Vec<DeliveryView>, StoreError> {
    let jobs = app.windlass().jobs().within(scope);
    let installation = app.windlass().installation().await?;
    let mut deliveries = Vec::new();
    for delivery in &jobs.deliveries(job).await? {
        let attempts = jobs.latest_attempts(delivery.id, SHOWN_ATTEMPTS).await?;
        deliveries.push(DeliveryView::new(delivery, &attempts, &installation));
    }
    Ok(deliveries)
}

impl DeliveryView {
    fn new(job: &Job, attempts: &[Attempt], installation: &str) -> Self {
        let is_waiting = matches!(job.state, State::Queued | State::Retrying);
        Self {
            id: job.id.0,
            state: job.state.as_str(),
            url: job.shown_url(),
            webhook_id: job.webhook_id(installation),
            attempt: job.attempt,
            max_attempts: job.max_attempts(),
            next_run_at: is_waiting.then(|| job.due_at.to_string()),
            finished_at: moment(job.finished_at),
            reason: job.reason.map(Reason::as_str),
            error_class: job.error_class.clone(),
            error: job.error.clone(),
            history: attempts.iter().map(|attempt| AttemptView::new(attempt, None)).collect(),
        }
    }
}
