//! The retry path allocates nothing, so that deciding many jobs stays fast.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use windlass_core::policy::{PRESETS, Partial, Role};
use windlass_core::{Delivery, Failure, LiveRules, Millis, Outcome, Roll, Running, Timestamp, decide};

#[test]
fn no_decision_allocates() {
    for preset in PRESETS {
        let policy = Partial::resolve(&[preset.partial()], &Role::Handler.default_give_up_on()).unwrap();
        let failed = Outcome::Failed(Failure::new("no").class("Timeout").retry_after(Millis::from_secs(90)));
        let given_up = Outcome::Failed(Failure::new("no").class("ValidationError"));
        let counted = allocation_counter::measure(|| {
            for outcome in [&failed, &given_up, &Outcome::Lost, &Outcome::Succeeded, &Outcome::Snoozed(Millis::ZERO)] {
                let job = Running {
                    failures: 1,
                    crashes: 1,
                    first_attempt_at: Timestamp::EPOCH,
                    previous_delay: Millis::from_secs(1),
                    delivery: Delivery::AtLeastOnce,
                    cancel_requested: false,
                    is_probe: false,
                    policy: &policy,
                    rules: LiveRules::default(),
                };
                std::hint::black_box(decide(&job, outcome, Timestamp::EPOCH, Roll(7)));
            }
        });
        assert_eq!(counted.count_total, 0, "{}", preset.name);
    }
}
