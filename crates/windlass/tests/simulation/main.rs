//! The simulation: nodes with the library's own transitions and stores, in virtual time, under everything a seed
//! switches on. `WINDLASS_SEED=n` replays one seed and prints what happened; `WINDLASS_SEEDS=100000` runs more of them.

#![allow(clippy::unwrap_used)] // A test that cannot go on has failed.
#![allow(clippy::wildcard_enum_match_arm)] // Spices and events grow with every idea; most places care for a few.
#![allow(clippy::large_enum_variant)] // Events are moved once; a box each would only make them slower.

mod bugs;
mod model;
mod pass_on;
mod runs;
mod watch;
