//! Errors as RFC 9457 problem details: a stable `type`, a description, and a JSON pointer to each wrong field.

use axum::response::{IntoResponse, Response};
use hyper::StatusCode;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use serde::Serialize;
use utoipa::ToSchema;
use windlass::DraftError;
use windlass::StoreError;
use windlass::client::{PolicyFault, ScheduleError};
use windlass_core::quota::OverQuota;

/// How long a client should wait after a 503, in seconds.
const RETRY_AFTER_SECONDS: u32 = 1;
/// The most wrong fields listed in one answer.
pub(crate) const MAX_FAULTS: usize = 100;

/// Every kind of error that the API returns. Each has a stable `type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    MalformedJson,
    Invalid,
    InvalidQuery,
    KeyMismatch,
    Unauthorized,
    Forbidden,
    WrongTenant,
    UntrustedOrigin,
    NotFound,
    MethodNotAllowed,
    Timeout,
    Conflict,
    KeyConflict,
    TooLarge,
    NotJson,
    TooMany,
    OverQuota,
    Busy,
    Internal,
    Unavailable,
    Unknown,
    Draining,
}

impl Kind {
    const fn parts(self) -> (StatusCode, &'static str, &'static str) {
        match self {
            Self::MalformedJson => (StatusCode::BAD_REQUEST, "malformed-json", "The body is not JSON"),
            Self::Invalid => (StatusCode::UNPROCESSABLE_ENTITY, "invalid", "The request has wrong fields"),
            Self::InvalidQuery => (StatusCode::BAD_REQUEST, "invalid-query", "The query has wrong parameters"),
            Self::KeyMismatch => (StatusCode::BAD_REQUEST, "key-mismatch", "Two different idempotency keys"),
            Self::Unauthorized => (StatusCode::UNAUTHORIZED, "unauthorized", "A valid token is needed"),
            Self::Forbidden => (StatusCode::FORBIDDEN, "forbidden", "The token does not allow this"),
            Self::WrongTenant => (StatusCode::FORBIDDEN, "wrong-tenant", "The token belongs to another tenant"),
            Self::UntrustedOrigin => (StatusCode::FORBIDDEN, "untrusted-origin", "The request comes from another site"),
            Self::NotFound => (StatusCode::NOT_FOUND, "not-found", "Not found"),
            Self::MethodNotAllowed => (StatusCode::METHOD_NOT_ALLOWED, "method-not-allowed", "Method not allowed"),
            Self::Timeout => (StatusCode::REQUEST_TIMEOUT, "timeout", "The request took too long to arrive"),
            Self::Conflict => (StatusCode::CONFLICT, "conflict", "Not possible in the current state"),
            Self::KeyConflict => (StatusCode::CONFLICT, "key-conflict", "The idempotency key belongs to another job"),
            Self::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "too-large", "The body is too large"),
            Self::NotJson => (StatusCode::UNSUPPORTED_MEDIA_TYPE, "not-json", "The body must be JSON"),
            Self::TooMany => (StatusCode::TOO_MANY_REQUESTS, "too-many", "Too many at once"),
            Self::OverQuota => (StatusCode::TOO_MANY_REQUESTS, "over-quota", "A quota of the tenant is used up"),
            Self::Busy => (StatusCode::SERVICE_UNAVAILABLE, "busy", "The server is busy"),
            Self::Internal => (StatusCode::INTERNAL_SERVER_ERROR, "internal", "Internal server error"),
            Self::Unavailable => (StatusCode::SERVICE_UNAVAILABLE, "unavailable", "The store cannot be used now"),
            Self::Unknown => (StatusCode::SERVICE_UNAVAILABLE, "unknown-outcome", "The outcome is not known"),
            Self::Draining => (StatusCode::SERVICE_UNAVAILABLE, "draining", "The server is stopping"),
        }
    }
}

/// One wrong field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct Fault {
    /// JSON pointer into the body (or `?name` for a query parameter).
    pub(crate) pointer: String,
    /// What is wrong and what is accepted.
    pub(crate) detail: String,
}

/// An error to be sent to the client.
#[derive(Debug, Clone)]
pub(crate) struct Problem {
    kind: Kind,
    detail: String,
    faults: Vec<Fault>,
    allow: Option<HeaderValue>,
    /// Instead of the usual second, for 429 and 503.
    retry_after: Option<u32>,
}

/// An error as the client receives it (RFC 9457).
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Problem)]
pub(crate) struct ProblemBody<'a> {
    /// Stable name of this kind of error, such as `urn:windlass:problem:invalid`.
    r#type: String,
    title: &'a str,
    status: u16,
    detail: &'a str,
    /// The requested path.
    instance: &'a str,
    request_id: &'a str,
    #[serde(skip_serializing_if = "<[Fault]>::is_empty")]
    errors: &'a [Fault],
}

