//! A plan of faults drawn from a seed: how often calls fail, and outages in which all of them fail.

use super::faulty::{Fault, FaultyStore};
use crate::random::Random;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How often calls fail, in thousandths of all calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FaultRates {
    /// Refused: the call was not done.
    pub unavailable: u32,
    /// Not done, and the caller gets an unknown outcome.
    pub unknown_not_done: u32,
    /// Done, and the caller gets an unknown outcome.
    pub unknown_done: u32,
}

/// Faults that a seed chooses. The same seed and the same calls give the same faults.
#[derive(Debug)]
pub struct FaultPlan {
    random: Random,
    state: Mutex<PlanState>,
}

#[derive(Debug)]
struct PlanState {
    rates: FaultRates,
    is_out: bool,
    injected: u64,
}

impl FaultPlan {
    /// Creates a plan.
    #[must_use]
    pub fn new(random: Random, rates: FaultRates) -> Arc<Self> {
        Arc::new(Self { random, state: Mutex::new(PlanState { rates, is_out: false, injected: 0 }) })
    }

    /// A store that follows this plan.
    #[must_use]
    pub fn over(self: &Arc<Self>, inner: Arc<dyn crate::store::Store>) -> Arc<FaultyStore> {
        let store = FaultyStore::new(inner);
        let plan = self.clone();
        store.choose(move |_| plan.draw());
        store
    }

    /// From now on every call is refused.
    pub fn begin_outage(&self) {
        self.state().is_out = true;
    }

    /// From now on calls succeed again.
    pub fn end_outage(&self) {
        self.state().is_out = false;
    }

    /// From now on no call fails.
    pub fn calm(&self) {
        let mut state = self.state();
        (state.rates, state.is_out) = (FaultRates::default(), false);
    }

    /// Faults injected so far.
    #[must_use]
    pub fn injected(&self) -> u64 {
        self.state().injected
    }

    /// What happens to the next call.
    #[must_use]
    pub fn draw(&self) -> Fault {
        let mut state = self.state();
        let fault = if state.is_out { Fault::Unavailable } else { pick(state.rates, &self.random) };
        state.injected += u64::from(fault != Fault::None);
        fault
    }

    fn state(&self) -> MutexGuard<'_, PlanState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn pick(rates: FaultRates, random: &Random) -> Fault {
    let FaultRates { unavailable, unknown_not_done, unknown_done } = rates;
    if rates == FaultRates::default() {
        return Fault::None;
    }
    let drawn = (random.number() % 1000) as u32;
    if drawn < unavailable {
        Fault::Unavailable
    } else if drawn < unavailable + unknown_not_done {
        Fault::UnknownNotDone
    } else if drawn < unavailable + unknown_not_done + unknown_done {
        Fault::UnknownDone
    } else {
        Fault::None
    }
}
