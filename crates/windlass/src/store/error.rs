//! Errors between Windlass and its store: one variant for each thing a caller can do about it.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

type BoxError = Box<dyn Error + Send + Sync>;
type Cause = Arc<dyn Error + Send + Sync>;

/// Why a call to the store failed. Its text names the cause. [`Error::source`] continues from there, so that printing
/// the whole chain repeats nothing.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum StoreError {
    /// Nothing happened: the database is unreachable, locked, full or read-only. Back off and try again.
    Unavailable(Cause),
    /// The commit may or may not have happened. Ask what happened; never assume, never repeat blindly.
    Unknown(Cause),
    /// The store contains invalid data. Stop; never guess.
    Corrupt {
        /// Which row.
        row: String,
        /// What it should look like.
        rule: String,
    },
    /// Nothing happened: a row is sealed with a key that this node's key ring lacks. Give the node the key.
    Sealed(String),
    /// This version cannot use the schema. Upgrade, or migrate.
    Schema(String),
    /// The caller made an invalid request: nothing happened.
    Invalid(String),
}

impl StoreError {
    /// Nothing happened, because of `cause`.
    pub fn unavailable(cause: impl Into<BoxError>) -> Self {
        Self::Unavailable(cause.into().into())
    }

    /// What happened is unknown, because of `cause`.
    pub fn unknown(cause: impl Into<BoxError>) -> Self {
        Self::Unknown(cause.into().into())
    }

    /// Whether the store could not be reached, or its answer was lost.
    #[must_use]
    pub const fn is_outage(&self) -> bool {
        matches!(self, Self::Unavailable(_) | Self::Unknown(_))
    }

    /// A row with invalid data.
    pub fn corrupt(row: impl Into<String>, rule: impl Into<String>) -> Self {
        Self::Corrupt { row: row.into(), rule: rule.into() }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unavailable(cause) => write!(f, "the store cannot be used now: {cause}"),
            Self::Unknown(cause) => write!(f, "the commit's outcome is unknown: {cause}"),
            Self::Corrupt { row, rule } => write!(f, "{row} breaks the rule: {rule}"),
            Self::Sealed(text) | Self::Schema(text) | Self::Invalid(text) => f.write_str(text),
        }
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Unavailable(cause) | Self::Unknown(cause) => cause.source(),
            Self::Corrupt { .. } | Self::Sealed(_) | Self::Schema(_) | Self::Invalid(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_of_causes_names_each_once() {
        #[derive(Debug, thiserror::Error)]
        #[error("cannot connect")]
        struct Connect(#[source] std::io::Error);

        let error = StoreError::unavailable(Connect(std::io::Error::other("connection refused")));
        let mut chain = vec![error.to_string()];
        let mut next = error.source();
        while let Some(cause) = next {
            chain.push(cause.to_string());
            next = cause.source();
        }
        assert_eq!(chain, ["the store cannot be used now: cannot connect", "connection refused"]);
    }
}
