//! Transactions on SQLite: Windlass's statements run on diesel's own connection.
//!
//! Diesel does not give out the handle of its connection. So [`install`] makes SQLite add a function to every
//! connection that is opened afterwards, which reports the handle of the connection that calls it to this module.

use crate::Diesel;
use diesel::{RunQueryDsl as _, SqliteConnection};
use rusqlite::functions::FunctionFlags;
use rusqlite::{Connection, ffi};
use std::cell::Cell;
use std::ffi::{c_char, c_int};
use std::ptr;
use std::sync::Once;
use windlass::{Attempt, CompleteIn, Enqueue, EnqueueIn, JobId, StoreError, TransactionError};

const FUNCTION: &str = "windlass_handle";

thread_local! {
    /// The connection that called the function last. Diesel calls it on the thread that asked.
    static HANDLE: Cell<*mut ffi::sqlite3> = const { Cell::new(ptr::null_mut()) };
}

/// Prepares connections of diesel for `enqueue_in` and `complete_in`. Call it once, before the first connection is
/// opened; repeating it is harmless.
#[allow(clippy::missing_transmute_annotations, reason = "the type differs between versions of rusqlite")]
pub fn install() {
    static ONCE: Once = Once::new();
    // SAFETY: `add_function` has the signature that SQLite calls automatic extensions with.
    ONCE.call_once(|| unsafe {
        let entry: unsafe extern "C" fn(
            *mut ffi::sqlite3,
            *mut *mut c_char,
            *const ffi::sqlite3_api_routines,
        ) -> c_int = add_function;
        ffi::sqlite3_auto_extension(Some(std::mem::transmute::<*const (), _>(entry as *const ())));
    });
}

/// Called by SQLite for every new connection.
unsafe extern "C" fn add_function(
    handle: *mut ffi::sqlite3,
    _message: *mut *mut c_char,
    _routines: *const ffi::sqlite3_api_routines,
) -> c_int {
    // SAFETY: SQLite passes a valid handle; the borrowed connection does not close it.
    let Ok(connection) = (unsafe { Connection::from_handle(handle) }) else { return ffi::SQLITE_ERROR };
    // Views and triggers cannot call it.
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DIRECTONLY;
    let added = connection.create_scalar_function(FUNCTION, 0, flags, |context| {
        // SAFETY: the connection is asked for its handle only.
        HANDLE.set(unsafe { context.get_connection()?.handle() });
        Ok(0_i64)
    });
    if added.is_ok() { ffi::SQLITE_OK } else { ffi::SQLITE_ERROR }
}

/// Runs `work` on diesel's own connection.
fn on_connection<T>(
    connection: &mut SqliteConnection,
    work: impl FnOnce(&Connection) -> Result<T, TransactionError>,
) -> Result<T, TransactionError> {
    HANDLE.set(ptr::null_mut());
    let asked = diesel::sql_query(format!("SELECT {FUNCTION}()")).execute(connection);
    let handle = HANDLE.replace(ptr::null_mut());
    if handle.is_null() {
        let cause = asked.err().map_or_else(String::new, |error| format!(" ({error})"));
        return Err(StoreError::unavailable(format!(
            "call `windlass_diesel::sqlite::install()` before the connection is opened{cause}"
        ))
        .into());
    }
    // SAFETY: the handle is that of `connection`, which is borrowed exclusively until this returns. The borrowed
    // `Connection` finalizes its statements when it is dropped, before that, and does not close the handle.
    let borrowed = unsafe { Connection::from_handle(handle) };
    work(&borrowed.map_err(StoreError::unavailable)?)
}

impl<'t> EnqueueIn<Diesel> for &'t mut SqliteConnection {
    type Stored<'w>
        = Result<JobId, TransactionError>
    where
        't: 'w;

    fn store<'w>(self, job: Enqueue<'w>) -> Self::Stored<'w>
    where
        Self: 'w,
    {
        on_connection(self, |connection| job.enqueue_in(connection))
    }
}

impl<'t> CompleteIn<Diesel> for &'t mut SqliteConnection {
    type Completed<'w>
        = Result<(), TransactionError>
    where
        't: 'w;

    fn complete<'w>(self, attempt: &'w Attempt) -> Self::Completed<'w>
    where
        Self: 'w,
    {
        on_connection(self, |connection| attempt.complete_in(connection))
    }
}
