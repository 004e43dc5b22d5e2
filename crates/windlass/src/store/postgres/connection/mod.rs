//! How the store reaches the server: connections, statements, schema.

pub(super) mod connect;
pub(super) mod contact;
pub(super) mod fault;
pub(super) mod gather;
pub(super) mod health;
mod hosts;
pub(super) mod listen;
pub(super) mod migrate;
pub(super) mod pool;
pub(super) mod pooler;
pub(super) mod through;
#[cfg(not(feature = "tls"))]
#[path = "no_tls.rs"]
mod tls;
#[cfg(feature = "tls")]
mod tls;