impl Problem {
    pub(crate) fn new(kind: Kind, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into(), faults: Vec::new(), allow: None, retry_after: None }
    }

    pub(crate) fn not_found(what: &str, id: impl std::fmt::Display) -> Self {
        Self::new(Kind::NotFound, format!("there is no {what} {id}"))
    }

    pub(crate) fn conflict(detail: impl Into<String>) -> Self {
        Self::new(Kind::Conflict, detail)
    }

    /// A problem with several wrong fields of a body.
    pub(crate) fn invalid(mut faults: Vec<Fault>) -> Self {
        faults.truncate(MAX_FAULTS);
        Self { detail: described(&faults), faults, ..Self::new(Kind::Invalid, "") }
    }

    /// A problem with one wrong field of a body.
    pub(crate) fn field(pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::invalid(vec![Fault { pointer: pointer.into(), detail: detail.into() }])
    }

    /// A problem with a query parameter.
    pub(crate) fn query(name: &str, detail: impl Into<String>) -> Self {
        let faults = vec![Fault { pointer: format!("?{name}"), detail: detail.into() }];
        Self { detail: described(&faults), faults, ..Self::new(Kind::InvalidQuery, "") }
    }

    /// The same for a probe, which asks only whether the server is ready: whatever the reason, it is not.
    pub(crate) fn not_ready(self) -> Self {
        if matches!(self.kind, Kind::Internal) { Self::new(Kind::Unavailable, self.detail) } else { self }
    }

    /// A quota of the tenant is used up.
    pub(crate) fn over_quota(refusal: &OverQuota) -> Self {
        let retry_after = Some(retry_after(refusal));
        Self { retry_after, ..Self::new(Kind::OverQuota, refusal.to_string()) }
    }

    pub(crate) fn with_allow(mut self, methods: Option<HeaderValue>) -> Self {
        self.allow = methods;
        self
    }

    pub(crate) fn into_faults(self) -> (String, Vec<Fault>) {
        (self.detail, self.faults)
    }

    /// Status, title and detail, for a page.
    pub(crate) fn described(&self) -> (StatusCode, &'static str, String) {
        let (status, _, title) = self.kind.parts();
        (status, title, self.detail.clone())
    }

    /// The complete answer.
    pub(crate) fn render(&self, instance: &str, request_id: &str) -> Response {
        let (status, name, title) = self.kind.parts();
        let body = ProblemBody {
            r#type: format!("urn:windlass:problem:{name}"),
            title,
            status: status.as_u16(),
            detail: &self.detail,
            instance,
            request_id,
            errors: &self.faults,
        };
        let text = serde_json::to_string(&body).expect("a problem contains only strings and numbers");
        let mut response = (status, text).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if status == StatusCode::SERVICE_UNAVAILABLE || status == StatusCode::TOO_MANY_REQUESTS {
            headers.insert(RETRY_AFTER, HeaderValue::from(self.retry_after.unwrap_or(RETRY_AFTER_SECONDS)));
        }
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"windlass\""));
        }
        if let Some(methods) = &self.allow {
            headers.insert(ALLOW, methods.clone());
        }
        response
    }
}

/// Whole seconds, rounded up.
pub(crate) fn retry_after(refusal: &OverQuota) -> u32 {
    u32::try_from(refusal.retry_after.get().div_ceil(1000)).unwrap_or(u32::MAX).max(1)
}

fn described(faults: &[Fault]) -> String {
    match faults {
        [] => "a field is wrong".into(),
        [one] => one.described(),
        [first, rest @ ..] => format!("{} (and {} more)", first.described(), rest.len()),
    }
}

impl Fault {
    fn described(&self) -> String {
        let place = if self.pointer.is_empty() { "the body" } else { &self.pointer };
        format!("{place}: {}", self.detail)
    }
}

/// The outermost layer renders the problem, because it knows the path and the request's id.
impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = self.kind.parts().0.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        match &error {
            StoreError::Sealed(_) => {
                tracing::warn!(%error, "a row cannot be opened");
                Self::new(Kind::Unavailable, "this node lacks a key; nothing was changed")
            }
            StoreError::Unavailable(_) => {
                // An outage has its own lines in the log; one per request would fill it.
                tracing::debug!(%error, "the store cannot be used");
                Self::new(Kind::Unavailable, "nothing was changed; try again later")
            }
            StoreError::Unknown(_) => {
                tracing::debug!(%error, "the outcome of a commit is unknown");
                Self::new(
                    Kind::Unknown,
                    "the connection to the database was lost during the commit: check the result before you repeat the request, or repeat it with an idempotency key",
                )
            }
            StoreError::Invalid(message) => Self::new(Kind::Invalid, message.clone()),
            StoreError::Corrupt { .. } | StoreError::Schema(_) | _ => {
                tracing::error!(%error, "the store contains invalid data");
                let detail = "the store is damaged or contains data that this version cannot read; see the server's log and `windlass doctor`";
                Self::new(Kind::Internal, detail)
            }
        }
    }
}

impl From<PolicyFault> for Problem {
    fn from(error: PolicyFault) -> Self {
        match error {
            PolicyFault::Policy(error) => Self::field("/policy", error.to_string()),
            PolicyFault::Preset(_) => Self::conflict(error.to_string()),
            PolicyFault::Store(error) => error.into(),
        }
    }
}

impl From<ScheduleError> for Problem {
    fn from(error: ScheduleError) -> Self {
        match error {
            ScheduleError::Cadence(error) => Self::field("/cron", error.to_string()),
            ScheduleError::Draft(error) => error.into(),
            ScheduleError::NotFound(id) => Self::not_found("schedule", id),
            ScheduleError::Store(error) => error.into(),
        }
    }
}

impl From<DraftError> for Problem {
    fn from(error: DraftError) -> Self {
        Self::field(format!("/{}", error.field), error.message)
    }
}
