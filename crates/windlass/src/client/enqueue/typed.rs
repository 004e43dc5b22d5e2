//! A retry policy in Rust: a preset to start from, and the fields that differ.

use crate::client::enqueue::retry::{IntoRetry, Retry};
use windlass_core::policy::{Bound, Partial, Pattern, Preset};
use windlass_core::{Jitter, Millis};

/// A retry policy: a preset, with some fields changed. Accepted wherever a policy is, and checked by the compiler.
///
/// ```
/// use std::time::Duration;
/// use windlass::{Metrics, RetryPolicy, Windlass};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let policy = RetryPolicy::full_jitter().max_retries(5).base(Duration::from_millis(200));
/// let windlass = Windlass::builder("memory:").default_policy(policy).open().await?;
/// let metrics = Metrics::new(&windlass);
///
/// let id = windlass.enqueue_kind("email", &serde_json::json!({})).await?;
/// assert_eq!(windlass.jobs().get(id).await?.unwrap().policy.max_retries, 5);
///
/// // Counts over a window, and the same metrics that a server has, without one.
/// let hour = windlass.stats().over(Duration::from_secs(3600)).await?;
/// let total = hour.total;
/// println!("{} retries, {} exhausted, {} ms in backoff", total.retries, total.exhausted, total.backoff_ms);
/// let text = metrics.encode().await;
/// assert!(text.contains("windlass_queue_jobs{queue=\"default\",state=\"due\"} 1"));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct RetryPolicy(Partial);

macro_rules! presets {
    ($($(#[$doc:meta])* $function:ident = $name:literal;)*) => {
        impl RetryPolicy {
            $($(#[$doc])*
            pub fn $function() -> Self {
                Self(Preset::find($name).expect("the presets are in the table").partial())
            })*
        }
    };
}

presets! {
    /// 30 s, 1 min, 2 min; three retries.
    stepped = "stepped";
    /// From 500 ms, doubled up to 30 s, anywhere between zero and that; three retries.
    full_jitter = "full-jitter";
    /// From 1 min, doubled up to 1 h, ±20 %; three retries.
    exponential = "exponential";
    /// 1 min, 2 min, 3 min, … up to 1 h, ±20 %; three retries.
    linear = "linear";
    /// 1 min each time, ±20 %; three retries.
    fixed = "fixed";
    /// 1, 1, 2, 3, 5, … min up to 1 h, ±20 %; three retries.
    fibonacci = "fibonacci";
    /// From 1 s, doubled up to 5 min; three retries.
    http = "http";
    /// From 1 s, doubled up to 1 min, up to 30 % more; five attempts.
    queue_worker = "queue-worker";
    /// Five retries within about half a minute.
    financial = "financial";
    /// From 100 ms; two retries.
    low_latency = "low-latency";
    /// One attempt.
    once = "once";
}

impl RetryPolicy {
    /// How many retries, at most 1000.
    pub fn max_retries(self, retries: u32) -> Self {
        Self(Partial { max_retries: Some(retries), ..self.0 })
    }

    /// The first delay. Without effect on `stepped`, and then refused.
    pub fn base(self, delay: impl Into<Millis>) -> Self {
        Self(Partial { base: Some(delay.into()), ..self.0 })
    }

    /// The longest delay, jitter included.
    pub fn max_delay(self, delay: impl Into<Millis>) -> Self {
        Self(Partial { max_delay: Some(Bound::At(delay.into())), ..self.0 })
    }

    /// How delays are spread.
    pub fn jitter(self, jitter: Jitter) -> Self {
        Self(Partial { jitter: Some(jitter), ..self.0 })
    }

    /// Gives up if the next try would start later than this after the first attempt.
    pub fn max_elapsed(self, span: impl Into<Millis>) -> Self {
        Self(Partial { max_elapsed: Some(Bound::At(span.into())), ..self.0 })
    }

    /// Error classes that are never retried.
    pub fn give_up_on<'a>(self, classes: impl IntoIterator<Item = &'a str>) -> Self {
        let listed = classes.into_iter().map(|class| Pattern::Class(class.into())).collect();
        Self(Partial { give_up_on: Some(listed), ..self.0 })
    }
}

impl IntoRetry for RetryPolicy {
    fn into_retry(self) -> Retry {
        self.0.into_retry()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_core::policy::Role;

    #[test]
    fn a_typed_policy_means_what_its_line_means() {
        let resolve =
            |partial: &Partial| Partial::resolve(std::slice::from_ref(partial), &Role::Handler.default_give_up_on());
        for (typed, line) in [
            (RetryPolicy::full_jitter(), "full-jitter"),
            (RetryPolicy::stepped().max_retries(5), "stepped:retries=5"),
            (RetryPolicy::linear().base(Millis::from_secs(5)).jitter(Jitter::None), "linear:base=5s,jitter=none"),
            (RetryPolicy::queue_worker().max_delay(Millis::from_secs(9)), "queue-worker:cap=9s"),
            (RetryPolicy::once(), "once"),
        ] {
            assert_eq!(resolve(&typed.0).unwrap(), resolve(&Partial::parse_line(line).unwrap()).unwrap(), "{line}");
        }
        assert!(resolve(&RetryPolicy::stepped().base(Millis::from_secs(5)).0).is_err());
    }
}
