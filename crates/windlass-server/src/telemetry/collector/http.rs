//! OTLP over HTTP.

use super::{Answer, MAX_ANSWER, Signal};
use crate::config::{Protocol, Target};
use crate::telemetry::encode::Reader;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HOST, HeaderMap, RETRY_AFTER, USER_AGENT};
use hyper::{Method, Request, Response, StatusCode};
use serde_json::Value;
use url::Position;
use windlass_core::Millis;

pub(super) fn request(target: &Target, body: Bytes) -> hyper::http::Result<Request<Full<Bytes>>> {
    let content_type =
        if target.protocol == Protocol::HttpJson { "application/json" } else { "application/x-protobuf" };
    let mut request = Request::builder()
        .method(Method::POST)
        .uri(&target.url[Position::BeforePath..Position::AfterQuery])
        .header(HOST, &target.url[Position::BeforeHost..Position::AfterPort])
        .header(USER_AGENT, concat!("windlass/", env!("CARGO_PKG_VERSION")))
        .header(CONTENT_TYPE, content_type);
    for (name, value) in &target.headers {
        request = request.header(name, value);
    }
    request.body(Full::new(body))
}

/// What an answer means. Those that the protocol calls retryable are worth another try.
pub(super) async fn read(response: Response<Incoming>, signal: Signal, protocol: Protocol) -> Answer {
    let (head, body) = response.into_parts();
    let body = Limited::new(body, MAX_ANSWER).collect().await.map(http_body_util::Collected::to_bytes);
    let status = head.status;
    if is_retryable(status) {
        return Answer::Later { why: format!("it answered {status}"), after: retry_after(&head.headers) };
    }
    if !status.is_success() {
        return Answer::Refused(format!("it answered {status}"));
    }
    let rejected = body.map_or(0, |body| match protocol {
        Protocol::HttpJson => rejected_in_json(&body, signal),
        Protocol::HttpProtobuf | Protocol::Grpc => rejected(&body),
    });
    Answer::Accepted { rejected }
}

pub(super) fn is_retryable(status: StatusCode) -> bool {
    [
        StatusCode::TOO_MANY_REQUESTS,
        StatusCode::BAD_GATEWAY,
        StatusCode::SERVICE_UNAVAILABLE,
        StatusCode::GATEWAY_TIMEOUT,
    ]
    .contains(&status)
}

/// Only seconds: collectors send no dates.
fn retry_after(headers: &HeaderMap) -> Option<Millis> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Millis::from_secs(seconds))
}

/// The number of spans or points that a collector did not take, as a number or a text.
fn rejected_in_json(body: &[u8], signal: Signal) -> u64 {
    let Ok(body) = serde_json::from_slice::<Value>(body) else { return 0 };
    let name = match signal {
        Signal::Traces => "rejectedSpans",
        Signal::Metrics => "rejectedDataPoints",
    };
    let count = &body["partialSuccess"][name];
    count.as_u64().or_else(|| count.as_str()?.parse().ok()).unwrap_or(0)
}

/// The same in protobuf; the numbers of the fields are the same for all signals.
pub(super) fn rejected(body: &[u8]) -> u64 {
    Reader::new(body).all(1).map(|partial| Reader::new(partial).number(1)).sum()
}
