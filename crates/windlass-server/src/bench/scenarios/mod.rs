//! What is measured, one file per scenario or group of them.

pub(super) mod calls;
pub(super) mod cycle;
pub(super) mod enqueue;
pub(super) mod growth;
pub(super) mod horizon;
pub(super) mod http;
pub(super) mod limits;
pub(super) mod pages;
pub(super) mod pickup;
pub(super) mod queues;
pub(super) mod work;
