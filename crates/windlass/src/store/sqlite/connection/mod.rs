//! How the store reaches the file: the writer, readers, statements, schema.

pub(super) mod checkpoint;
pub(super) mod connect;
pub(super) mod fault;
pub(super) mod file_time;
pub(super) mod lock;
pub(super) mod migrate;
pub(super) mod pace;
pub(super) mod readers;
pub(super) mod sql;
pub(super) mod tx;
mod users;
pub(super) mod watch;
pub(super) mod writer;
