//! Router-level tests on the reference store.
