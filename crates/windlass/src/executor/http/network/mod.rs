//! Reaching a target: addresses, connections, slots.

pub(super) mod address;
pub(super) mod connect;
pub(super) mod dial;
pub(super) mod resolve;
pub(super) mod slots;
pub(super) mod tls;
pub(super) mod wire;
