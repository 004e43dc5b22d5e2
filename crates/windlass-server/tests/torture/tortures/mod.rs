//! The stress scenarios, one file each.

mod disk;
mod failover;
mod herd;
mod kills;
mod limits;
mod operators;
mod outage;
mod patroni;
mod power;
mod remount;
mod rolling;
mod slow_sync;
