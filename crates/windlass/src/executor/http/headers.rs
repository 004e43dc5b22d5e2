//! Headers: which ones a job may set, and which values are shown to readers of the job.

use crate::client::enqueue::outgoing::{MASK, SECRET_PARTS};
use http::{HeaderName, HeaderValue};

/// Most headers a job may set.
pub const MAX_HEADERS: usize = 64;
/// Most bytes that a job's headers may have, names and values together.
pub const MAX_HEADER_BYTES: usize = 16 * 1024;

/// Set by the connection or by Windlass. If a job could set them, it could smuggle requests or forge a signature.
const FORBIDDEN: &[&str] = &[
    "accept-encoding", // Answers are not decompressed.
    "connection",
    "content-length",
    "expect",
    "host",
    "http2-settings",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "via",
    // Metadata services require these, as proof that the caller was not tricked.
    "metadata",
    "metadata-flavor",
    "x-google-metadata-request",
];
const FORBIDDEN_PREFIXES: &[&str] = &["proxy-", "webhook-", "windlass-", "x-aws-ec2-metadata-token"];

/// Prefixes of values that are secrets under any name.
const SECRET_VALUES: &[&str] = &["basic ", "bearer ", "digest ", "whsec_", "token "];
/// Named like a secret, but known not to be one.
const OPEN_NAMES: &[&str] = &["idempotency-key"];

/// Parses one header of a job.
///
/// # Errors
/// What is wrong with it. The value is left out, because it may be a secret.
pub(super) fn parse(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), String> {
    let shown: String = name.chars().filter(|c| !c.is_control()).take(64).collect();
    let parsed = HeaderName::from_bytes(name.as_bytes()).map_err(|_| format!("`{shown}` is not a header name"))?;
    if is_forbidden(parsed.as_str()) {
        return Err(format!("the header `{shown}` cannot be set by a job"));
    }
    // Tabs are legal in values, but receivers interpret them differently.
    let clean = !value.chars().any(char::is_control);
    let value = HeaderValue::from_bytes(value.as_bytes())
        .ok()
        .filter(|_| clean)
        .ok_or_else(|| format!("the value of the header `{shown}` holds control characters"))?;
    Ok((parsed, value))
}

fn is_forbidden(name: &str) -> bool {
    FORBIDDEN.contains(&name) || FORBIDDEN_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// The headers for display: values that look like secrets are masked.
#[must_use]
pub fn mask_headers(headers: &[(String, String)]) -> Vec<(String, String)> {
    let mask = |(name, value): &(String, String)| {
        let shown = if is_secret(name, value) { MASK.to_owned() } else { value.clone() };
        (name.clone(), shown)
    };
    headers.iter().map(mask).collect()
}

/// Shorter values are more likely parts of ordinary words than secrets worth hiding.
const SHORTEST_SECRET: usize = 6;

/// A receiver's response without the secrets it was sent. A receiver that echoes its request must not put them on
/// record.
pub(super) fn mask_echoes(answer: &str, headers: &[(String, String)]) -> String {
    let mut masked = answer.to_owned();
    for (_, value) in headers.iter().filter(|(name, value)| is_secret(name, value)) {
        // `Bearer abc` may be echoed with or without its scheme.
        for secret in [value.as_str(), value.rsplit(' ').next().unwrap_or_default()] {
            if secret.len() >= SHORTEST_SECRET {
                masked = masked.replace(secret, MASK);
            }
        }
    }
    masked
}

fn is_secret(name: &str, value: &str) -> bool {
    let (name, value) = (name.to_ascii_lowercase(), value.trim_start().to_ascii_lowercase());
    let by_name = SECRET_PARTS.iter().any(|part| name.contains(part)) && !OPEN_NAMES.contains(&name.as_str());
    by_name || SECRET_VALUES.iter().any(|start| value.starts_with(start))
}
