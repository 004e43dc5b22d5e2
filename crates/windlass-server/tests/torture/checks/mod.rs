//! What was acknowledged and started, as recorded outside, compared with what the store holds in the end.

pub mod check;
pub mod checked_operators;
pub mod history;
pub mod integrity;
pub mod stored;
