//! Router-level tests on the reference store, with a clock that moves only when a test advances it.

mod alerts;
mod auth;
mod bad_input;
mod canary;
mod dashboard;
mod dead;
mod fuzz;
mod holds;
mod jobs;
mod leases;
mod metrics;
mod outage;
mod prometheus;
mod queues;
mod quotas;
mod reference;
mod schedules;
mod secrets;
mod shares;
mod traces;
mod work_scope;
mod world;
