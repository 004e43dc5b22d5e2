//! The swarm: every seed switches on a random part of what can go wrong, because faults hide one another.

use windlass::Random;
use windlass::core::Millis;
use windlass::testing::FaultRates;

/// Something that can happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spice {
    Crashes,
    /// A restarted node takes its old name again, or tries to take another's.
    SameName,
    Drains,
    Freezes,
    /// One node is cut off from the store.
    Partitions,
    /// The store is unavailable for everybody.
    Outages,
    Errors,
    LateMessages,
    DoubledMessages,
    LostRenewals,
    ClockJumps,
    SlowHandlers,
    HangingHandlers,
    PanickingHandlers,
    /// Handlers that kill their process.
    Poison,
    AtMostOnce,
    Keys,
    Webhooks,
    Schedules,
    Cancels,
    Replays,
    Discards,
    Amends,
    Pauses,
    Pruning,
    StartBy,
    ClaimsAhead,
    /// Queues have limits, and jobs limit keys.
    Limits,
}

const ALL: [Spice; 28] = [
    Spice::Crashes,
    Spice::SameName,
    Spice::Drains,
    Spice::Freezes,
    Spice::Partitions,
    Spice::Outages,
    Spice::Errors,
    Spice::LateMessages,
    Spice::DoubledMessages,
    Spice::LostRenewals,
    Spice::ClockJumps,
    Spice::SlowHandlers,
    Spice::HangingHandlers,
    Spice::PanickingHandlers,
    Spice::Poison,
    Spice::AtMostOnce,
    Spice::Keys,
    Spice::Webhooks,
    Spice::Schedules,
    Spice::Cancels,
    Spice::Replays,
    Spice::Discards,
    Spice::Amends,
    Spice::Pauses,
    Spice::Pruning,
    Spice::StartBy,
    Spice::ClaimsAhead,
    Spice::Limits,
];

/// What may cost a worker its lease. Without any of these, no attempt may be lost, whatever the store does.
const COSTS_LEASES: [Spice; 7] = [
    Spice::Crashes,
    Spice::Freezes,
    Spice::Partitions,
    Spice::LateMessages,
    Spice::LostRenewals,
    Spice::ClockJumps,
    Spice::Poison,
];

/// The options that a seed expands to.
#[derive(Debug, Clone)]
pub struct Swarm {
    pub seed: u64,
    pub on: Vec<Spice>,
    pub nodes: usize,
    pub slots: u32,
    pub lease: Millis,
    pub storm: Millis,
    /// Between two enqueues, on average.
    pub enqueue_every: u64,
    pub rates: FaultRates,
    pub retention: Millis,
    /// How many attempts of a queue, and of a limit key, may run at once.
    pub limits: Option<Limits>,
}

/// Concurrency of queues and limit keys.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    pub queue: usize,
    pub key: usize,
}

impl Swarm {
    pub fn new(seed: u64) -> Self {
        let random = Random::seeded(seed ^ 0x5EED);
        let pick = |n: u64| random.number() % n;
        // Some seeds have few faults and some many; a quarter has none that cost leases.
        let (share, spares_leases) = (20 + pick(60), pick(4) == 0);
        let mut on: Vec<Spice> = ALL.into_iter().filter(|_| pick(100) < share).collect();
        if spares_leases {
            on.retain(|spice| !COSTS_LEASES.contains(spice));
        }
        let mut swarm = Self {
            seed,
            on,
            nodes: 1 + pick(3) as usize,
            slots: 1 + pick(4) as u32,
            lease: Millis::from_secs([10, 30][pick(2) as usize]),
            storm: Millis::from_secs(60 + pick(180)),
            enqueue_every: 2000 + pick(8000),
            rates: FaultRates::default(),
            retention: Millis::from_secs(7 * 86_400),
            limits: None,
        };
        if swarm.has(Spice::Errors) {
            let rate = || pick(80) as u32;
            swarm.rates = FaultRates { unavailable: rate(), unknown_not_done: rate(), unknown_done: rate() };
        }
        if swarm.has(Spice::Limits) {
            swarm.limits = Some(Limits { queue: 2 + pick(3) as usize, key: 1 + pick(2) as usize });
        }
        if swarm.has(Spice::Pruning) {
            swarm.retention = Millis::from_secs(60);
        }
        swarm
    }

    pub fn has(&self, spice: Spice) -> bool {
        self.on.contains(&spice)
    }

    pub fn may_cost_leases(&self) -> bool {
        self.on.iter().any(|spice| COSTS_LEASES.contains(spice))
    }
}
