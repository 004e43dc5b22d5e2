//! Tidiness that a reader would otherwise have to watch over: documents name what exists, retired names stay retired,
//! files and comments keep to their sizes, planted mutants still apply.
#![allow(clippy::unwrap_used)] // All of this is tests.

mod files;
mod map;
mod mutants;
mod sizes;
mod words;
