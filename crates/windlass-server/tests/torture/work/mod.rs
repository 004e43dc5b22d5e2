//! The load during the faults: producers, remote workers, receivers of webhooks.

pub mod load;
pub mod producer;
pub mod receiver;
pub mod spec;
pub mod worker;
