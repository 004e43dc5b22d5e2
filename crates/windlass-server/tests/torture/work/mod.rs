//! The work it must do meanwhile: producers, remote workers, receivers of webhooks.

pub mod load;
pub mod producer;
pub mod receiver;
pub mod spec;
pub mod worker;
