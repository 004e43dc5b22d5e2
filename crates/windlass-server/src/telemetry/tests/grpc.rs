//! gRPC, against a server of HTTP/2 on loopback.

use super::span;
use crate::config::{Protocol, Target};
use crate::telemetry::collector::{Answer, Collector, Signal};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::header::HeaderMap;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;
use windlass_core::Millis;

/// How a collector answers.
#[derive(Debug, Clone, Copy)]
enum Reply {
    /// A message, and the status after it.
    Message(&'static [u8], u32),
    /// A status at once, without a message.
    Headers(u32),
    /// A status with the details of a pause of 3 s.
    Pause(u32),
    Http(u16),
    /// Something that is no gRPC.
    Page,
}

/// `Status { details: [Any { RetryInfo { retry_delay: 3 s } }] }`
const PAUSE: &str = "GjAKKHR5cGUuZ29vZ2xlYXBpcy5jb20vZ29vZ2xlLnJwYy5SZXRyeUluZm8SBAoCCAM=";
const EMPTY: &[u8] = b"\0\0\0\0\0";

type Seen = Arc<Mutex<Vec<(String, HeaderMap, Bytes)>>>;

struct World {
    collector: Collector,
    requests: Seen,
    connections: Arc<Mutex<usize>>,
    _server: AbortOnDropHandle<()>,
}

impl World {
    async fn new(signal: Signal, reply: Reply) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap()).parse().unwrap();
        let (requests, connections) = (Seen::default(), Arc::new(Mutex::new(0)));
        let (seen, accepted) = (requests.clone(), connections.clone());
        let server = AbortOnDropHandle::new(tokio::spawn(async move {
            loop {
                let (wire, _) = listener.accept().await.unwrap();
                *accepted.lock().unwrap() += 1;
                let seen = seen.clone();
                let service = service_fn(move |request| answer(seen.clone(), reply, request));
                let connection =
                    http2::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(wire), service);
                tokio::spawn(connection);
            }
        }));
        let headers = vec![(hyper::header::AUTHORIZATION, "Bearer s3cret".parse().unwrap())];
        let target = Target { url, protocol: Protocol::Grpc, headers, certificate: None };
        Self { collector: Collector::new(signal, target).unwrap(), requests, connections, _server: server }
    }

    async fn send(&mut self, body: &'static [u8]) -> Answer {
        self.collector.send(Bytes::from_static(body)).await
    }
}

async fn answer(seen: Seen, reply: Reply, request: Request<Incoming>) -> Result<Response<Full2>, Infallible> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    seen.lock().unwrap().push((head.uri.path().to_owned(), head.headers, body));
    let (message, trailers) = match reply {
        Reply::Message(message, status) => {
            (message, Some(HeaderMap::from_iter([("grpc-status".parse().unwrap(), status.into())])))
        }
        Reply::Headers(_) | Reply::Pause(_) | Reply::Http(_) => (&b""[..], None),
        Reply::Page => (&b"<html>"[..], None),
    };
    let mut response = Response::new(
        Full::new(Bytes::from_static(message)).with_trailers(std::future::ready(trailers.map(Ok))).boxed(),
    );
    let headers = response.headers_mut();
    match reply {
        Reply::Message(..) | Reply::Page => {}
        Reply::Headers(status) => _ = headers.insert("grpc-status", status.into()),
        Reply::Pause(status) => {
            headers.insert("grpc-status", status.into());
            headers.insert("grpc-status-details-bin", PAUSE.parse().unwrap());
        }
        Reply::Http(status) => *response.status_mut() = hyper::StatusCode::from_u16(status).unwrap(),
    }
    Ok(response)
}

type Full2 = http_body_util::combinators::BoxBody<Bytes, Infallible>;

fn accepted(rejected: u64) -> Answer {
    Answer::Accepted { rejected }
}

