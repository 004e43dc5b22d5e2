//! Request: what is sent for one attempt of a job. The body is the payload, byte for byte, on every attempt. The
//! signature is made each time, because it covers the time.

use super::check::{check_headers, parse_method};
use super::fault::Fault;
use super::headers;
use super::target::Target;
use crate::alert::notice::BODY_SECRET;
use crate::alert::operator::ROUTING_KEY;
use crate::job::{HttpCall, Job, WEBHOOK_ID, within};
use bytes::Bytes;
use http::header::{ACCEPT, ACCEPT_ENCODING, CONNECTION, CONTENT_TYPE, HeaderName, HeaderValue, USER_AGENT};
use http::{HeaderMap, Method, Request};
use http_body_util::Full;
use serde_json::{Map, Value};
use windlass_core::Timestamp;
use windlass_core::signature::Secret;
use windlass_core::trace_context::TraceContext;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// Whether the connection may serve another call afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reuse {
    Keep,
    Close,
}

/// Who calls.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sender<'a> {
    /// The installation's id, or nothing.
    pub installation: &'a str,
    /// The secrets that sign, `whsec_…`: the one in use, then those it replaced.
    pub signers: &'a [String],
    pub user_agent: &'a str,
}

/// What is sent for one attempt.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sent<'a> {
    pub sender: Sender<'a>,
    pub job: &'a Job,
    pub call: &'a HttpCall,
    /// The context of the call, if it is traced; otherwise the receiver is handed the job's.
    pub traceparent: Option<&'a str>,
}

/// The `webhook-id` of a call that is a webhook or is signed.
fn webhook_id(job: &Job, call: &HttpCall, sender: Sender<'_>) -> Option<String> {
    let by_job = || format!("{WEBHOOK_ID}{}", within(sender.installation, "_", &job.id.to_string()));
    job.webhook_id(sender.installation).or_else(|| call.secret.as_ref().map(|_| by_job()))
}

/// The request of one attempt.
pub(super) fn request(
    sent: Sent<'_>,
    target: &Target,
    reuse: Reuse,
    now: Timestamp,
) -> Result<Request<Full<Bytes>>, Fault> {
    let Sent { sender, job, call, .. } = sent;
    let method = parse_method(&call.method).map_err(|error| Fault::bad_call(error.to_string()))?;
    check_headers(&call.headers).map_err(|error| Fault::bad_call(error.to_string()))?;
    let body = body(&method, &job.payload, call)?;
    let mut headers = HeaderMap::new();
    for (name, value) in &call.headers {
        let (name, value) = headers::parse(name, value).map_err(Fault::bad_call)?;
        headers.append(name, value);
    }
    add_defaults(&mut headers, sent, body.as_ref());
    add_facts(&mut headers, job);
    if reuse == Reuse::Close {
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    let body = body.unwrap_or_default();
    let id = webhook_id(job, call, sender);
    let signers = if body_secret(call).is_some() { &[] } else { sender.signers };
    sign(&mut headers, signers, id, &body, now)?;
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = method;
    *request.uri_mut() = target.uri.clone();
    *request.headers_mut() = headers;
    Ok(request)
}

/// Methods that usually carry no body send none if the payload is `null`.
fn body(method: &Method, payload: &str, call: &HttpCall) -> Result<Option<Bytes>, Fault> {
    let bodiless = [Method::GET, Method::HEAD, Method::DELETE, Method::OPTIONS].contains(method);
    if bodiless && payload.trim() == "null" {
        return Ok(None);
    }
    match body_secret(call) {
        Some(secret) => with_key(payload, secret).map(Some),
        None => Ok(Some(Bytes::copy_from_slice(payload.as_bytes()))),
    }
}

/// The key goes into its field and nowhere else: other fields contain what tenants wrote.
fn with_key(payload: &str, key: &str) -> Result<Bytes, Fault> {
    let mut fields: Map<String, Value> =
        serde_json::from_str(payload).map_err(|_| Fault::bad_call("the notice is not a JSON object"))?;
    fields.insert(ROUTING_KEY.to_owned(), key.into());
    Ok(Value::Object(fields).to_string().into())
}

/// A secret that belongs into the body. Only notices to operators have one.
fn body_secret(call: &HttpCall) -> Option<&str> {
    call.secret.as_deref()?.strip_prefix(BODY_SECRET)
}

/// Default headers, which the job's own headers override.
fn add_defaults(headers: &mut HeaderMap, sent: Sent<'_>, body: Option<&Bytes>) {
    let Sent { sender, job, .. } = sent;
    let mut default = |name: HeaderName, value: HeaderValue| {
        headers.entry(name).or_insert(value);
    };
    default(ACCEPT, HeaderValue::from_static("*/*"));
    default(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    default(IDEMPOTENCY_KEY, text(&job.stable_key(sender.installation)));
    default(USER_AGENT, text(sender.user_agent));
    if body.is_some() {
        default(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    let context = sent.traceparent.or_else(|| job.traceparent());
    if let Some(context) = context.filter(|context| TraceContext::parse(context).is_some()) {
        default(TRACEPARENT, text(context));
    }
}

/// Which job this is, and how many attempts it has had.
fn add_facts(headers: &mut HeaderMap, job: &Job) {
    headers.insert("windlass-job-id", HeaderValue::from(job.id.0));
    headers.insert("windlass-attempt", HeaderValue::from(job.attempt));
    headers.insert("windlass-queue", text(job.queue.as_str()));
    headers.insert("windlass-kind", text(job.kind.as_str()));
}

/// Standard Webhooks: the id is the same on every attempt; time and signature belong to this attempt.
fn sign(
    headers: &mut HeaderMap,
    signers: &[String],
    id: Option<String>,
    body: &Bytes,
    now: Timestamp,
) -> Result<(), Fault> {
    let Some(id) = id else { return Ok(()) };
    let seconds = now.as_millis() / 1000;
    if !signers.is_empty() {
        let sign = |secret: &String| Secret::parse(secret).map(|secret| secret.sign(&id, seconds, body));
        let signatures: Result<Vec<String>, _> = signers.iter().map(sign).collect();
        let signatures =
            signatures.map_err(|error| Fault::bad_call(format!("the signing secret is wrong: {error}")))?;
        let signature =
            HeaderValue::from_str(&signatures.join(" ")).map_err(|_| Fault::bad_call("the signature is no header"))?;
        headers.insert("webhook-signature", signature);
    }
    let id = HeaderValue::from_str(&id).map_err(|_| Fault::bad_call("the webhook id holds control characters"))?;
    headers.insert("webhook-id", id);
    headers.insert("webhook-timestamp", HeaderValue::from(seconds));
    Ok(())
}

/// A text as a header value. Characters that a header cannot hold are percent-encoded, so that the same text always
/// gives the same value.
fn text(text: &str) -> HeaderValue {
    let plain = text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic()) && text.trim() == text;
    let value = if plain { HeaderValue::from_str(text) } else { HeaderValue::from_str(&encode(text)) };
    value.expect("printable ASCII makes a header value")
}

fn encode(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
}
