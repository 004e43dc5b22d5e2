//! Where a command works: a server over HTTP, or a store opened here.

pub(super) mod api;
pub(super) mod store;
pub(super) mod target;
pub(super) mod wire;
