//! Faults: what a SQLite error means to a caller.

use crate::store::StoreError;
use rusqlite::ErrorCode;
use std::sync::OnceLock;

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        match code(&error) {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                away("the database is locked by another process", &error)
            }
            Some(ErrorCode::DiskFull) => away("the disk is full", &error),
            Some(ErrorCode::ReadOnly) => away("the database file is read-only", &error),
            Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied | ErrorCode::AuthorizationForStatementDenied) => {
                away("the database file cannot be opened", &error)
            }
            Some(ErrorCode::SystemIoFailure | ErrorCode::FileLockingProtocolFailed | ErrorCode::NoLargeFileSupport) => {
                away("the disk reports an error", &error)
            }
            Some(ErrorCode::OutOfMemory | ErrorCode::OperationAborted | ErrorCode::OperationInterrupted) => {
                away("SQLite stopped the statement", &error)
            }
            Some(ErrorCode::ConstraintViolation | ErrorCode::TooBig) => Self::Invalid(error.to_string()),
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::corrupt(FILE, error.to_string()),
            Some(ErrorCode::SchemaChanged) => Self::Schema(error.to_string()),
            Some(_) | None => Self::corrupt("the database", error.to_string()),
        }
    }
}

fn away(what: &str, error: &rusqlite::Error) -> StoreError {
    StoreError::unavailable(format!("{what} ({error})"))
}

fn code(error: &rusqlite::Error) -> Option<ErrorCode> {
    error.sqlite_error_code()
}

/// The row of an error about the file itself.
const FILE: &str = "the database file";

/// Damage of the file that this process has met. It stays until the process ends: a file does not heal, and what was
/// read once may be in a cache.
#[derive(Debug, Default)]
pub(in crate::store::sqlite) struct Damage(OnceLock<String>);

impl Damage {
    /// Takes note of damage, if that is why a call failed.
    pub(in crate::store::sqlite) fn noted<T>(&self, result: Result<T, StoreError>) -> Result<T, StoreError> {
        if let Err(StoreError::Corrupt { row, rule }) = &result
            && row == FILE
            && self.0.set(rule.clone()).is_ok()
        {
            tracing::error!(rule, "the database file is damaged: stop, check the disk, and restore a backup");
        }
        result
    }

    /// The error that a damaged file is not healthy.
    pub(in crate::store::sqlite) fn as_error(&self) -> Option<StoreError> {
        self.0.get().map(|rule| StoreError::corrupt(FILE, rule.clone()))
    }
}

/// The database refused this row but accepts others.
pub(in crate::store::sqlite) fn is_refusal(error: &rusqlite::Error) -> bool {
    matches!(code(error), Some(ErrorCode::ConstraintViolation | ErrorCode::TooBig))
}

pub(in crate::store::sqlite) fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(code(error), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

/// Whether a failed COMMIT may have taken effect. A full disk, a lock or a read-only file stops it before its commit
/// record is complete. After any other error the outcome is unknown.
pub(in crate::store::sqlite) fn leaves_doubt(error: &rusqlite::Error) -> bool {
    !matches!(
        code(error),
        Some(
            ErrorCode::DiskFull
                | ErrorCode::ReadOnly
                | ErrorCode::DatabaseBusy
                | ErrorCode::DatabaseLocked
                | ErrorCode::ConstraintViolation
        )
    )
}

/// Whether a connection may be used again after this error.
pub(in crate::store::sqlite) fn spoils_connection(error: &StoreError) -> bool {
    match error {
        StoreError::Unavailable(_) | StoreError::Unknown(_) | StoreError::Corrupt { .. } => true,
        StoreError::Sealed(_) | StoreError::Schema(_) | StoreError::Invalid(_) => false,
    }
}

/// A copy of the error, for every command in the same transaction.
pub(in crate::store::sqlite) fn again(error: &StoreError) -> StoreError {
    match error {
        StoreError::Unavailable(cause) => StoreError::unavailable(cause.to_string()),
        StoreError::Unknown(cause) => StoreError::unknown(cause.to_string()),
        StoreError::Corrupt { row, rule } => StoreError::corrupt(row.clone(), rule.clone()),
        StoreError::Sealed(text) => StoreError::Sealed(text.clone()),
        StoreError::Schema(text) => StoreError::Schema(text.clone()),
        StoreError::Invalid(text) => StoreError::Invalid(text.clone()),
    }
}
