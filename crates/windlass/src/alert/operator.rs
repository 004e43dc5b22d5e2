//! Who is notified, and in which form: `[NAME=][FORM+]URL`, as the setting `alerts.urls` lists them.

use url::Url;

/// The form of a notice's body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoticeForm {
    /// Windlass's own: `{"type","timestamp","data"}`, signed as a webhook.
    Json,
    /// An incoming webhook of Slack, or of a service that accepts the same (Mattermost, Rocket.Chat).
    Slack,
    /// An event of PagerDuty's Events API, version 2, or of a service that accepts the same.
    PagerDuty,
}

impl NoticeForm {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Json, Self::Slack, Self::PagerDuty];

    /// The name of the form.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Slack => "slack",
            Self::PagerDuty => "pagerduty",
        }
    }
}

/// An operator to notify, in addition to the log, the API and the metrics.
#[derive(Clone, PartialEq, Eq)]
pub struct Operator {
    /// The name that rules use; the host if none was given.
    pub name: String,
    /// The form of its notices.
    pub form: NoticeForm,
    /// The URL to call.
    pub url: String,
    /// `whsec_…` to sign JSON notices; PagerDuty's routing key.
    pub secret: Option<String>,
}

/// Leaves out the secret and the URL's path, which is one for Slack, because debug output may end up in a log.
impl std::fmt::Debug for Operator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Operator").field("name", &self.name).field("form", &self.form).finish_non_exhaustive()
    }
}

/// The longest name.
const MAX_NAME: usize = 64;
/// The part of a PagerDuty URL that holds the key, and the field of the body that it is sent in.
pub(crate) const ROUTING_KEY: &str = "routing_key";

impl Operator {
    /// An operator who gets JSON notices.
    #[must_use]
    pub fn json(url: impl Into<String>, secret: Option<String>) -> Self {
        let url = url.into();
        Self { name: host_of(&url), form: NoticeForm::Json, url, secret }
    }

    /// Reads `[NAME=][FORM+]URL`. `secret` signs notices in JSON. PagerDuty's key is the URL's `routing_key`.
    ///
    /// # Errors
    /// What is wrong; the URL is left out, because it may contain secrets.
    pub fn parse(text: &str, secret: Option<&str>) -> Result<Self, String> {
        let (name, rest) = named(text)?;
        let (form, url) = formed(rest)?;
        let name = name.map_or_else(|| host_of(url), str::to_owned);
        match form {
            NoticeForm::Json => Ok(Self { name, form, url: url.to_owned(), secret: secret.map(str::to_owned) }),
            NoticeForm::Slack => Ok(Self { name, form, url: url.to_owned(), secret: None }),
            NoticeForm::PagerDuty => {
                let (url, key) = without_key(url)?;
                Ok(Self { name, form, url, secret: Some(key) })
            }
        }
    }
}

/// The name before `=`, if the text begins with one. A `=` in a query is none.
fn named(text: &str) -> Result<(Option<&str>, &str), String> {
    let Some((name, rest)) = text.split_once('=').filter(|(name, _)| !name.contains(['/', ':', '?'])) else {
        return Ok((None, text));
    };
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if name.is_empty() || name.len() > MAX_NAME || !name.bytes().all(is_plain) {
        return Err(format!("has a wrong name: 1 to {MAX_NAME} letters, digits, dots, dashes or underscores"));
    }
    Ok((Some(name), rest))
}

fn formed(text: &str) -> Result<(NoticeForm, &str), String> {
    let scheme = text.split("://").next().unwrap_or_default();
    let Some((word, _)) = scheme.split_once('+') else { return Ok((NoticeForm::Json, text)) };
    let words = NoticeForm::ALL.map(NoticeForm::as_str).join(", ");
    let form = NoticeForm::ALL.into_iter().find(|form| form.as_str() == word);
    let form = form.ok_or_else(|| format!("has an unknown form `{word}`; the forms are {words}"))?;
    Ok((form, &text[word.len() + 1..]))
}

/// The key goes into the body when the notice is sent, so that no URL shows it.
fn without_key(text: &str) -> Result<(String, String), String> {
    let form = "needs a routing key: pagerduty+https://events.pagerduty.com/v2/enqueue?routing_key=KEY";
    let mut url = Url::parse(text).map_err(|error| format!("is not a URL: {error}"))?;
    let pairs: Vec<(String, String)> = url.query_pairs().into_owned().collect();
    let key = pairs.iter().find(|(name, key)| name == ROUTING_KEY && !key.is_empty());
    let key = key.map(|(_, key)| key.clone()).ok_or(form)?;
    if !key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte)) {
        return Err("has a routing key with characters that no key has".into());
    }
    let rest: Vec<&(String, String)> = pairs.iter().filter(|(name, _)| name != ROUTING_KEY).collect();
    url.set_query(None);
    if !rest.is_empty() {
        url.query_pairs_mut().extend_pairs(rest);
    }
    Ok((url.to_string(), key))
}

fn host_of(url: &str) -> String {
    Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Operator {
        Operator::parse(text, Some("whsec_x")).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn name_form_and_key_are_read() {
        let plain = read("https://ops.example/hook?a=b");
        assert_eq!((plain.name.as_str(), plain.form), ("ops.example", NoticeForm::Json));
        assert_eq!((plain.url.as_str(), plain.secret.as_deref()), ("https://ops.example/hook?a=b", Some("whsec_x")));
        let slack = read("team=slack+https://hooks.slack.com/services/T/B/x");
        assert_eq!((slack.name.as_str(), slack.form, slack.secret), ("team", NoticeForm::Slack, None));
        assert_eq!(slack.url, "https://hooks.slack.com/services/T/B/x");
        let pager = read("oncall=pagerduty+https://events.pagerduty.com/v2/enqueue?routing_key=R0&x=1");
        assert_eq!((pager.form, pager.secret.as_deref()), (NoticeForm::PagerDuty, Some("R0")));
        assert_eq!(pager.url, "https://events.pagerduty.com/v2/enqueue?x=1");
        assert_eq!(read("json+http://a.example/").form, NoticeForm::Json);
    }

    #[test]
    fn what_is_wrong_is_said_without_the_url() {
        for (text, shown) in [
            ("teams+https://a.example/s3cret", "the forms are json, slack, pagerduty"),
            ("pagerduty+https://a.example/s3cret", "routing_key=KEY"),
            ("pagerduty+https://a.example/?routing_key=s3c%22ret", "characters"),
            ("my team=slack+https://a.example/s3cret", "wrong name"),
            ("=https://a.example/s3cret", "wrong name"),
        ] {
            let error = Operator::parse(text, None).unwrap_err();
            assert!(error.contains(shown) && !error.contains("s3c"), "{text}: {error}");
        }
        let shown = format!("{:?}", read("slack+https://hooks.slack.com/services/T/B/s3cret"));
        assert!(!shown.contains("s3cret"), "{shown}");
    }
}
