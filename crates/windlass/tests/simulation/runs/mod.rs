//! The tests: seeds on the model, on the real stores and with the real worker.

pub mod real_worker;
pub mod seeds;
