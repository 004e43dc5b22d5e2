//! Outgoing: which calls and webhooks may be stored. The same URLs are accepted for both.

use crate::client::enqueue::draft::{Draft, DraftError, WebhookDraft};
use windlass_core::job::MAX_CALL_TIMEOUT;
use windlass_core::sealed::{PLACEHOLDER, PREFIX, looks_sealed};

/// Which targets are refused when a job is stored. Without rules, a denied target fails when it is called.
#[derive(Debug, Clone, Default)]
pub(crate) struct Outgoing {
    #[cfg(feature = "http")]
    pub rules: Option<crate::executor::http::TargetRules>,
}

impl Outgoing {
    /// Checks the call of a draft, and the webhook it names itself.
    pub(in crate::client) fn check(&self, draft: &Draft) -> Result<(), DraftError> {
        check_timeout(draft)?;
        check_clear("payload", &draft.payload)?;
        if let Some(webhook) = &draft.webhook {
            check_url(&webhook.url).map_err(|message| DraftError::new("webhook/url", message))?;
            self.check_target("webhook/url", &webhook.url)?;
            check_clear_webhook(webhook)?;
        }
        let Some(call) = &draft.http else { return Ok(()) };
        check_clear_url("http/url", &call.url)?;
        if call.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(PLACEHOLDER)) {
            return Err(DraftError::new(
                "http/headers",
                format!("`{PLACEHOLDER}` stands for sealed headers; use another name"),
            ));
        }
        #[cfg(feature = "http")]
        crate::executor::http::check_call(&call.method, &call.url, &call.headers)
            .map_err(|error| DraftError::new(format!("http/{}", error.field), error.message))?;
        self.check_target("http/url", &call.url)
    }

    /// Whether the operator allows the URL's target, as far as the URL shows it.
    #[cfg(feature = "http")]
    pub(in crate::client) fn check_target(&self, field: &str, url: &str) -> Result<(), DraftError> {
        let checked = self.rules.as_ref().map_or(Ok(()), |rules| rules.check(url));
        checked.map_err(|error| DraftError::new(field, error.message))
    }

    #[cfg(not(feature = "http"))]
    #[allow(clippy::unused_self, clippy::unnecessary_wraps)] // There is nothing to check without the executor.
    pub(in crate::client) fn check_target(&self, _field: &str, _url: &str) -> Result<(), DraftError> {
        Ok(())
    }
}

/// Checks that a webhook has nothing that only sealing makes.
///
/// # Errors
/// The field that looks sealed.
pub(in crate::client) fn check_clear_webhook(webhook: &WebhookDraft) -> Result<(), DraftError> {
    check_clear_url("webhook/url", &webhook.url)?;
    webhook.secret.as_deref().map_or(Ok(()), |secret| check_clear("webhook/secret", secret))
}

fn check_clear(field: &str, text: &str) -> Result<(), DraftError> {
    if !looks_sealed(text) {
        return Ok(());
    }
    Err(DraftError::new(field, format!("must not begin like `{PREFIX}`, which marks values that are sealed")))
}

fn check_clear_url(field: &str, url: &str) -> Result<(), DraftError> {
    if !url.contains(&format!("{PLACEHOLDER}=")) {
        return Ok(());
    }
    Err(DraftError::new(field, format!("`{PLACEHOLDER}` stands for a sealed query; use another parameter")))
}

/// A call that hangs holds a slot until its timeout.
fn check_timeout(draft: &Draft) -> Result<(), DraftError> {
    match draft.timeout.filter(|_| draft.http.is_some()) {
        Some(timeout) if timeout > MAX_CALL_TIMEOUT => {
            Err(DraftError::new("timeout", format!("is {timeout}; a call may take at most {MAX_CALL_TIMEOUT}")))
        }
        Some(_) | None => Ok(()),
    }
}

/// Checks the form of a webhook's URL.
///
/// # Errors
/// What is wrong with it.
#[cfg(feature = "http")]
pub(in crate::client) fn check_url(url: &str) -> Result<(), String> {
    crate::executor::http::check_url(url).map_err(|error| error.message)
}

#[cfg(not(feature = "http"))]
pub(in crate::client) fn check_url(url: &str) -> Result<(), String> {
    let url = url::Url::parse(url).ok().filter(|url| ["http", "https"].contains(&url.scheme()));
    match url.filter(|url| url.username().is_empty() && url.password().is_none()) {
        Some(_) => Ok(()),
        None => Err("must be an http or https URL without a user name".into()),
    }
}

/// What replaces a secret value.
pub const MASK: &str = "***";
/// Parts of names (of headers and of query parameters) whose values are secrets.
pub(crate) const SECRET_PARTS: &[&str] = &[
    "auth",
    "cookie",
    "credential",
    "jwt",
    "key",
    "passphrase",
    "passwd",
    "password",
    "private",
    "pwd",
    "secret",
    "session",
    "signature",
    "token",
];
/// Whole names of query parameters whose values are secrets.
const SECRET_NAMES: &[&str] = &["code", "pass", "sig"];

