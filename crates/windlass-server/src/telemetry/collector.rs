//! The collector: takes one request after another over a connection that is kept open, and says what became of each.

use crate::dial::dial;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER, USER_AGENT};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio_util::task::AbortOnDropHandle;
use url::Url;
use windlass_core::Millis;

/// How much of an answer is read.
const MAX_ANSWER: usize = 64 * 1024;

/// What became of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    /// Accepted, except for this many spans.
    Accepted { rejected: u64 },
    /// Not now: send it again.
    Later { why: String, after: Option<Millis> },
    /// Not at all: sending it again would not help.
    Refused(String),
}

/// A collector by its URL.
#[derive(Debug)]
pub(super) struct Collector {
    url: Url,
    headers: Vec<(HeaderName, HeaderValue)>,
    open: Option<Connection>,
}

#[derive(Debug)]
struct Connection {
    sender: SendRequest<Full<Bytes>>,
    _task: AbortOnDropHandle<()>,
}

impl Collector {
    pub(super) fn new(url: Url, headers: Vec<(HeaderName, HeaderValue)>) -> Self {
        Self { url, headers, open: None }
    }

    /// Sends a request. Dropping the future closes the connection.
    pub(super) async fn send(&mut self, body: Bytes) -> Answer {
        // A connection that was kept may have been closed at the other end: that says nothing about the collector.
        if let Some(kept) = self.open.take().filter(|kept| !kept.sender.is_closed())
            && let Ok(answer) = self.exchange(kept, body.clone()).await
        {
            return answer;
        }
        let answered = match self.connect().await {
            Ok(connection) => self.exchange(connection, body).await,
            Err(why) => Err(why),
        };
        answered.unwrap_or_else(|why| Answer::Later { why, after: None })
    }

    async fn connect(&self) -> Result<Connection, String> {
        let wire = dial(&self.url).await?;
        let (sender, connection) = http1::handshake(TokioIo::new(wire)).await.map_err(|error| error.to_string())?;
        let task = AbortOnDropHandle::new(tokio::spawn(async { drop(connection.await) }));
        Ok(Connection { sender, _task: task })
    }

    async fn exchange(&mut self, mut connection: Connection, body: Bytes) -> Result<Answer, String> {
        let request = self.request(body).map_err(|error| error.to_string())?;
        connection.sender.ready().await.map_err(|error| error.to_string())?;
        let response = connection.sender.send_request(request).await.map_err(|error| error.to_string())?;
        let answer = read(response).await;
        self.open = Some(connection);
        Ok(answer)
    }

    fn request(&self, body: Bytes) -> hyper::http::Result<Request<Full<Bytes>>> {
        let authority = &self.url[url::Position::BeforeHost..url::Position::AfterPort];
        let mut request = Request::builder()
            .method(Method::POST)
            .uri(&self.url[url::Position::BeforePath..url::Position::AfterQuery])
            .header(HOST, authority)
            .header(USER_AGENT, concat!("windlass/", env!("CARGO_PKG_VERSION")))
            .header(CONTENT_TYPE, "application/json");
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        request.body(Full::new(body))
    }
}

/// What an answer means. Those that the protocol calls retryable are worth another try.
async fn read(response: Response<hyper::body::Incoming>) -> Answer {
    let (head, body) = response.into_parts();
    let body = Limited::new(body, MAX_ANSWER).collect().await.map(http_body_util::Collected::to_bytes);
    let status = head.status;
    match status {
        StatusCode::TOO_MANY_REQUESTS
        | StatusCode::BAD_GATEWAY
        | StatusCode::SERVICE_UNAVAILABLE
        | StatusCode::GATEWAY_TIMEOUT => {
            Answer::Later { why: format!("it answered {status}"), after: retry_after(&head.headers) }
        }
        _ if status.is_success() => Answer::Accepted { rejected: body.map_or(0, |body| rejected(&body)) },
        _ => Answer::Refused(format!("it answered {status}")),
    }
}

/// Only seconds: collectors send no dates.
fn retry_after(headers: &HeaderMap) -> Option<Millis> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Millis::from_secs(seconds))
}

/// The number of spans that a collector did not take, as a number or a text.
fn rejected(body: &[u8]) -> u64 {
    let Ok(body) = serde_json::from_slice::<Value>(body) else { return 0 };
    let count = &body["partialSuccess"]["rejectedSpans"];
    count.as_u64().or_else(|| count.as_str()?.parse().ok()).unwrap_or(0)
}
