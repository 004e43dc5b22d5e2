//! What is SQLite's alone; everything else is the conformance suite's.
