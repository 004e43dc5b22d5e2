//! Preview: what a policy will do. It uses the same arithmetic as the decision, so the preview is exact.

use crate::jitter::{Jitter, Window};
use crate::policy::Policy;
use crate::time::Millis;
use serde_json::{Value, json};

/// The most retries a preview shows: as many as a policy can allow.
pub const MAX_PREVIEW: u32 = crate::policy::MAX_RETRIES;

/// The retries of a policy, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preview {
    pub delays: Vec<Delay>,
}

/// One retry of a preview.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delay {
    /// 1 is the first retry.
    pub retry: u32,
    /// The delay before jitter. Decorrelated jitter has no such delay, so this is the middle of its window.
    pub delay: Millis,
    /// The possible delays with jitter. For decorrelated jitter the widest window: every earlier delay was the longest.
    pub window: Window,
    /// The sum of all delays so far, including this one.
    pub total: Millis,
}

/// The first `count` retries of a policy (at most [`MAX_PREVIEW`]), whether or not it allows that many.
///
/// ```
/// use windlass_core::{Policy, preview};
///
/// let policy = Policy::parse_canonical("steps:30s/60s/120s")?;
/// let totals: Vec<String> = preview(&policy, 4).delays.iter().map(|d| d.total.to_string()).collect();
/// assert_eq!(totals, ["30s", "1m30s", "3m30s", "5m30s"]);
/// # Ok::<(), windlass_core::PolicyError>(())
/// ```
#[must_use]
pub fn preview(policy: &Policy, count: u32) -> Preview {
    let mut previous = Millis::ZERO;
    let mut total = Millis::ZERO;
    let delays = (1..=count.min(MAX_PREVIEW)).map(|retry| {
        let window = policy.window(retry, previous);
        previous = window.max;
        let delay = match policy.jitter {
            Jitter::Decorrelated => Millis::new(window.min.get() + window.width() / 2),
            Jitter::None | Jitter::Full | Jitter::Equal | Jitter::Spread(_) | Jitter::Additive(_) => {
                policy.delay(retry)
            }
        };
        total = total + delay;
        Delay { retry, delay, window, total }
    });
    Preview { delays: delays.collect() }
}

impl Preview {
    /// The longest possible sum of all these waits.
    #[must_use]
    pub fn longest(&self) -> Millis {
        self.delays.iter().fold(Millis::ZERO, |sum, d| sum + d.window.max)
    }

    /// `{"policy":…,"delays":[{"retry":1,"delayMs":…,"minMs":…,"maxMs":…,"totalMs":…},…]}`
    #[must_use]
    pub fn to_json(&self, policy: &Policy) -> Value {
        let delay = |d: &Delay| {
            json!({
                "retry": d.retry,
                "delayMs": d.delay.get(),
                "minMs": d.window.min.get(),
                "maxMs": d.window.max.get(),
                "totalMs": d.total.get(),
            })
        };
        json!({ "policy": policy.to_json(), "delays": self.delays.iter().map(delay).collect::<Vec<_>>() })
    }
}
