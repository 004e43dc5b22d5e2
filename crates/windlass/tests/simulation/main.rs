//! The simulation: nodes with the library's own transitions and stores, in virtual time, under everything a seed
//! switches on. `WINDLASS_SEED=n` replays one seed and prints what happened; `WINDLASS_SEEDS=100000` runs more of them.

#![allow(clippy::unwrap_used)] // A test may panic.
#![allow(clippy::wildcard_enum_match_arm)] // These enums grow often, and most places need only a few variants.
#![allow(clippy::large_enum_variant)] // Events are moved once; boxing them would only make them slower.

mod bugs;
mod model;
mod pass_on;
mod runs;
mod watch;
