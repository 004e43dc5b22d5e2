//! One run: a fleet under load, faults, and the checks at the end.

use crate::checks::check::{Allowed, violations};
use crate::checks::integrity;
use crate::checks::stored::Stored;
use crate::setup::fleet::Fleet;
use crate::setup::place::Place;
use crate::tools::{progress, seed};
use crate::work::load::{Load, Shared};
use crate::work::worker::Habit;
use std::sync::Arc;
use std::time::Duration;
use windlass::Random;
use windlass::low_level::clock::Stopwatch;

/// The most violations shown.
const SHOWN: usize = 10;

#[derive(Debug)]
pub struct World {
    name: String,
    seed: u64,
    watch: Stopwatch,
    pub random: Random,
    pub shared: Arc<Shared>,
    pub load: Load,
}

impl World {
    /// Starts the nodes and the load.
    pub fn start(what: &str, place: Place, nodes: usize, habit: Habit) -> Self {
        let seed = seed();
        let name = format!("{what} on {} ({nodes} nodes)", place.name());
        println!("{name}: repeat with WINDLASS_TEST_SEED={seed}");
        let (watch, random) = (Stopwatch::start(), Random::seeded(seed));
        let shared = Shared::new(Fleet::start(place, nodes), habit);
        let load = Load::start(&shared, seed);
        Self { name, seed, watch, random, shared, load }
    }

    pub fn fleet(&self) -> &Fleet {
        &self.shared.fleet
    }

    /// The faults are over: all jobs must finish, and all promises must hold.
    pub fn finish(self, faults: &str, allowed: Allowed) {
        let Self { name, seed, watch, random, shared, load } = self;
        load.drain(&random);
        let place = &shared.fleet.place;
        progress("leases are gone", || integrity::leases(place));
        shared.fleet.stop();
        let (record, stored) = (shared.history.record(), Stored::read(place));
        let mut found = violations(&record, &stored, allowed);
        found.extend(integrity::faults(place));
        let once = stored.jobs.values().filter(|row| row.tag.is_some_and(|tag| record.sent[&tag].at_most_once)).count();
        println!(
            "{name}: {faults}, {} acknowledged jobs ({} stored, {once} at most once), {} starts seen, {} leases, {} attempts on record, \
             {} webhooks, {} results refused, {} jobs of late workers, {}{} violations; {:.0} s, seed {seed}",
            record.acknowledged.len(),
            stored.jobs.len(),
            record.start_count(),
            record.leases.count(),
            stored.ledger.values().map(Vec::len).sum::<usize>(),
            record.hooks.len(),
            record.stale,
            record.late.len(),
            recovery(&shared.fleet.recoveries()),
            found.len(),
            watch.elapsed().as_secs_f64(),
        );
        assert!(!record.acknowledged.is_empty(), "there was no load");
        let shown = found.iter().take(SHOWN).cloned().collect::<Vec<_>>().join("\n");
        assert!(found.is_empty(), "{name}, seed {seed}: {} promises broken:\n{shown}", found.len());
    }
}

fn recovery(sorted: &[Duration]) -> String {
    let Some(last) = sorted.last() else { return String::new() };
    let middle = sorted[sorted.len() / 2];
    format!("work resumed {} ms after a kill (median; at most {} ms), ", middle.as_millis(), last.as_millis())
}
