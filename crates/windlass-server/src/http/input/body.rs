//! Request bodies: limited in size, time and depth before they are parsed.

use crate::http::output::problem::{Kind, Problem};
use axum::extract::{FromRequest, Request};
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderMap};
use serde_json::value::RawValue;
use std::time::Duration;
use windlass::protocol::{MAX_DEPTH, depth};

/// Largest body, in bytes.
pub(crate) const MAX_BODY: usize = 8 * 1024 * 1024;
/// The longest time a body may take to arrive.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// A JSON body: complete, well-formed and not too deep.
#[derive(Debug)]
pub(crate) struct Body(Bytes);

impl Body {
    /// The body as one JSON value with its original text.
    ///
    /// # Errors
    /// The body is not JSON; the error says where and why.
    pub(crate) fn json(&self) -> Result<&RawValue, Problem> {
        serde_json::from_slice::<&RawValue>(&self.0)
            .map_err(|error| Problem::new(Kind::MalformedJson, format!("the body is not JSON: {error}")))
    }
}

impl<S: Send + Sync> FromRequest<S> for Body {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        let declared = request.headers().get(CONTENT_LENGTH).and_then(|v| v.to_str().ok()?.parse::<u64>().ok());
        if declared.is_some_and(|length| length > MAX_BODY as u64) {
            return Err(too_large());
        }
        let is_json = is_json(request.headers());
        let body = tokio::time::timeout(BODY_TIMEOUT, Limited::new(request.into_body(), MAX_BODY).collect()).await;
        let bytes = match body {
            Err(_) => return Err(Problem::new(Kind::Timeout, "the body did not arrive within 30 s")),
            Ok(Err(error)) if error.is::<LengthLimitError>() => return Err(too_large()),
            Ok(Err(_)) => return Err(Problem::new(Kind::MalformedJson, "the body ended early")),
            Ok(Ok(body)) => body.to_bytes(),
        };
        // A page of another site can make a browser send other types without a preflight request, but not JSON.
        if !bytes.is_empty() && !is_json {
            return Err(Problem::new(Kind::NotJson, "send the body as Content-Type: application/json"));
        }
        if depth(&bytes) > MAX_DEPTH {
            return Err(Problem::new(
                Kind::MalformedJson,
                format!("the body is nested deeper than {MAX_DEPTH} levels"),
            ));
        }
        Ok(Self(bytes))
    }
}

fn too_large() -> Problem {
    Problem::new(Kind::TooLarge, format!("at most {MAX_BODY} bytes are accepted; split the request"))
}

fn is_json(headers: &HeaderMap) -> bool {
    let Some(given) = headers.get(CONTENT_TYPE).and_then(|v| v.to_str().ok()) else { return false };
    let essence = given.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    essence == "application/json" || (essence.starts_with("application/") && essence.ends_with("+json"))
}
