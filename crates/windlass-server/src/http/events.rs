//! GET /events: job events as server-sent events. They are for live views and are not a complete record: events of
//! other processes, and events while no client is connected, are missing.

use super::app::App;
use super::auth::{Caller, May, Read};
use super::input::query::Query;
use super::output::problem::{Problem, ProblemBody};
use super::shares::{self, Counted, Open};
use axum::extract::State;
use axum::response::sse::{Event as Sse, KeepAlive};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde_json::json;
use std::convert::Infallible;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use windlass::client::Scope;
use windlass::{Event, EventKind};
use windlass_core::job::{QueueName, Tenant};
use windlass_core::{JobId, Millis};

/// One stream; counted until it is dropped.
struct Stream {
    events: Receiver<Event>,
    scope: Scope,
    queue: Option<QueueName>,
    job: Option<JobId>,
    app: App,
    caller: Caller,
    _counted: Counted,
}

/// State changes as they happen in this process (server-sent events).
///
/// The name of an event says what happened (queued, started, succeeded, retried, `gave_up`, cancelled, postponed,
/// parked); its data is JSON. `waitingFor` and `until` say what the job waits for after it. A client that reads too
/// slowly gets the event `lagged` with the number of events it missed.
#[utoipa::path(get, path = "/api/v1/events", operation_id = "streamEvents", tag = "events",
    params(("queue" = Option<String>, Query), ("tenant" = Option<String>, Query), ("job" = Option<i64>, Query)),
    responses((status = 200, content_type = "text/event-stream", body = String),
        (status = 429, description = "Too many streams", body = ProblemBody)))]
pub(crate) async fn events(State(app): State<App>, caller: May<Read>, query: Query) -> Result<Response, Problem> {
    query.only(&["queue", "tenant", "job"])?;
    let tenant = caller.narrowed(query.parsed("tenant", Tenant::new)?)?;
    let queue = query.parsed("queue", QueueName::new)?;
    let job = query.parsed("job", |text| text.parse().map(JobId).map_err(|_| "must be an id, a whole number"))?;
    let counted = shares::open(&app, Open::Stream, &caller).await?;
    let stream = Stream {
        events: app.windlass().events().subscribe(),
        scope: tenant.map_or_else(|| caller.tenants(), Scope::Tenant),
        queue,
        job,
        caller: caller.0.clone(),
        app,
        _counted: counted,
    };
    let events = stream::unfold(stream, |mut stream| async move {
        let event = stream.next().await?;
        Some((Ok::<Sse, Infallible>(event), stream))
    });
    Ok(axum::response::Sse::new(events).keep_alive(KeepAlive::default()).into_response())
}

impl Stream {
    async fn next(&mut self) -> Option<Sse> {
        loop {
            let received = tokio::select! {
                received = self.events.recv() => received,
                () = self.app.draining().cancelled() => return None,
                () = self.caller.is_shut_out(&self.app) => return None,
            };
            match received {
                Ok(event) if self.is_wanted(&event) => return Some(sse(&event)),
                Ok(_) => {}
                Err(RecvError::Lagged(missed)) => {
                    return Some(Sse::default().event("lagged").data(json!({ "missed": missed }).to_string()));
                }
                Err(RecvError::Closed) => return None,
            }
        }
    }

    fn is_wanted(&self, event: &Event) -> bool {
        self.scope.covers(&event.tenant)
            && self.queue.as_ref().is_none_or(|name| *name == event.queue)
            && self.job.is_none_or(|id| id == event.job)
    }
}

fn sse(event: &Event) -> Sse {
    let name = event.event_kind.name();
    let detail = match &event.event_kind {
        EventKind::Started { waited } => json!({ "waitedMs": waited.get() }),
        EventKind::Succeeded { elapsed } => json!({ "durationMs": elapsed.get() }),
        EventKind::Retried { elapsed, delay, next_run_at, error_class } => {
            let (elapsed, delay) = (elapsed.get(), Millis::get(*delay));
            let at = next_run_at.to_string();
            json!({ "durationMs": elapsed, "delayMs": delay, "nextRunAt": at, "errorClass": error_class })
        }
        EventKind::GaveUp { elapsed, reason, error_class } => {
            json!({ "durationMs": elapsed.get(), "reason": reason.as_str(), "errorClass": error_class })
        }
        EventKind::Postponed { next_run_at } => json!({ "nextRunAt": next_run_at.to_string() }),
        EventKind::Queued | EventKind::Parked { .. } | EventKind::Cancelled | _ => json!({}),
    };
    let waiting = event.waiting();
    let mut data = json!({
        "at": event.at.to_string(),
        "id": event.job.0,
        "tenantId": event.tenant.as_str(),
        "queue": event.queue.as_str(),
        "kind": event.kind.as_str(),
        "state": event.event_kind.state().as_str(),
        "attempt": event.attempt,
        "retryCount": event.retry,
        "maxAttempts": event.max_attempts,
        "scheduleId": event.schedule.map(|id| id.0),
        "waitingFor": waiting.map(|(what, _)| what.as_str()),
        "until": waiting.and_then(|(_, until)| until).map(|until| until.to_string()),
    });
    if let (Some(data), Some(detail)) = (data.as_object_mut(), detail.as_object()) {
        data.extend(detail.clone());
    }
    Sse::default().event(name).data(data.to_string())
}
