//! The gate of a replay with a rate. All jobs of the replay pass it, whatever their tenant and queue, until they have
//! finished: so the rate holds over the whole fleet, and also when jobs have piled up behind a pause or for lack of
//! workers. Its name says its rate, so it needs no setting.

use super::GateName;
use crate::store::Spacing;
use std::sync::Arc;
use windlass_core::Millis;
use windlass_core::gate::{GateRule, Limits, Rate};
use windlass_core::job::QueueName;

/// The queue in the name of a replay's gate. The scope tells it from a queue of that name.
const QUEUE: &str = "replay";
/// The burst is this part of a second's worth.
const BURST: u64 = 10;

/// The key of the gate of a replay: its spacing in microseconds, and what was asked for. Pages of one replay share it.
pub(crate) fn key_of(spacing: Spacing, what: &str) -> Option<Arc<str>> {
    let micros = spacing.micros();
    (micros > 0).then(|| format!("{micros}us {:016x}", fnv(what)).into())
}

/// What the gate with such a key enforces.
pub(super) fn rule(key: &str) -> GateRule {
    let micros = key.split_once("us ").and_then(|(micros, _)| micros.parse::<u64>().ok());
    let rate = micros.filter(|micros| *micros > 0).map(rate);
    GateRule { limits: Limits { rate, concurrency: None }, ..GateRule::default() }
}

/// One start each this many microseconds, as an exact rate.
fn rate(micros: u64) -> Rate {
    let burst = u32::try_from(1_000_000 / BURST / micros).unwrap_or(u32::MAX).clamp(1, Rate::MAX_BURST);
    match micros.checked_mul(1000) {
        // A thousand starts in a thousand times the spacing: whole milliseconds, whatever the spacing is.
        Some(_) if micros < Rate::MAX_PER.get() => Rate { count: 1000, per: Millis::new(micros), burst },
        Some(_) | None => Rate { count: 1, per: Millis::new((micros / 1000).min(Rate::MAX_PER.get())), burst },
    }
}

/// FNV-1a: short, and the same on every node and platform.
fn fnv(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

impl GateName {
    /// The gate of a replay, by its key.
    pub(crate) fn replay(key: &str) -> Self {
        let queue = QueueName::new(QUEUE).expect("the name fits a queue");
        Self { tenant: None, queue, key: Some(key.into()) }
    }

    /// Whether it is the gate of a replay with a rate, which jobs of any tenant and queue may pass.
    #[must_use]
    pub const fn is_replay(&self) -> bool {
        self.tenant.is_none() && self.key.is_some()
    }

    /// Whether it is the gate of a limit key, which may have a circuit breaker.
    pub(crate) const fn is_of_key(&self) -> bool {
        self.tenant.is_some() && self.key.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZeroU32;

    #[test]
    fn the_name_says_the_rate() {
        for per_second in [1, 3, 50, 300, 1000] {
            let spacing = Spacing::per_second(NonZeroU32::new(per_second).unwrap());
            let key = key_of(spacing, "queue=a").unwrap();
            let name = GateName::replay(&key);
            assert!(name.is_replay() && !name.is_of_key());
            let (tenant, queue, scope, key) = name.parts();
            assert_eq!(GateName::from_parts(tenant, queue, scope, key), Some(name.clone()));
            let rate = rule(key).limits.rate.unwrap();
            let starts = f64::from(rate.count) / rate.per.get() as f64 * 1000.0;
            assert!(starts <= f64::from(per_second) && starts > f64::from(per_second) * 0.99, "{per_second}: {starts}");
            assert!(rate.burst >= 1 && rate.burst <= (per_second / 10).max(1), "{per_second}: {}", rate.burst);
        }
        let slow = key_of(Spacing::every(Millis::from_secs(7200)), "").unwrap();
        assert_eq!(rule(&slow).limits.rate.unwrap().per, Millis::from_secs(7200));
        assert_eq!(key_of(Spacing::NONE, ""), None);
    }
}
