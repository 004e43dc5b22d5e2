//! Quotas: how much one tenant may use. Pure: what is used now comes in as a value.

use crate::gate::{Bucket, FlowError, Rate};
use crate::nearest::hint;
use crate::time::{Millis, Timestamp};
use serde_json::{Map, Value, json};
use std::fmt;

/// How long a client should wait when too many jobs wait. Nobody knows when the next one finishes.
pub const WAITING_RETRY: Millis = Millis::from_secs(5);

const MAX_WAITING: u64 = 1_000_000_000;
const MAX_OPEN: u64 = 100_000;
const FIELDS: [&str; 5] = ["waiting", "enqueueRate", "streams", "longPolls", "httpConcurrency"];

/// What one tenant may use. `None`: no quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Quotas {
    /// The most jobs that wait: due, for later, and for their next attempt.
    pub waiting: Option<u64>,
    /// How many jobs are stored per time. Counted by each node.
    pub enqueue_rate: Option<Rate>,
    /// The most event streams at once. Counted by each node.
    pub streams: Option<u32>,
    /// The most long polls at once. Counted by each node.
    pub long_polls: Option<u32>,
    /// The most calls to URLs at once, within the tenant's share of the HTTP slots. Counted by each node. Jobs beyond
    /// it are stored and wait.
    pub http_concurrency: Option<u32>,
}

/// One of the quotas.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Quota {
    Waiting,
    EnqueueRate,
    Streams,
    LongPolls,
    HttpConcurrency,
}

impl Quota {
    /// All of them, in the order of their names' first use.
    pub const ALL: [Self; 5] =
        [Self::Waiting, Self::EnqueueRate, Self::Streams, Self::LongPolls, Self::HttpConcurrency];

    /// The field's name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => FIELDS[0],
            Self::EnqueueRate => FIELDS[1],
            Self::Streams => FIELDS[2],
            Self::LongPolls => FIELDS[3],
            Self::HttpConcurrency => FIELDS[4],
        }
    }
}

/// A refusal by a quota.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverQuota {
    pub quota: Quota,
    /// What the quota allows, as text.
    pub limit: String,
    /// When it is worth asking again.
    pub retry_after: Millis,
}

impl fmt::Display for OverQuota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limit = &self.limit;
        match self.quota {
            Quota::Waiting => write!(f, "the tenant's quota of {limit} waiting jobs is used up"),
            Quota::EnqueueRate => write!(f, "the tenant's quota of {limit} stored jobs is used up"),
            Quota::Streams => write!(f, "the tenant's quota of {limit} streams is used up"),
            Quota::LongPolls => write!(f, "the tenant's quota of {limit} long polls is used up"),
            Quota::HttpConcurrency => write!(f, "the tenant's quota of {limit} calls at once is used up"),
        }
    }
}

impl Quotas {
    /// Reads `{"waiting":1000,"enqueueRate":"100/s","streams":10,"longPolls":100,"httpConcurrency":8}`. Null is the
    /// same as absent.
    ///
    /// # Errors
    /// The field that is wrong, and the accepted form.
    pub fn from_value(value: &Value) -> Result<Self, FlowError> {
        let form = "an object with waiting, enqueueRate, streams, longPolls, httpConcurrency";
        let fields = value.as_object().ok_or_else(|| FlowError::refuse("", value, form))?;
        if let Some(unknown) = fields.keys().find(|name| !FIELDS.contains(&name.as_str())) {
            let message = format!("is not a quota{}", hint(unknown, &FIELDS));
            return Err(FlowError::new(format!("/{unknown}"), message));
        }
        let present = |name: &str| fields.get(name).filter(|value| !value.is_null());
        let whole = |name: &str, most: u64| {
            let Some(value) = present(name) else { return Ok(None) };
            let number = value.as_u64().filter(|number| (1..=most).contains(number));
            let form = format!("a whole number from 1 to {most}");
            number.map(Some).ok_or_else(|| FlowError::refuse(&format!("/{name}"), value, &form))
        };
        let rate = match present("enqueueRate") {
            None => None,
            Some(value) => Some(value.as_str().and_then(Rate::parse).ok_or_else(|| {
                let form = "jobs per time, such as \"100/s\" or \"5000/1h\" (at most 1000000, over at most 1d)";
                FlowError::refuse("/enqueueRate", value, form)
            })?),
        };
        let open = |name: &str| whole(name, MAX_OPEN).map(|number| number.map(|number| number as u32));
        Ok(Self {
            waiting: whole("waiting", MAX_WAITING)?,
            enqueue_rate: rate,
            streams: open("streams")?,
            long_polls: open("longPolls")?,
            http_concurrency: open("httpConcurrency")?,
        })
    }

