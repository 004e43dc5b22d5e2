//! Check: whether a call can be made. Used before a job is stored, so that an invalid call is refused early.

use super::headers::{self, MAX_HEADER_BYTES, MAX_HEADERS};
use super::network::address::Egress;
use super::target::Target;
use http::Method;
use ipnet::IpNet;

const METHODS: [Method; 7] =
    [Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::PATCH, Method::DELETE, Method::OPTIONS];

/// What is wrong with a call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {message}")]
pub struct CallError {
    /// `method`, `url` or `headers`.
    pub field: &'static str,
    /// What would be accepted.
    pub message: String,
}

impl CallError {
    pub(super) fn new(field: &'static str, message: impl Into<String>) -> Self {
        Self { field, message: message.into() }
    }
}

/// Checks a call's form. [`super::HttpExecutor::check_target`] checks whether its target may be reached.
///
/// # Errors
/// The first field that is wrong, and how.
pub fn check_call(method: &str, url: &str, headers: &[(String, String)]) -> Result<(), CallError> {
    parse_method(method)?;
    parse_url(url)?;
    check_headers(headers)
}

/// Checks a URL's form: webhooks and jobs accept the same URLs.
///
/// # Errors
/// What is wrong with it. The URL is left out, because it may contain secrets.
pub fn check_url(url: &str) -> Result<(), CallError> {
    parse_url(url).map(|_| ())
}

/// Which targets may be reached, as far as a URL shows.
#[derive(Debug, Clone)]
pub(crate) struct TargetRules {
    pub egress: Egress,
    pub deny: Vec<IpNet>,
}

impl TargetRules {
    pub(crate) fn check(&self, url: &str) -> Result<(), CallError> {
        let target = parse_url(url)?;
        target.check(&self.egress, &self.deny).map_err(|denied| CallError::new("url", denied.to_string()))
    }
}

pub(super) fn parse_method(method: &str) -> Result<Method, CallError> {
    METHODS
        .into_iter()
        .find(|known| known.as_str().eq_ignore_ascii_case(method))
        .ok_or_else(|| CallError::new("method", "write GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS"))
}

pub(super) fn parse_url(url: &str) -> Result<Target, CallError> {
    Target::parse(url).map_err(|message| CallError::new("url", message))
}

pub(super) fn check_headers(headers: &[(String, String)]) -> Result<(), CallError> {
    if headers.len() > MAX_HEADERS {
        return Err(CallError::new("headers", format!("more than {MAX_HEADERS} headers")));
    }
    let bytes: usize = headers.iter().map(|(name, value)| name.len() + value.len()).sum();
    if bytes > MAX_HEADER_BYTES {
        return Err(CallError::new("headers", format!("more than {MAX_HEADER_BYTES} bytes of headers")));
    }
    for (name, value) in headers {
        headers::parse(name, value).map_err(|message| CallError::new("headers", message))?;
    }
    Ok(())
}
