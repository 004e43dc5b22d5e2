//! Commands that move data in and out: `export` and `import`.

pub(super) mod export;
mod foreign;
pub(super) mod import;
mod lines;
mod take_over;
