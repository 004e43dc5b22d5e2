//! The stress scenarios, one file each.

mod disk;
mod herd;
mod kills;
mod operators;
mod outage;
mod rolling;
