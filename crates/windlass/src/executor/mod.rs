//! Executors: what an attempt does. `handlers` runs in this process, `http` calls a URL.

#[cfg(feature = "http")]
pub mod http;
