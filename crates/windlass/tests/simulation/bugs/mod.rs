//! Testing the tests: a store with one bug at a time, which the simulation must find. Bugs that do not show at the
//! store's boundary (in the worker, in the rules, in SQL) are planted in copies of the sources by `scripts/mutants`.

mod store;

use crate::model::sim::Tracing;
use crate::runs::seeds::{on_model, options};
use std::sync::Arc;
use store::BuggyStore;
use windlass::low_level::stores::memory::MemoryStore;

/// Seeds that are tried before a bug counts as missed. Most are found by one of the first five.
const SEEDS: u64 = 400;

/// What the store does wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bug {
    None,
    /// An enqueue is acknowledged, and not stored.
    AcknowledgedBeforeStored,
    /// An idempotency key counts for all tenants.
    KeyWithoutTenant,
    ClaimBeforeDue,
    ClaimFromPaused,
    /// A job that is held already is handed out again.
    ClaimTwice,
    /// More jobs that may have killed their process than were asked for, in one claim.
    ClaimAllSuspects,
    AttemptNotRaised,
    WebhookIdPerTry,
    WebhookBodyPerTry,
    /// The jobs of a claim with an unknown outcome are not reported.
    HeldForgotten,
    CommitWithoutFence,
    /// A commit is reported as applied, and not stored.
    UnknownCommitIsSuccess,
    /// A commit that was applied is reported as stale.
    AppliedSaidStale,
    WebhookOutsideCommit,
    RestartsAtMostOnce,
    DelayPastCap,
    /// The lease of a running job ends with another job's commit.
    LeaseEndedTooSoon,
    RenewRevivesReaped,
    /// A renewal does not report that a cancel was requested.
    CancelNotReported,
    /// A reap during an outage takes leases that must be spared.
    OutageCostsAttempts,
    ReapTakesLiving,
    CancelNotKept,
    /// Operations of one tenant reach the jobs of another.
    ScopeIgnored,
    DiscardNotReported,
    /// A firing is not compared with what the schedule says is next.
    FiringWithoutCompare,
    /// Jobs that wait are ended by a prune.
    PruneTakesLive,
    /// Limits of queues and keys are not kept.
    LimitsIgnored,
}

const ALL: [Bug; 27] = [
    Bug::AcknowledgedBeforeStored,
    Bug::KeyWithoutTenant,
    Bug::ClaimBeforeDue,
    Bug::ClaimFromPaused,
    Bug::ClaimTwice,
    Bug::ClaimAllSuspects,
    Bug::AttemptNotRaised,
    Bug::WebhookIdPerTry,
    Bug::WebhookBodyPerTry,
    Bug::HeldForgotten,
    Bug::CommitWithoutFence,
    Bug::UnknownCommitIsSuccess,
    Bug::AppliedSaidStale,
    Bug::WebhookOutsideCommit,
    Bug::RestartsAtMostOnce,
    Bug::DelayPastCap,
    Bug::LeaseEndedTooSoon,
    Bug::RenewRevivesReaped,
    Bug::CancelNotReported,
    Bug::OutageCostsAttempts,
    Bug::ReapTakesLiving,
    Bug::CancelNotKept,
    Bug::ScopeIgnored,
    Bug::DiscardNotReported,
    Bug::FiringWithoutCompare,
    Bug::PruneTakesLive,
    Bug::LimitsIgnored,
];

/// The first seed that finds the bug, and the broken promise it reports.
fn found(bug: Bug, seeds: u64) -> Option<(u64, String)> {
    (0..seeds).find_map(|seed| {
        let store = BuggyStore::new(MemoryStore::new(options(seed)), bug);
        on_model(seed, Arc::new(store), Tracing::Off).broken.map(|promise| (seed, promise))
    })
}

#[test]
fn every_bug_of_a_store_is_found() {
    let mut missed = Vec::new();
    for bug in ALL {
        match found(bug, SEEDS) {
            Some((seed, promise)) => println!("{bug:?}: found by seed {seed}: {promise}"),
            None => missed.push(bug),
        }
    }
    assert!(missed.is_empty(), "{SEEDS} seeds did not find {missed:?}");
}

#[test]
fn the_store_for_planted_bugs_has_no_bugs_without_one() {
    assert_eq!(found(Bug::None, 20), None);
}
