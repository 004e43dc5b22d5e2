//! Router-level tests on the reference store, with a clock that stands still until it is turned.

mod auth;
mod bad_input;
mod canary;
mod dead;
mod jobs;
mod leases;
mod metrics;
mod prometheus;
mod queues;
mod reference;
mod schedules;
mod work_scope;
mod world;
