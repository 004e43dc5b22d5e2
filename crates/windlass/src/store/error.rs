//! What can go wrong between Windlass and its store: one variant per thing a caller can do about it.

type BoxError = Box<dyn std::error::Error + Send + Sync>;

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Nothing happened: the database is away, locked, full or read-only. Back off and try again.
    #[error("the store cannot be used now: {0}")]
    Unavailable(#[source] BoxError),
    /// The commit may or may not have happened. Ask what happened; never assume, never repeat blindly.
    #[error("the commit's outcome is unknown: {0}")]
    Unknown(#[source] BoxError),
    /// The store holds something it cannot hold. Stop; never guess.
    #[error("{row} breaks the rule: {rule}")]
    Corrupt { row: String, rule: String },
    /// The schema is not one this version can work with. Upgrade, or migrate.
    #[error("{0}")]
    Schema(String),
    /// The caller asked for something that cannot be: nothing happened.
    #[error("{0}")]
    Invalid(String),
}

impl StoreError {
    pub fn unavailable(cause: impl Into<BoxError>) -> Self {
        Self::Unavailable(cause.into())
    }

    pub fn unknown(cause: impl Into<BoxError>) -> Self {
        Self::Unknown(cause.into())
    }

    pub fn corrupt(row: impl Into<String>, rule: impl Into<String>) -> Self {
        Self::Corrupt { row: row.into(), rule: rule.into() }
    }
}
