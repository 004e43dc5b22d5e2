//! Reads requests: bodies, fields, queries.

pub(super) mod body;
pub(super) mod draft;
pub(super) mod fields;
pub(super) mod query;
