//! Terminal output: tables, plots, bars, words.

pub(super) mod ask;
pub(super) mod grid;
pub(super) mod input;
pub(super) mod plot;
pub(super) mod progress;
pub(super) mod screen;
pub(super) mod words;
