//! What a database error means to a caller.

use crate::store::StoreError;
use tokio_postgres::error::SqlState;

/// How far a transaction had come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store::postgres) enum Phase {
    /// COMMIT had not been sent: nothing happened.
    Before,
    /// COMMIT had been sent: it may have happened.
    Commit,
    /// A statement that commits by itself had been sent. If the server refused it, nothing happened.
    Alone,
}

/// How often a transaction that did not happen is tried before its caller gets the error.
const TRIES: u32 = 4;

/// An error of the driver with its whole message: its own text is just "db error".
#[derive(Debug)]
struct DriverError(tokio_postgres::Error);

impl std::fmt::Display for DriverError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&message(&self.0))
    }
}

impl std::error::Error for DriverError {}

pub(in crate::store::postgres) fn classify(error: tokio_postgres::Error, phase: Phase) -> StoreError {
    if phase == Phase::Commit {
        return StoreError::unknown(DriverError(error));
    }
    if phase == Phase::Alone && !error.code().is_some_and(is_refused) {
        return StoreError::unknown(DriverError(error));
    }
    match error.code().and_then(|code| classify_code(code.code(), &message(&error))) {
        Some(known) => known,
        None => away(error),
    }
}

/// What a SQLSTATE means, if trying the same again does not help, or the cause can be named.
pub(in crate::store::postgres) fn classify_code(code: &str, message: &str) -> Option<StoreError> {
    let is_missing = [
        SqlState::UNDEFINED_TABLE,
        SqlState::UNDEFINED_COLUMN,
        SqlState::INVALID_SCHEMA_NAME,
        SqlState::UNDEFINED_FUNCTION,
    ]
    .iter()
    .any(|missing| missing.code() == code);
    if is_missing {
        return Some(StoreError::Schema(format!("the schema is not Windlass's, or not up to date: {message}")));
    }
    if code == SqlState::LOCK_NOT_AVAILABLE.code() {
        // Waits are bounded. The cause is usually a transaction that its program forgot to end.
        return Some(StoreError::unavailable(format!(
            "another transaction, perhaps one left open, holds a lock that this needs ({message})"
        )));
    }
    match code.get(..2) {
        // Data exceptions, broken constraints, program limits: the statement will never pass.
        Some("22" | "23" | "54") => Some(StoreError::Invalid(message.to_owned())),
        _ => None,
    }
}

/// Whether the server reports that it did not run a statement: bad data, conflicts, limits, a lock, or the time are up.
/// A server that stops may say so after the commit.
fn is_refused(code: &SqlState) -> bool {
    let is_known =
        matches!(code.code().get(..2), Some("0A" | "22" | "23" | "25" | "26" | "40" | "42" | "53" | "54" | "55"));
    (is_known && *code != SqlState::T_R_STATEMENT_COMPLETION_UNKNOWN) || *code == SqlState::QUERY_CANCELED
}

/// Nothing happened, and trying again may help.
pub(in crate::store::postgres) fn away(error: tokio_postgres::Error) -> StoreError {
    StoreError::unavailable(DriverError(error))
}

/// The error of the first connection: what no waiting will change is invalid.
pub(in crate::store::postgres) fn for_good(error: StoreError) -> StoreError {
    let StoreError::Unavailable(cause) = &error else { return error };
    let Some(DriverError(driver)) = cause.downcast_ref() else { return error };
    let wrong = [
        SqlState::INVALID_PASSWORD,
        SqlState::INVALID_AUTHORIZATION_SPECIFICATION,
        SqlState::INVALID_CATALOG_NAME,
        SqlState::INSUFFICIENT_PRIVILEGE,
    ];
    match driver.code() {
        Some(code) if wrong.contains(code) => StoreError::Invalid(format!("Postgres refuses: {}", message(driver))),
        _ => error,
    }
}

/// Whether a server that works refused a connection: the password is wrong, there are too many connections. A server
/// that starts or stops refuses them too, and says so by its code.
pub(in crate::store::postgres) fn is_refusal(error: &StoreError) -> bool {
    let StoreError::Unavailable(cause) = error else { return false };
    let code = cause.downcast_ref().and_then(|DriverError(driver)| driver.code());
    code.is_some_and(|code| {
        ![SqlState::CANNOT_CONNECT_NOW, SqlState::ADMIN_SHUTDOWN, SqlState::CRASH_SHUTDOWN].contains(code)
    })
}

/// The error of a statement before COMMIT.
pub(in crate::store::postgres) fn before(error: tokio_postgres::Error) -> StoreError {
    classify(error, Phase::Before)
}

pub(in crate::store::postgres) fn message(error: &tokio_postgres::Error) -> String {
    if let Some(error) = error.as_db_error() {
        return error.message().to_owned();
    }
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

/// What a transaction had read without a lock was changed before it wrote: it must decide again.
#[derive(Debug, thiserror::Error)]
#[error("what the transaction had read changed meanwhile")]
struct Changed;

pub(in crate::store::postgres) fn changed() -> StoreError {
    StoreError::unavailable(Changed)
}

/// Whether the same transaction may succeed on another connection, or the second time.
fn is_passing(error: &StoreError) -> bool {
    let StoreError::Unavailable(cause) = error else {
        return false;
    };
    if cause.is::<Changed>() {
        return true;
    }
    if let Some(DriverError(error)) = cause.downcast_ref() {
        return error.code().map_or_else(|| error.is_closed(), |code| is_passing_code(code.code()));
    }
    // Without a code the connection of the caller's pool was lost.
    let callers = cause.downcast_ref::<crate::transaction::driver::DriverError>();
    callers.is_some_and(|error| error.code.as_deref().is_none_or(is_passing_code))
}

fn is_passing_code(code: &str) -> bool {
    [
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::T_R_DEADLOCK_DETECTED,
        SqlState::ADMIN_SHUTDOWN,
        // A prepared statement whose table was migrated, or whose pooler forgot it.
        SqlState::FEATURE_NOT_SUPPORTED,
        SqlState::INVALID_SQL_STATEMENT_NAME,
        SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
    ]
    .iter()
    .any(|passing| passing.code() == code)
}

/// Runs a transaction, and runs it again if nothing happened and that may help.
pub(in crate::store::postgres) async fn again<T, F>(mut once: impl FnMut() -> F) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, StoreError>>,
{
    let mut tries = 1;
    loop {
        match once().await {
            Err(error) if tries < TRIES && is_passing(&error) => tries += 1,
            outcome => return outcome,
        }
    }
}
