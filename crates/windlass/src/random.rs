//! The only source of random numbers: rolls for jitter, ids for leases. Tests seed it.
#![allow(clippy::disallowed_methods)] // The lint points to this file.

use rand::rngs::StdRng;
use rand::{Rng, RngExt, SeedableRng};
use std::sync::{Arc, Mutex, PoisonError};
use windlass_core::Roll;

/// Draws random numbers.
#[derive(Clone, Debug)]
pub struct Random(Option<Arc<Mutex<StdRng>>>);

impl Random {
    /// Seeded by the operating system; each thread draws from its own generator.
    #[must_use]
    pub fn system() -> Self {
        Self(None)
    }

    /// The same numbers for the same seed.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        Self(Some(Arc::new(Mutex::new(StdRng::seed_from_u64(seed)))))
    }

    /// Draws the number that a decision needs.
    #[must_use]
    pub fn roll(&self) -> Roll {
        Roll(self.number())
    }

    /// A uniformly distributed `u64`.
    #[must_use]
    pub fn number(&self) -> u64 {
        match &self.0 {
            None => rand::random(),
            Some(seeded) => seeded.lock().unwrap_or_else(PoisonError::into_inner).next_u64(),
        }
    }

    /// Random bytes for secrets and tokens.
    #[must_use]
    pub fn bytes<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        match &self.0 {
            None => rand::rng().fill(&mut bytes[..]),
            Some(seeded) => seeded.lock().unwrap_or_else(PoisonError::into_inner).fill_bytes(&mut bytes),
        }
        bytes
    }
}