    /// What [`Quotas::from_value`] reads; only the quotas that are set.
    #[must_use]
    pub fn to_value(self) -> Value {
        let mut fields = Map::new();
        fields.extend(self.waiting.map(|number| ("waiting".to_owned(), json!(number))));
        fields.extend(self.enqueue_rate.map(|rate| ("enqueueRate".to_owned(), json!(rate.to_string()))));
        fields.extend(self.streams.map(|number| ("streams".to_owned(), json!(number))));
        fields.extend(self.long_polls.map(|number| ("longPolls".to_owned(), json!(number))));
        fields.extend(self.http_concurrency.map(|number| ("httpConcurrency".to_owned(), json!(number))));
        Value::Object(fields)
    }

    /// These, and those of `below` where these have none.
    #[must_use]
    pub fn over(self, below: Self) -> Self {
        Self {
            waiting: self.waiting.or(below.waiting),
            enqueue_rate: self.enqueue_rate.or(below.enqueue_rate),
            streams: self.streams.or(below.streams),
            long_polls: self.long_polls.or(below.long_polls),
            http_concurrency: self.http_concurrency.or(below.http_concurrency),
        }
    }

    /// Whether storing jobs has a quota.
    #[must_use]
    pub const fn limits_enqueue(self) -> bool {
        self.waiting.is_some() || self.enqueue_rate.is_some()
    }

    /// How many of `asked` jobs may be stored, and why not all. A batch that starts within the rate is stored whole,
    /// and the jobs after it wait until the rate has caught up: otherwise a batch larger than the burst could never
    /// be stored.
    #[must_use]
    pub fn admit(self, used: &Used, asked: u64, now: Timestamp) -> (u64, Option<OverQuota>) {
        if let Some(rate) = self.enqueue_rate
            && let Some(at) = used.rate.refuses(rate, now)
        {
            let (limit, retry_after) = (rate.to_string(), at.since(now));
            return (0, Some(OverQuota { quota: Quota::EnqueueRate, limit, retry_after }));
        }
        let room = self.waiting.map_or(u64::MAX, |most| most.saturating_sub(used.waiting));
        if asked <= room {
            return (asked, None);
        }
        let limit = self.waiting.unwrap_or_default().to_string();
        (room, Some(OverQuota { quota: Quota::Waiting, limit, retry_after: WAITING_RETRY }))
    }
}

/// What a tenant uses of its quotas.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Used {
    /// Jobs that wait.
    pub waiting: u64,
    rate: Bucket,
}

impl Used {
    /// Counts jobs against the rate.
    pub fn take(&mut self, quotas: &Quotas, jobs: u64, now: Timestamp) {
        if let Some(rate) = quotas.enqueue_rate {
            for _ in 0..jobs {
                self.rate.take(rate, now);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quotas(value: &Value) -> Quotas {
        Quotas::from_value(value).unwrap()
    }

    #[test]
    fn quotas_read_back_from_what_they_print() {
        for value in [
            json!({}),
            json!({"waiting": 7}),
            json!({"enqueueRate": "5/1m", "streams": 1, "longPolls": 3, "httpConcurrency": 2}),
        ] {
            assert_eq!(quotas(&value).to_value(), value);
        }
        for (value, pointer) in [
            (json!({"waiting": 0}), "/waiting"),
            (json!({"waiting": "7"}), "/waiting"),
            (json!({"enqueueRate": 5}), "/enqueueRate"),
            (json!({"streams": 100_001}), "/streams"),
            (json!({"longpolls": 1}), "/longpolls"),
            (json!({"httpConcurrency": 0}), "/httpConcurrency"),
            (json!(7), ""),
        ] {
            assert_eq!(Quotas::from_value(&value).unwrap_err().pointer, pointer, "{value}");
        }
    }

    #[test]
    fn no_more_jobs_wait_than_the_quota_allows() {
        let quotas = quotas(&json!({"waiting": 10}));
        for waiting in 0..15 {
            for asked in 0..15 {
                let (admitted, refusal) = quotas.admit(&Used { waiting, ..Used::default() }, asked, Timestamp::EPOCH);
                assert!(admitted == 0 || waiting + admitted <= 10);
                assert_eq!(refusal.is_some(), admitted < asked, "{waiting} wait, {asked} asked");
            }
        }
    }

    #[test]
    fn a_batch_runs_ahead_once_and_the_average_holds() {
        let quotas = quotas(&json!({"enqueueRate": "10/s"}));
        let (mut used, mut stored, mut now) = (Used::default(), 0, Timestamp::from_millis(0));
        for _ in 0..100_000 {
            let (admitted, refusal) = quotas.admit(&used, 100, now);
            if let Some(refusal) = refusal {
                assert_eq!(admitted, 0);
                now = now + refusal.retry_after;
                continue;
            }
            used.take(&quotas, admitted, now);
            stored += admitted;
            // The burst, one batch, and what the rate allows since the start.
            assert!(stored <= 10 + 100 + now.as_millis() as u64 / 100, "{stored} at {now}");
        }
        assert!(stored > 1000);
    }

    #[test]
    fn a_tenants_own_quotas_stand_over_the_default() {
        let own = quotas(&json!({"waiting": 5}));
        let all = quotas(&json!({"waiting": 9, "streams": 2}));
        assert_eq!(own.over(all), quotas(&json!({"waiting": 5, "streams": 2})));
    }
}
