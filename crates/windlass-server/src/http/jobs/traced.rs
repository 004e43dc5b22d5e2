//! The span of a request that enqueues jobs. It is a child of the caller's span, and the jobs carry its context.

use crate::http::app::App;
use crate::http::output::problem::Problem;
use axum::response::Response;
use hyper::header::HeaderMap;
use std::sync::Arc;
use windlass::telemetry::{Span, SpanKind, SpanStatus, TraceContext, Tracer};

/// Does the work of a request. `work` is given the `traceparent` for the jobs it stores: of this request if the server
/// traces, or of the caller. Callers whose token was refused get no span.
pub(super) async fn traced(
    app: &App,
    headers: &HeaderMap,
    route: &'static str,
    work: impl AsyncFnOnce(Option<Arc<str>>) -> Result<Response, Problem>,
) -> Result<Response, Problem> {
    let given = headers.get("traceparent").and_then(|value| value.to_str().ok());
    let given = given.and_then(|text| TraceContext::parse(text.trim()));
    let Some(tracer) = Tracer::of(app.windlass()) else {
        return work(given.map(|given| given.to_string().into())).await;
    };
    let (context, started_at) = (tracer.context(given), app.now());
    let answered = work(Some(tracer.carried(context, given))).await;
    let (status, why) = match &answered {
        Ok(response) => (response.status(), None),
        Err(problem) => {
            let (status, title, _) = problem.described();
            (status, Some(title))
        }
    };
    tracer.record(Span {
        context,
        parent: given.map(|given| given.span),
        name: format!("POST {route}"),
        kind: SpanKind::Server,
        started_at,
        ended_at: app.now(),
        attributes: vec![
            ("http.request.method", "POST".into()),
            ("http.route", route.into()),
            ("http.response.status_code", u32::from(status.as_u16()).into()),
        ],
        // By the conventions, what the caller did wrong is no error of the server.
        status: match why {
            Some(why) if status.is_server_error() => SpanStatus::Error(why.to_owned()),
            Some(_) | None => SpanStatus::Unset,
        },
    });
    answered
}
