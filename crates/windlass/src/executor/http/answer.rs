//! Answer: what a response means. Only the status decides. The beginning of a failing response's body is kept for
//! operators. However long or slow a body is, little of it is read.

use super::fault::PROTOCOL_ERROR;
use super::limit::within;
use super::retry_after;
use crate::clock::Clock;
use http::{Response, StatusCode};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use windlass_core::failure::TIMEOUT;
use windlass_core::{Failure, Millis};

/// How much of a failing response is kept.
pub const KEPT_BYTES: usize = 4 * 1024;
/// How much of a response is read. Reading to its end lets the connection serve the next call. Beyond this size, a new
/// connection is cheaper.
const READ_BYTES: usize = 64 * 1024;
/// How long a body may take once the status is known. The outcome is decided, so a slow body must not hold the slot.
const BODY_TIMEOUT: Millis = Millis::from_secs(2);

/// The class of a status; none for success.
pub(super) fn class(status: StatusCode) -> Option<&'static str> {
    Some(match status.as_u16() {
        200..=299 => return None,
        300..=399 => "Redirect",
        400 | 422 => "ValidationError",
        401 => "UnauthorizedError",
        403 => "ForbiddenError",
        404 | 410 => "NotFoundError",
        408 => TIMEOUT,
        429 => "RateLimited",
        402..=499 => "ClientError",
        500..=599 => "ServerError",
        _ => PROTOCOL_ERROR,
    })
}

/// Reads the relevant part of a response, within the time `left` of the call. `None` is success.
pub(super) async fn judge(response: Response<Incoming>, left: Millis, clock: &Clock) -> Option<Failure> {
    let (head, body) = response.into_parts();
    let kept = read(body, left.min(BODY_TIMEOUT), clock).await;
    let class = class(head.status)?;
    let status = head.status.as_u16();
    let text = clean(&kept);
    let message = match (head.status.canonical_reason(), text.is_empty()) {
        (Some(reason), true) => format!("HTTP {status} {reason}"),
        (None, true) => format!("HTTP {status}"),
        (Some(_) | None, false) => format!("HTTP {status}: {text}"),
    };
    Some(Failure {
        class: class.into(),
        message,
        status: Some(status),
        advice: retry_after::advice(&head.headers, clock.now()),
        trace: None,
    })
}

/// Reads up to the limits and keeps the beginning. If the body stalls or breaks off, the status still counts.
async fn read(mut body: Incoming, limit: Millis, clock: &Clock) -> Vec<u8> {
    let mut kept = Vec::new();
    let reading = async {
        let mut read = 0;
        while let Some(Ok(frame)) = body.frame().await {
            let Some(data) = frame.data_ref() else { continue };
            let room = KEPT_BYTES.saturating_sub(kept.len()).min(data.len());
            kept.extend_from_slice(&data[..room]);
            read += data.len();
            if read > READ_BYTES {
                break; // Dropping the body unread closes the connection.
            }
        }
    };
    let _ = within(clock, limit, reading).await;
    kept
}

/// Text for display on one line: characters that could forge a log line, control a terminal or break a database become
/// blanks.
pub(super) fn clean(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let is_hostile = |c: char| c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let words = text.split(|c: char| is_hostile(c) || c.is_whitespace()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ")
}
