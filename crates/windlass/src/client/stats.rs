//! Stats: what happened during a window, in total and per queue, kind and tenant. Read from tallies.

use crate::client::windlass::Windlass;
use crate::store::{Queue, Scope, Steps, StoreError};
use crate::tally::Tally;
use std::collections::BTreeMap;
use windlass_core::job::{Kind, QueueName, Tenant};
use windlass_core::{Millis, Timestamp};

/// Counts of what happened to jobs. Made by [`Windlass::stats`].
#[derive(Debug, Clone)]
pub struct Stats<'a> {
    windlass: &'a Windlass,
    scope: Scope,
}

/// Counts over one window up to now.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct WindowStats {
    /// The length of the window.
    pub span: Millis,
    /// The total.
    pub total: Tally,
    /// By the name of the queue.
    pub queues: BTreeMap<String, Tally>,
    /// By kind.
    pub kinds: BTreeMap<String, Tally>,
    /// By tenant.
    pub tenants: BTreeMap<String, Tally>,
}

/// Counts in steps of equal length, the oldest first.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Series {
    /// When the first step begins.
    pub from: Timestamp,
    /// The length of each step.
    pub step: Millis,
    /// The total of each step.
    pub total: Vec<Tally>,
    /// The same by tenant and queue; only queues with any count.
    pub queues: BTreeMap<(Tenant, QueueName), Vec<Tally>>,
}

impl Windlass {
    /// Counts of what happened to jobs.
    ///
    /// ```
    /// use windlass::{Millis, Windlass};
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let windlass = Windlass::open("memory:").await?;
    /// windlass.enqueue_kind("email", &serde_json::json!({})).queue("mail").await?;
    /// let hour = windlass.stats().over(Millis::from_secs(3600)).await?;
    /// assert_eq!((hour.total.enqueued, hour.queues["mail"].enqueued), (1, 1));
    /// assert_eq!(hour.total.retry_success_rate(), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    #[must_use]
    pub fn stats(&self) -> Stats<'_> {
        Stats { windlass: self, scope: Scope::All }
    }
}

impl<'a> Stats<'a> {
    /// The counts of one tenant, or of all.
    #[must_use]
    pub fn within(self, scope: &Scope) -> Self {
        Self { scope: scope.clone(), ..self }
    }

    /// Counts from `span` ago until now.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn over(&self, span: impl Into<Millis>) -> Result<WindowStats, StoreError> {
        Ok(self.windows(&[span.into()]).await?.pop().unwrap_or_default())
    }

    /// Counts since the beginning.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn lifetime(&self) -> Result<WindowStats, StoreError> {
        self.over(self.windlass.clock().now().since(Timestamp::EPOCH)).await
    }

    /// Counts over several windows, each by itself, in the order given.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn windows(&self, spans: &[Millis]) -> Result<Vec<WindowStats>, StoreError> {
        let now = self.windlass.clock().now();
        let since: Vec<Timestamp> = spans.iter().map(|span| now - *span).collect();
        let counted = self.windlass.store().windows(&self.scope, &since).await?;
        Ok(spans.iter().zip(counted).map(|(span, tallies)| WindowStats::sum(*span, tallies)).collect())
    }

    /// What was counted in each step of a span up to now, for plots. Steps start at whole multiples of their length, so
    /// the last one is not over yet.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn series(&self, span: impl Into<Millis>, step: impl Into<Millis>) -> Result<Series, StoreError> {
        let steps = Steps::until(self.windlass.clock().now(), span.into(), step.into());
        let mut series = Series {
            from: steps.from,
            step: steps.length,
            total: vec![Tally::default(); steps.count as usize],
            queues: BTreeMap::new(),
        };
        for (step, queue, tally) in self.windlass.store().series(&self.scope, steps).await? {
            series.total[step] += tally;
            let name = (queue.tenant, queue.name);
            series.queues.entry(name).or_insert_with(|| vec![Tally::default(); steps.count as usize])[step] += tally;
        }
        Ok(series)
    }

    /// Counts from `span` ago until now, by queue and kind.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn by_queue_and_kind(&self, span: impl Into<Millis>) -> Result<Vec<(Queue, Kind, Tally)>, StoreError> {
        let since = self.windlass.clock().now() - span.into();
        self.windlass.store().tallies(&self.scope, Some(since)).await
    }
}

impl WindowStats {
    fn sum(span: Millis, tallies: Vec<(Queue, Kind, Tally)>) -> Self {
        let mut sums = Self { span, ..Self::default() };
        for (queue, kind, tally) in tallies {
            sums.total += tally;
            *sums.queues.entry(queue.name.to_string()).or_default() += tally;
            *sums.kinds.entry(kind.to_string()).or_default() += tally;
            *sums.tenants.entry(queue.tenant.to_string()).or_default() += tally;
        }
        sums
    }
}

/// Rates and averages from the counts.
impl Tally {
    /// The share of retries that belong to jobs that succeeded, 0 to 1. `None` while there were no retries.
    #[must_use]
    pub fn retry_success_rate(&self) -> Option<f64> {
        // A job that ended in this window may have made its retries before it.
        ratio(self.successful_retries, self.retries).map(|rate| rate.min(1.0))
    }

    /// Retries for each first attempt. `None` while there were none.
    #[must_use]
    pub fn retry_rate(&self) -> Option<f64> {
        ratio(self.retries, self.first_attempts)
    }

    /// How long attempts took on average, in milliseconds.
    #[must_use]
    pub fn mean_run_ms(&self) -> Option<f64> {
        ratio(self.run_ms, self.attempts)
    }

    /// How long due jobs waited for a worker on average, in milliseconds.
    #[must_use]
    pub fn mean_pickup_ms(&self) -> Option<f64> {
        ratio(self.pickup_ms, self.attempts)
    }

    /// How long retries waited in backoff on average, in milliseconds.
    #[must_use]
    pub fn mean_backoff_ms(&self) -> Option<f64> {
        ratio(self.backoff_ms, self.retried)
    }
}

fn ratio(part: i64, of: i64) -> Option<f64> {
    (of > 0).then(|| part as f64 / of as f64)
}
