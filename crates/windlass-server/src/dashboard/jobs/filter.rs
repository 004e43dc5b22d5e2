//! Which jobs: the filter of the list and of actions, as it is in addresses, forms and the audit.

use crate::dashboard::error::PageError;
use crate::dashboard::session::Visitor;
use crate::http::Query;
use windlass::client::JobFilter;
use windlass_core::job::{Kind, QueueName, Tenant};
use windlass_core::{Millis, State, Timestamp};

pub(crate) const STATES: [State; 6] =
    [State::Queued, State::Running, State::Retrying, State::Succeeded, State::Failed, State::Cancelled];
/// The parameters of an address that choose jobs.
const NAMES: [&str; 8] = ["state", "queue", "kind", "tenant", "class", "since", "q", "schedule"];

/// A filter with the texts it was made of.
#[derive(Debug, Clone)]
pub(crate) struct Choice {
    pub(crate) filter: JobFilter,
    /// A text to search for.
    pub(crate) text: Option<String>,
    pairs: Vec<(&'static str, String)>,
}

impl Choice {
    pub(crate) fn read(query: &Query, visitor: &Visitor) -> Result<Self, PageError> {
        let pairs: Vec<(&'static str, String)> =
            NAMES.iter().flat_map(|name| query.all(name).map(|value| (*name, value.trim().to_owned()))).collect();
        let states = query
            .all("state")
            .map(|word| State::parse(word).ok_or_else(|| PageError::bad(format!("`{word}` is not a state"))));
        let filter = JobFilter {
            states: states.collect::<Result<_, _>>()?,
            queue: query.parsed("queue", QueueName::new)?,
            kind: query.parsed("kind", Kind::new)?,
            tenant: visitor.caller.narrowed(query.parsed("tenant", Tenant::new)?)?,
            error_class: query.text("class").map(str::to_owned),
            since: query.parsed("since", moment)?,
            schedule: query
                .parsed("schedule", |text| text.parse().map(windlass_core::JobId).map_err(|_| "is an id"))?,
            ..JobFilter::default()
        };
        Ok(Self { filter, text: query.text("q").map(|text| text.trim().to_owned()), pairs })
    }

    /// A parameter's text, for the form.
    pub(crate) fn value(&self, name: &str) -> &str {
        self.pairs.iter().find(|(n, _)| *n == name).map_or("", |(_, value)| value)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    pub(crate) fn address(&self, path: &str) -> String {
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        let query = query.extend_pairs(self.pairs.iter()).finish();
        if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") }
    }

    /// The same with one more parameter.
    pub(crate) fn with(&self, path: &str, name: &'static str, value: &str) -> String {
        let mut more = self.clone();
        more.pairs.push((name, value.to_owned()));
        more.address(path)
    }

    /// The filter in words, for confirmations and the audit.
    pub(crate) fn words(&self) -> String {
        let words: Vec<String> = self.pairs.iter().map(|(name, value)| format!("{name}={value:?}")).collect();
        if words.is_empty() { "all jobs".into() } else { format!("jobs {}", words.join(" ")) }
    }
}

/// A moment, or a span before now: `2026-01-01T12:00:00Z`, `1h`.
fn moment(text: &str) -> Result<Timestamp, &'static str> {
    let wrong = "must be a moment such as 2026-01-01T12:00:00Z";
    let local = || Timestamp::parse(&format!("{text}:00Z")).or_else(|| Timestamp::parse(&format!("{text}Z")));
    Timestamp::parse(text).or_else(local).ok_or(wrong)
}

/// A span, for forms.
pub(crate) fn span(text: &str) -> Result<Millis, String> {
    Millis::parse(text).map_err(|error| error.to_string())
}
