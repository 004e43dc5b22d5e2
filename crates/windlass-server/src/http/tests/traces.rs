//! Which traces are recorded: a request decides for its jobs, once.

use super::world::World;
use serde_json::json;
use std::sync::{Arc, Mutex};
use windlass::telemetry::{SampleShare, Span, SpanKind, SpanSink, TraceContext, Tracer};

#[derive(Debug, Default)]
struct Kept(Mutex<Vec<Span>>);

impl SpanSink for Kept {
    fn record(&self, span: Span) {
        self.0.lock().unwrap().push(span);
    }
}

#[tokio::test]
async fn attempts_are_recorded_if_their_request_was_and_not_otherwise() {
    const JOBS: usize = 200;
    let world = World::new();
    let kept = Arc::new(Kept::default());
    Tracer::start(&world.windlass, kept.clone(), SampleShare::parse("0.5").unwrap()).await.unwrap();
    let mut sampled = 0;
    for _ in 0..JOBS {
        world.enqueue("email").await;
        let job = world.lease("email").await;
        let handed_out = TraceContext::parse(job["traceparent"].as_str().unwrap()).unwrap();
        sampled += usize::from(handed_out.is_sampled);
        let result = json!({"id": job["id"], "attempt": job["attempt"], "lease": job["lease"]});
        let done = json!({"worker": "w1", "results": [result]}).to_string();
        world.post("/api/v1/leases/complete", &done).await.is(200);
    }
    let spans = kept.0.lock().unwrap().clone();
    let of = |kind| spans.iter().filter(|span| span.kind == kind).collect::<Vec<_>>();
    let (requests, attempts) = (of(SpanKind::Server), of(SpanKind::Consumer));
    let parents: Vec<_> = attempts.iter().map(|span| (span.context.trace, span.parent)).collect();
    let expected: Vec<_> = requests.iter().map(|span| (span.context.trace, Some(span.context.span))).collect();
    assert_eq!(parents, expected);
    assert_eq!(sampled, requests.len());
    assert!((70..=130).contains(&sampled), "{sampled} of {JOBS}");
}

#[tokio::test]
async fn what_stands_for_a_trace_that_is_not_recorded_is_shown_to_nobody() {
    let world = World::new();
    let sink = Arc::new(Kept::default());
    Tracer::start(&world.windlass, sink, SampleShare::parse("0").unwrap()).await.unwrap();
    let id = world.enqueue("email").await;
    let stored = world.windlass.jobs().get(windlass::JobId(id)).await.unwrap().unwrap();
    assert_eq!((stored.traceparent.as_deref(), stored.traceparent()), (Some("-"), None));
    // A node that does not trace has no context to hand out.
    let job = world.another().lease("email").await;
    assert_eq!(job["traceparent"], serde_json::Value::Null);
}