/// A URL for display: the values of query parameters with the names of secrets are masked, and a password.
#[must_use]
pub fn mask_url(url: &str) -> String {
    let (start, fragment) = url.split_once('#').map_or((url, None), |(start, fragment)| (start, Some(fragment)));
    let (place, query) = start.split_once('?').map_or((start, None), |(place, query)| (place, Some(query)));
    let mut shown = mask_path(&mask_password(place));
    if let Some(query) = query {
        let pairs: Vec<String> = query.split('&').map(mask_pair).collect();
        shown.push('?');
        shown.push_str(&pairs.join("&"));
    }
    if let Some(fragment) = fragment {
        shown.push('#');
        shown.push_str(fragment);
    }
    shown
}

/// A URL for display whose path and query may be secrets: only what comes before them is left, without a password.
#[must_use]
pub fn mask_after_host(url: &str) -> String {
    let shown = mask_credentials(url);
    let start = shown.find("://").map_or(0, |at| at + 3);
    let end = shown[start..].find(['/', '?', '#']).map_or(shown.len(), |at| start + at);
    match &shown[end..] {
        "" | "/" => shown,
        _ => format!("{}/{MASK}", &shown[..end]),
    }
}

/// The same text without what may be a password, even if the text is no URL: all between the user's name and the last
/// `@`.
#[must_use]
pub fn mask_credentials(text: &str) -> String {
    let start = text.find("://").map_or(0, |at| at + 3);
    let Some((user, host)) = text[start..].rsplit_once('@') else { return text.to_owned() };
    let user = user.split_once(':').map_or_else(|| user.to_owned(), |(name, _)| format!("{name}:{MASK}"));
    format!("{}{user}@{host}", &text[..start])
}

/// Incoming webhooks of Slack and its likes have their secret in the path.
fn mask_path(place: &str) -> String {
    let Some((scheme, rest)) = place.split_once("://") else { return place.to_owned() };
    let authority = rest.split('/').next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    let is_slack = host.eq_ignore_ascii_case("hooks.slack.com")
        || scheme.ends_with("slack+https")
        || scheme.ends_with("slack+http");
    if is_slack { mask_after_host(place) } else { place.to_owned() }
}

fn mask_pair(pair: &str) -> String {
    let Some((name, _)) = pair.split_once('=') else { return pair.to_owned() };
    // The name may be percent-encoded.
    let plain = url::form_urlencoded::parse(name.as_bytes()).next().map(|(name, _)| name.to_ascii_lowercase());
    let plain = plain.unwrap_or_default();
    let is_secret = SECRET_PARTS.iter().any(|part| plain.contains(part)) || SECRET_NAMES.contains(&plain.as_str());
    if is_secret { format!("{name}={MASK}") } else { pair.to_owned() }
}

fn mask_password(place: &str) -> String {
    let Some((scheme, rest)) = place.split_once("://") else { return place.to_owned() };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let Some((user, host)) = authority.rsplit_once('@') else { return place.to_owned() };
    let user = user.split_once(':').map_or_else(|| user.to_owned(), |(name, _)| format!("{name}:{MASK}"));
    format!("{scheme}://{user}@{host}{path}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_in_urls_are_masked_and_the_rest_stays_as_it_is() {
        for (url, shown) in [
            ("https://a.example/x?id=7&api_key=abc&b=%20", "https://a.example/x?id=7&api_key=***&b=%20"),
            ("https://a.example/?access%5Ftoken=abc#top", "https://a.example/?access%5Ftoken=***#top"),
            ("https://a.example/?sig=a=b&X-Amz-Signature=c", "https://a.example/?sig=***&X-Amz-Signature=***"),
            ("postgres://me:pw@db:5432/jobs?sslmode=require", "postgres://me:***@db:5432/jobs?sslmode=require"),
            ("https://a.example/token/abc?page=2&design=flat", "https://a.example/token/abc?page=2&design=flat"),
            ("https://hooks.slack.com/services/T0/B0/x", "https://hooks.slack.com/***"),
            ("team=slack+https://chat.example/hooks/x", "team=slack+https://chat.example/***"),
            ("slack+https://chat.example/x", "slack+https://chat.example/***"),
            ("sqlite:jobs.db", "sqlite:jobs.db"),
            ("", ""),
        ] {
            assert_eq!(mask_url(url), shown);
        }
    }

    #[test]
    fn only_the_host_is_left_of_a_url_whose_path_may_be_a_secret() {
        for (url, shown) in [
            ("https://chat.example/hooks/s3cret?a=s3cret#s3cret", "https://chat.example/***"),
            ("https://chat.example?s3cret", "https://chat.example/***"),
            ("https://chat.example/", "https://chat.example/"),
            ("https://chat.example", "https://chat.example"),
            (
                "my team=slak+https://me:s3/cret@chat.example:99999/s3cret",
                "my team=slak+https://me:***@chat.example:99999/***",
            ),
            ("chat.example/s3cret", "chat.example/***"),
            ("me:s3?cret@chat.example", "me:***@chat.example"),
        ] {
            assert_eq!(mask_after_host(url), shown);
        }
    }
}
