//! Outgoing: which calls and webhooks may be stored. The same URLs are accepted for both.

use crate::client::draft::{Draft, DraftError};
use windlass_core::job::MAX_CALL_TIMEOUT;

/// Which targets are refused when a job is stored. Without rules, a denied target fails when it is called.
#[derive(Debug, Clone, Default)]
pub(crate) struct Outgoing {
    #[cfg(feature = "http")]
    pub rules: Option<crate::executor::http::TargetRules>,
}

impl Outgoing {
    /// Checks the call of a draft, and the webhook it names itself.
    pub(super) fn check(&self, draft: &Draft) -> Result<(), DraftError> {
        check_timeout(draft)?;
        if let Some(webhook) = &draft.webhook {
            check_url(&webhook.url).map_err(|message| DraftError::new("webhook/url", message))?;
            self.check_target("webhook/url", &webhook.url)?;
        }
        let Some(call) = &draft.http else { return Ok(()) };
        #[cfg(feature = "http")]
        crate::executor::http::check_call(&call.method, &call.url, &call.headers)
            .map_err(|error| DraftError::new(format!("http/{}", error.field), error.message))?;
        self.check_target("http/url", &call.url)
    }

    /// Whether the operator allows the URL's target, as far as the URL shows it.
    #[cfg(feature = "http")]
    pub(super) fn check_target(&self, field: &str, url: &str) -> Result<(), DraftError> {
        let checked = self.rules.as_ref().map_or(Ok(()), |rules| rules.check(url));
        checked.map_err(|error| DraftError::new(field, error.message))
    }

    #[cfg(not(feature = "http"))]
    #[allow(clippy::unused_self, clippy::unnecessary_wraps)] // There is nothing to check without the executor.
    pub(super) fn check_target(&self, _field: &str, _url: &str) -> Result<(), DraftError> {
        Ok(())
    }
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
pub(super) fn check_url(url: &str) -> Result<(), String> {
    crate::executor::http::check_url(url).map_err(|error| error.message)
}

#[cfg(not(feature = "http"))]
pub(super) fn check_url(url: &str) -> Result<(), String> {
    let url = url::Url::parse(url).ok().filter(|url| ["http", "https"].contains(&url.scheme()));
    match url.filter(|url| url.username().is_empty() && url.password().is_none()) {
        Some(_) => Ok(()),
        None => Err("must be an http or https URL without a user name".into()),
    }
}
