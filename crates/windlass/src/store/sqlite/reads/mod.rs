//! Reads of jobs, queues and settings.

pub(super) mod columns;
mod gates;
pub(super) mod names;
pub(super) mod read;
pub(super) mod rows;
pub(super) mod series;
pub(super) mod settings;
