//! Sabotage: bugs planted on purpose, one at a time, to see that the tests find them. Only with the feature of that name,
//! and only the bug that WINDLASS_SABOTAGE names; `scripts/sabotage` goes through the list. Without the feature this is
//! the constant `false`.

/// Whether this bug is to be committed.
#[cfg(feature = "sabotage")]
pub(crate) fn sabotaged(bug: &str) -> bool {
    static CHOSEN: std::sync::LazyLock<Option<String>> =
        std::sync::LazyLock::new(|| std::env::var("WINDLASS_SABOTAGE").ok());
    CHOSEN.as_deref() == Some(bug)
}

#[cfg(not(feature = "sabotage"))]
pub(crate) const fn sabotaged(_bug: &str) -> bool {
    false
}
