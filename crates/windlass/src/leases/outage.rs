//! Outages of the store, as the log shows them: one line when it goes, a reminder per minute, one line when it is back.

use crate::clock::Clock;
use crate::store::StoreError;
use std::sync::{Mutex, MutexGuard, PoisonError};
use windlass_core::Millis;

/// How often an outage is logged again.
const REMIND_EVERY: Millis = Millis::from_secs(60);
/// An outage is over when no call has failed for this long.
const STEADY: Millis = Millis::from_secs(1);

#[derive(Debug, Default)]
pub(crate) struct Outages(Mutex<Option<Outage>>);

#[derive(Debug)]
struct Outage {
    since: Millis,
    failed_at: Millis,
    reminded_at: Millis,
    failed_calls: u64,
    refused_requests: u64,
}

/// What to say about a call.
#[derive(Debug, PartialEq, Eq)]
enum Line {
    Began,
    StillAway { span: Millis, failed_calls: u64, refused_requests: u64 },
    Over { span: Millis, failed_calls: u64, refused_requests: u64 },
}

impl Outages {
    /// Takes note of the result of a call to the store.
    pub(crate) fn record<T>(&self, result: &Result<T, StoreError>, clock: &Clock) {
        let now = clock.monotonic();
        match result {
            Err(error) if error.is_outage() => match self.failed(now) {
                Some(Line::Began) => {
                    tracing::warn!(%error, "the store cannot be reached; work resumes when it is back");
                }
                Some(Line::StillAway { span, failed_calls, refused_requests }) => {
                    tracing::warn!(%error, failed_calls, refused_requests, "the store has been away for {span}");
                }
                Some(Line::Over { .. }) | None => {}
            },
            Ok(_) | Err(_) => {
                if let Some(Line::Over { span, failed_calls, refused_requests }) = self.answered(now) {
                    tracing::warn!(failed_calls, refused_requests, "the store is back after {span}");
                }
            }
        }
    }

    /// A client's request was refused because of the outage.
    pub(crate) fn refused(&self) {
        if let Some(outage) = &mut *self.lock() {
            outage.refused_requests += 1;
        }
    }

    fn failed(&self, now: Millis) -> Option<Line> {
        let mut outage = self.lock();
        let Some(outage) = &mut *outage else {
            let (since, failed_at, reminded_at) = (now, now, now);
            *outage = Some(Outage { since, failed_at, reminded_at, failed_calls: 1, refused_requests: 0 });
            return Some(Line::Began);
        };
        (outage.failed_at, outage.failed_calls) = (now, outage.failed_calls + 1);
        if now - outage.reminded_at < REMIND_EVERY {
            return None;
        }
        outage.reminded_at = now;
        let Outage { failed_calls, refused_requests, .. } = *outage;
        Some(Line::StillAway { span: now - outage.since, failed_calls, refused_requests })
    }

    fn answered(&self, now: Millis) -> Option<Line> {
        let mut outage = self.lock();
        let over = outage.take_if(|outage| now - outage.failed_at >= STEADY)?;
        let Outage { since, failed_calls, refused_requests, .. } = over;
        Some(Line::Over { span: now - since, failed_calls, refused_requests })
    }

    fn lock(&self) -> MutexGuard<'_, Option<Outage>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Logs a failed call: as a warning, or, in an outage, which has its own lines, for debugging only.
macro_rules! store_failed {
    ($error:expr, $($rest:tt)+) => {
        if $error.is_outage() {
            tracing::debug!(error = %$error, $($rest)+);
        } else {
            tracing::warn!(error = %$error, $($rest)+);
        }
    };
}
pub(crate) use store_failed;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_is_a_line_at_its_start_one_per_minute_and_one_at_its_end() {
        let (outages, at) = (Outages::default(), Millis::from_secs);
        assert_eq!(outages.answered(at(0)), None);
        let mut lines = Vec::new();
        for second in 10..200 {
            lines.extend(outages.failed(at(second)));
            outages.refused();
        }
        let still = |seconds, failed_calls| Line::StillAway {
            span: at(seconds),
            failed_calls,
            refused_requests: failed_calls - 1,
        };
        assert_eq!(lines, [Line::Began, still(60, 61), still(120, 121), still(180, 181)]);
        assert_eq!(outages.answered(at(199)), None, "one answer may be chance");
        let over = Line::Over { span: at(190), failed_calls: 190, refused_requests: 190 };
        assert_eq!(outages.answered(at(200)), Some(over));
        assert_eq!(outages.answered(at(201)), None);
    }
}
