//! Checks that readers would otherwise do by hand: documents name what exists, retired names stay retired, files and
//! comments keep their size limits, mutants still apply.
#![allow(clippy::unwrap_used)] // All of this is tests.

mod examples;
mod files;
mod map;
mod mutants;
mod sizes;
mod words;