#[tokio::test]
async fn requests_are_framed_and_connections_are_kept() {
    for (signal, path) in [
        (Signal::Traces, "/opentelemetry.proto.collector.trace.v1.TraceService/Export"),
        (Signal::Metrics, "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export"),
    ] {
        let mut world = World::new(signal, Reply::Message(EMPTY, 0)).await;
        assert_eq!(world.send(b"one").await, accepted(0));
        assert_eq!(world.send(b"").await, accepted(0));
        let seen = world.requests.lock().unwrap().clone();
        assert_eq!((&seen[0].0[..], &seen[0].2[..], &seen[1].2[..]), (path, &b"\0\0\0\0\x03one"[..], EMPTY));
        let header = |name: &str| seen[0].1[name].to_str().unwrap();
        let headers = ["content-type", "te", "grpc-timeout", "authorization"].map(header);
        assert_eq!(headers, ["application/grpc", "trailers", "10S", "Bearer s3cret"]);
        assert_eq!(*world.connections.lock().unwrap(), 1);
    }
}

#[tokio::test]
async fn the_status_decides_and_the_protocol_says_which_are_tried_again() {
    let status = |status: u32, name: &str| format!("it answered with the gRPC status {status} ({name})");
    let later = |why: String| Answer::Later { why, after: None };
    // `ExportTraceServiceResponse { partial_success { rejected_spans: 300 } }`
    let partly: &[u8] = b"\0\0\0\0\x05\x0a\x03\x08\xac\x02";
    let mut expected = vec![
        (Reply::Message(partly, 0), accepted(300)),
        (Reply::Message(b"", 0), accepted(0)),
        (Reply::Message(b"\0\0\0\0\x09cut", 0), accepted(0)),
        (Reply::Headers(0), accepted(0)),
        (Reply::Message(EMPTY, 14), later(status(14, "UNAVAILABLE"))),
        (Reply::Headers(8), Answer::Refused(status(8, "RESOURCE_EXHAUSTED"))),
        (Reply::Pause(8), Answer::Later { why: status(8, "RESOURCE_EXHAUSTED"), after: Some(Millis::from_secs(3)) }),
        (Reply::Pause(14), Answer::Later { why: status(14, "UNAVAILABLE"), after: Some(Millis::from_secs(3)) }),
        (Reply::Headers(99), Answer::Refused(status(99, "unknown"))),
        (Reply::Http(503), later("it answered 503 Service Unavailable".into())),
        (Reply::Http(404), Answer::Refused("it answered 404 Not Found".into())),
        (Reply::Page, Answer::Refused("it did not answer in gRPC".into())),
    ];
    let names = [(1, "CANCELLED"), (4, "DEADLINE_EXCEEDED"), (10, "ABORTED"), (11, "OUT_OF_RANGE"), (15, "DATA_LOSS")];
    expected.extend(names.map(|(code, name)| (Reply::Headers(code), later(status(code, name)))));
    let names =
        [(2, "UNKNOWN"), (3, "INVALID_ARGUMENT"), (12, "UNIMPLEMENTED"), (13, "INTERNAL"), (16, "UNAUTHENTICATED")];
    expected.extend(names.map(|(code, name)| (Reply::Headers(code), Answer::Refused(status(code, name)))));
    for (reply, expected) in expected {
        let mut world = World::new(Signal::Traces, reply).await;
        assert_eq!(world.send(b"one").await, expected, "{reply:?}");
    }
}

#[tokio::test]
async fn a_server_that_speaks_no_http2_is_tried_again_later() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap()).parse().unwrap();
    let router = axum::Router::new().fallback(async || "hello");
    // `axum::serve` of this build would take HTTP/2 too.
    let server = AbortOnDropHandle::new(tokio::spawn(async move {
        let (wire, _) = listener.accept().await.unwrap();
        let service = hyper_util::service::TowerToHyperService::new(router);
        let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(wire), service).await;
    }));
    let target = Target { url, protocol: Protocol::Grpc, headers: Vec::new(), certificate: None };
    let answer = Collector::new(Signal::Traces, target).unwrap().send(Bytes::from_static(b"one")).await;
    assert!(matches!(answer, Answer::Later { .. }), "{answer:?}");
    drop(server);
}

#[tokio::test]
async fn a_full_batch_passes_the_windows_of_http2() {
    let mut world = World::new(Signal::Traces, Reply::Message(EMPTY, 0)).await;
    let resource = crate::telemetry::encode::resource(&super::settings(), "n1");
    let spans = vec![span(); 5_000];
    let body = crate::telemetry::encode::spans(Protocol::Grpc, &resource, &spans);
    let length = body.len();
    assert_eq!(world.collector.send(body.into()).await, accepted(0));
    let got = world.requests.lock().unwrap()[0].2.len();
    assert!(got == length + 5 && got > 100_000, "{got} of {length}");
}
