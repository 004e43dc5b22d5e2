//! Spans, sent to a collector on loopback, in virtual time: the test moves the clock until what it waits for has
//! happened.

use super::{sender, settings, span};
use crate::config::{Protocol, Target};
use crate::telemetry::collector::Signal;
use crate::telemetry::encode::resource;
use crate::telemetry::queue::{MAX_WAITING, SpanQueue, queue};
use crate::telemetry::spans::SpanExporter;
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use hyper::HeaderMap;
use serde_json::Value;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use windlass::Clock;
use windlass::telemetry::{SpanCounts, SpanSink as _};
use windlass_core::{Millis, Timestamp};

const SECOND: Millis = Millis::from_secs(1);

/// What the collector does with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reply {
    Status(u16),
    /// 503, with this `Retry-After` in seconds.
    Later(u64),
    /// 200, and this many spans were not taken.
    Partly(u32),
    Silence,
}

/// A request: when it came, its headers and its spans.
type Request = (Timestamp, HeaderMap, Vec<Value>);

struct World {
    clock: Clock,
    queue: Arc<SpanQueue>,
    requests: Arc<Mutex<Vec<Request>>>,
    stop: CancellationToken,
    exporter: AbortOnDropHandle<()>,
    _collector: AbortOnDropHandle<()>,
}

#[derive(Clone)]
struct Desk {
    clock: Clock,
    requests: Arc<Mutex<Vec<Request>>>,
    replies: Arc<dyn Fn(usize) -> Reply + Send + Sync>,
}

async fn collect(State(desk): State<Desk>, headers: HeaderMap, body: Bytes) -> Response {
    let body: Value = serde_json::from_slice(&body).unwrap();
    let spans = body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap().clone();
    let number = {
        let mut requests = desk.requests.lock().unwrap();
        requests.push((desk.clock.now(), headers, spans));
        requests.len()
    };
    match (desk.replies)(number) {
        Reply::Status(status) => hyper::StatusCode::from_u16(status).unwrap().into_response(),
        Reply::Later(seconds) => {
            (hyper::StatusCode::SERVICE_UNAVAILABLE, [("retry-after", seconds.to_string())]).into_response()
        }
        Reply::Partly(count) => format!("{{\"partialSuccess\":{{\"rejectedSpans\":\"{count}\"}}}}").into_response(),
        Reply::Silence => std::future::pending().await,
    }
}

impl World {
    /// A collector that answers its `n`th request with `replies(n)`, and an exporter that takes at most 5 s at the end.
    async fn new(replies: impl Fn(usize) -> Reply + Send + Sync + 'static) -> Self {
        Self::with_clock(Clock::manual(Timestamp::from_millis(1_767_268_800_000)), replies).await
    }

    async fn with_clock(clock: Clock, replies: impl Fn(usize) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1/traces", listener.local_addr().unwrap());
        let requests = Arc::default();
        let desk = Desk { clock: clock.clone(), requests: Arc::clone(&requests), replies: Arc::new(replies) };
        let router = Router::new().route("/v1/traces", post(collect)).with_state(desk);
        let collector = AbortOnDropHandle::new(tokio::spawn(async { axum::serve(listener, router).await.unwrap() }));
        let headers = vec![(hyper::header::AUTHORIZATION, "Bearer s3cret".parse().unwrap())];
        let target = Target { url: url.parse().unwrap(), protocol: Protocol::HttpJson, headers, certificate: None };
        let (queue, spans) = queue();
        let sender = sender(Signal::Traces, target, &clock);
        let exporter = SpanExporter::new(spans, queue.clone(), sender, resource(&settings(), "n1"));
        let stop = CancellationToken::new();
        let exporter = AbortOnDropHandle::new(tokio::spawn(exporter.run(stop.clone(), Millis::from_secs(5))));
        Self { clock, queue, requests, stop, exporter, _collector: collector }
    }

    fn record(&self, count: usize) {
        (0..count).for_each(|_| self.queue.record(span()));
    }

    fn request_count(&self) -> usize {
        self.requests.lock().unwrap().len()
    }

    /// When the requests came, in milliseconds after the first.
    fn times(&self) -> Vec<u64> {
        let requests = self.requests.lock().unwrap();
        requests.iter().map(|(at, ..)| at.since(requests[0].0).get()).collect()
    }

    /// Moves the clock until the counts are these.
    async fn until(&self, exported: u64, dropped: u64) {
        let expected = SpanCounts { exported, dropped };
        self.until_holds(Millis::new(20), || self.queue.counts() == expected).await;
    }

