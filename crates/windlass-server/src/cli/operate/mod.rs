//! Commands that run, check and maintain a node.

pub(super) mod alerts;
pub(super) mod backup;
pub(super) mod bench;
pub(super) mod check;
pub(super) mod completions;
pub(super) mod config;
pub(super) mod doctor;
pub(super) mod init;
pub(super) mod keys;
pub(super) mod man;
pub(super) mod migrate;
pub(super) mod node;
pub(super) mod serve;
pub(super) mod token;
pub(super) mod workers;
