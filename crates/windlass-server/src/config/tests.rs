//! Layers, unknown keys, sources.