    /// Moves the clock in these steps. Sockets are real and need real time, so a request gets a second of it within its
    /// limit of 10 s.
    async fn until_holds(&self, step: Millis, holds: impl Fn() -> bool) {
        while !holds() {
            self.clock.advance(step);
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    }

    /// Stops the exporter and waits for its end; the clock goes on meanwhile.
    async fn end(mut self) -> (SpanCounts, usize) {
        self.stop.cancel();
        loop {
            tokio::select! {
                ended = &mut self.exporter => {
                    ended.unwrap();
                    return (self.queue.counts(), self.request_count());
                }
                () = tokio::time::sleep(std::time::Duration::from_millis(1)) => self.clock.advance(Millis::new(50)),
            }
        }
    }
}

#[tokio::test]
async fn a_span_is_sent_as_the_protocol_writes_it() {
    let world = World::new(|_| Reply::Status(200)).await;
    world.record(1);
    world.until(1, 0).await;
    let (_, headers, spans) = world.requests.lock().unwrap()[0].clone();
    assert_eq!(
        (&headers["content-type"], &headers["authorization"]),
        (&"application/json".parse().unwrap(), &"Bearer s3cret".parse().unwrap())
    );
    let expected = serde_json::json!([{
        "traceId": "07070707070707070707070707070707",
        "spanId": "0000000000000009",
        "parentSpanId": "0000000000000008",
        "flags": 1,
        "name": "attempt email",
        "kind": 5,
        "startTimeUnixNano": "1767268800000000000",
        "endTimeUnixNano": "1767268800250000000",
        "attributes": [
            {"key": "queue", "value": {"stringValue": "email"}},
            {"key": "jobId", "value": {"intValue": "42"}},
        ],
        "status": {"code": 2, "message": "no \"answer\"\u{1}"},
    }]);
    assert_eq!(Value::Array(spans), expected);
}

#[tokio::test]
async fn spans_are_sent_in_batches_and_connections_are_kept() {
    let world = World::new(|_| Reply::Status(200)).await;
    world.record(1300);
    world.until(1300, 0).await;
    let sizes: Vec<usize> = world.requests.lock().unwrap().iter().map(|(_, _, spans)| spans.len()).collect();
    assert_eq!(sizes, [512, 512, 276]);
}

#[tokio::test]
async fn a_full_queue_drops_and_counts() {
    let (queue, spans) = queue();
    (0..MAX_WAITING + 10).for_each(|_| queue.record(span()));
    assert_eq!((queue.counts(), spans.len()), (SpanCounts { exported: 0, dropped: 10 }, MAX_WAITING));
}

#[tokio::test]
async fn a_collector_that_asks_for_a_pause_gets_it() {
    let world = World::new(|n| if n == 1 { Reply::Later(7) } else { Reply::Status(200) }).await;
    world.record(3);
    world.until(3, 0).await;
    let times = world.times();
    assert!(times.len() == 2 && times[1] >= 7_000, "{times:?}");
}

#[tokio::test]
async fn an_absurd_pause_is_cut() {
    let world = World::new(|n| if n == 1 { Reply::Later(1_000_000) } else { Reply::Status(200) }).await;
    world.record(1);
    world.until(1, 0).await;
}

#[tokio::test]
async fn a_collector_that_fails_is_tried_again_with_growing_pauses_and_then_given_up() {
    let given_up = [429, 502, 503, 504].map(async |status| {
        let world = World::new(move |_| Reply::Status(status)).await;
        world.record(2);
        world.until(0, 2).await;
        let times = world.times();
        assert_eq!(times.len(), 5, "{times:?}");
        let pauses: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let least = [500, 1_000, 2_000, 4_000];
        assert!(pauses.iter().zip(least).all(|(pause, least)| *pause >= least), "{pauses:?}");
    });
    futures_util::future::join_all(given_up).await;
}

#[tokio::test]
async fn what_a_collector_refuses_is_not_sent_again() {
    let world = World::new(|n| if n == 1 { Reply::Status(400) } else { Reply::Status(200) }).await;
    world.record(2);
    world.until(0, 2).await;
    world.record(3);
    world.until(3, 2).await;
    assert_eq!(world.request_count(), 2);
}

#[tokio::test]
async fn spans_that_a_collector_leaves_out_are_counted_as_dropped() {
    let world = World::new(|n| Reply::Partly(if n == 1 { 2 } else { 0 })).await;
    world.record(5);
    world.until(3, 2).await;
}

#[tokio::test]
async fn a_silent_collector_costs_spans_and_nothing_else() {
    let world = World::new(|n| if n <= 5 { Reply::Silence } else { Reply::Status(200) }).await;
    world.record(4);
    world.until_holds(Millis::new(20), || world.request_count() == 1).await;
    // Meanwhile spans are taken, up to what the queue holds.
    world.record(MAX_WAITING + 100);
    assert!(world.queue.counts().dropped >= 99, "{:?}", world.queue.counts());
    world.until_holds(Millis::new(100), || world.queue.counts().exported > 0).await;
    let times = world.times();
    assert!(times[1] >= 10_000, "a request may take 10 s: {times:?}");
}

#[tokio::test]
async fn no_collector_at_all_costs_spans_and_nothing_else() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    drop(listener);
    let mut world = World::new(|_| Reply::Status(200)).await;
    let (queue, spans) = queue();
    let target =
        Target { url: url.parse().unwrap(), protocol: Protocol::HttpJson, headers: Vec::new(), certificate: None };
    let sender = sender(Signal::Traces, target, &world.clock);
    let exporter = SpanExporter::new(spans, queue.clone(), sender, resource(&settings(), "n1"));
    world.exporter = AbortOnDropHandle::new(tokio::spawn(exporter.run(world.stop.clone(), SECOND)));
    world.queue = queue;
    world.record(3);
    world.until(0, 3).await;
    assert_eq!(world.end().await, (SpanCounts { exported: 0, dropped: 3 }, 0));
}

#[tokio::test]
async fn what_is_left_is_sent_before_the_process_ends() {
    // The five seconds it has are real ones.
    let world =
        World::with_clock(Clock::system(), |n| if n == 1 { Reply::Later(60) } else { Reply::Status(200) }).await;
    world.record(1300);
    assert_eq!(world.end().await, (SpanCounts { exported: 1300, dropped: 0 }, 4));
}

#[tokio::test]
async fn a_silent_collector_does_not_keep_the_process() {
    let world = World::new(|_| Reply::Silence).await;
    let clock = world.clock.clone();
    let began = clock.monotonic();
    world.record(700);
    let (counts, _) = world.end().await;
    assert_eq!(counts, SpanCounts { exported: 0, dropped: 700 });
    assert!(clock.monotonic() - began < Millis::from_secs(8), "it took {}", clock.monotonic() - began);
}
