//! OTLP over gRPC: one message in a frame of five more bytes, and the status after the answer.

use super::http::{is_retryable, rejected};
use super::{Answer, MAX_ANSWER, Signal};
use crate::config::Target;
use crate::telemetry::encode::Reader;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use bytes::{BufMut as _, Bytes, BytesMut};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderMap, TE, USER_AGENT};
use hyper::{Method, Request, Response, StatusCode};
use url::Position;
use windlass_core::Millis;

/// How long a request may take, as gRPC writes it: as long as the sender waits.
const TIMEOUT: &str = "10S";
/// A frame starts with a byte for compression and the length of the message.
const FRAME_HEAD: usize = 5;
/// The details of a status that name a pause.
const RETRY_INFO: &[u8] = b"google.rpc.RetryInfo";

const OK: u32 = 0;
const RESOURCE_EXHAUSTED: u32 = 8;
/// Cancelled, deadline exceeded, aborted, out of range, unavailable, data loss: those that OTLP calls retryable.
const RETRYABLE: [u32; 6] = [1, 4, 10, 11, 14, 15];

const NAMES: [&str; 17] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

pub(super) fn request(target: &Target, signal: Signal, message: &[u8]) -> hyper::http::Result<Request<Full<Bytes>>> {
    let method = match signal {
        Signal::Traces => "opentelemetry.proto.collector.trace.v1.TraceService/Export",
        Signal::Metrics => "opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
    };
    let mut request = Request::builder()
        .method(Method::POST)
        .uri(format!("{}/{method}", &target.url[..Position::AfterPort]))
        .header(CONTENT_TYPE, "application/grpc")
        .header(TE, "trailers")
        .header("grpc-timeout", TIMEOUT)
        .header(USER_AGENT, concat!("windlass/", env!("CARGO_PKG_VERSION")));
    for (name, value) in &target.headers {
        request = request.header(name, value);
    }
    let mut frame = BytesMut::with_capacity(FRAME_HEAD + message.len());
    frame.put_u8(0);
    frame.put_u32(u32::try_from(message.len()).expect("batches are small"));
    frame.put_slice(message);
    request.body(Full::new(frame.freeze()))
}

/// What an answer means.
///
/// # Errors
/// The connection broke before the status.
pub(super) async fn read(response: Response<Incoming>) -> Result<Answer, String> {
    let (head, body) = response.into_parts();
    if head.status != StatusCode::OK {
        let why = format!("it answered {}", head.status);
        let is_retryable = is_retryable(head.status);
        return Ok(if is_retryable { Answer::Later { why, after: None } } else { Answer::Refused(why) });
    }
    let body = Limited::new(body, MAX_ANSWER).collect().await.map_err(|error| error.to_string())?;
    // A refusal without a message has its status in the headers.
    let trailers = body.trailers().filter(|trailers| trailers.contains_key("grpc-status")).unwrap_or(&head.headers);
    let Some(status) = status(trailers) else { return Ok(Answer::Refused("it did not answer in gRPC".into())) };
    let after = pause(trailers);
    let name = NAMES.get(status as usize).copied().unwrap_or("unknown");
    let why = format!("it answered with the gRPC status {status} ({name})");
    Ok(match status {
        OK => Answer::Accepted { rejected: unframed(&body.to_bytes()).map_or(0, rejected) },
        // By OTLP, this one is worth another try only if the collector says when.
        RESOURCE_EXHAUSTED if after.is_some() => Answer::Later { why, after },
        status if RETRYABLE.contains(&status) => Answer::Later { why, after },
        _ => Answer::Refused(why),
    })
}

fn status(headers: &HeaderMap) -> Option<u32> {
    headers.get("grpc-status")?.to_str().ok()?.trim().parse().ok()
}

/// The message of an answer that is not compressed: no compression was offered.
fn unframed(body: &[u8]) -> Option<&[u8]> {
    let (head, rest) = body.split_at_checked(FRAME_HEAD)?;
    let [0, length @ ..] = head else { return None };
    let length = u32::from_be_bytes(length.try_into().ok()?);
    rest.get(..usize::try_from(length).ok()?)
}

/// The pause that the details of a status ask for: `Status { details: [Any { value: RetryInfo }] }`.
fn pause(headers: &HeaderMap) -> Option<Millis> {
    let text = headers.get("grpc-status-details-bin")?.as_bytes();
    let status = STANDARD.decode(text).or_else(|_| STANDARD_NO_PAD.decode(text)).ok()?;
    let status = Reader::new(&status);
    let info = status.all(3).map(Reader::new).find(|any| any.all(1).any(|name| name.ends_with(RETRY_INFO)))?;
    let info = Reader::new(info.all(2).next()?);
    let delay = Reader::new(info.all(1).next()?);
    let nanos = delay.number(2).min(999_999_999);
    Some(Millis::new(delay.number(1).min(u64::from(u32::MAX)) * 1000 + nanos / 1_000_000))
}

#[cfg(test)]
mod tests {
    use super::{pause, unframed};
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD_NO_PAD;
    use hyper::HeaderMap;
    use windlass_core::Millis;

    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        [&[number << 3 | 2, u8::try_from(bytes.len()).unwrap()], bytes].concat()
    }

    #[test]
    fn a_pause_is_read_from_the_details() {
        // 2 s and 500,000,000 ns.
        let info = field(1, b"\x08\x02\x10\x80\xca\xb5\xee\x01");
        let any = [field(1, b"type.googleapis.com/google.rpc.RetryInfo"), field(2, &info)].concat();
        let status = [&b"\x08\x0e"[..], &field(2, b"busy"), &field(3, &any)].concat();
        let mut headers = HeaderMap::new();
        assert_eq!(pause(&headers), None);
        headers.insert("grpc-status-details-bin", STANDARD_NO_PAD.encode(&status).parse().unwrap());
        assert_eq!(pause(&headers), Some(Millis::new(2500)));
        for cut in 0..status.len() {
            headers.insert("grpc-status-details-bin", STANDARD_NO_PAD.encode(&status[..cut]).parse().unwrap());
            assert_eq!(pause(&headers), None, "{cut}");
        }
    }

    #[test]
    fn frames_that_are_cut_or_compressed_are_not_read() {
        assert_eq!(unframed(b"\0\0\0\0\x02ab"), Some(&b"ab"[..]));
        for wrong in [&b""[..], b"\0\0\0\0", b"\0\0\0\0\x03ab", b"\x01\0\0\0\x02ab", b"\0\xff\xff\xff\xffab"] {
            assert_eq!(unframed(wrong), None, "{wrong:?}");
        }
    }
}
