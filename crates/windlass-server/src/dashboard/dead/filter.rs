//! Which dead letters: the filter of the page and of its actions.

use crate::dashboard::error::PageError;
use crate::dashboard::session::Visitor;
use crate::http::Query;
use windlass::client::JobFilter;
use windlass_core::job::{Kind, QueueName, Tenant};

const NAMES: [&str; 5] = ["queue", "kind", "tenant", "class", "fingerprint"];

/// A filter with the texts it was made of.
#[derive(Debug, Clone)]
pub(super) struct Choice {
    pub(super) filter: JobFilter,
    pairs: Vec<(&'static str, String)>,
}

impl Choice {
    pub(super) fn read(query: &Query, visitor: &Visitor) -> Result<Self, PageError> {
        let pairs = NAMES.iter().filter_map(|name| Some((*name, query.text(name)?.trim().to_owned())));
        let filter = JobFilter {
            queue: query.parsed("queue", QueueName::new)?,
            kind: query.parsed("kind", Kind::new)?,
            tenant: visitor.caller.narrowed(query.parsed("tenant", Tenant::new)?)?,
            error_class: query.text("class").map(str::to_owned),
            fingerprint: query.text("fingerprint").map(str::to_owned),
            dead_letters: true,
            ..JobFilter::default()
        };
        Ok(Self { filter, pairs: pairs.collect() })
    }

    pub(super) fn value(&self, name: &str) -> &str {
        self.pairs.iter().find(|(n, _)| *n == name).map_or("", |(_, value)| value)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    pub(super) fn address(&self, path: &str) -> String {
        let query = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(self.pairs.iter()).finish();
        if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") }
    }

    pub(super) fn with(&self, path: &str, name: &'static str, value: &str) -> String {
        let mut more = self.clone();
        more.pairs.push((name, value.to_owned()));
        more.address(path)
    }

    pub(super) fn words(&self) -> String {
        let words: Vec<String> = self.pairs.iter().map(|(name, value)| format!("{name}={value:?}")).collect();
        if words.is_empty() { "all dead letters".into() } else { format!("dead letters {}", words.join(" ")) }
    }
}
