//! Worker locks: a lock on a file next to the database, named after the worker. The operating system releases it when
//! the process ends, for whatever reason.

use crate::store::{StoreError, WorkerId, WorkerLock};
use sha2::{Digest, Sha256};
use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};

/// Takes the lock, or `None` if another process holds it.
pub(in crate::store::sqlite) fn take(database: &Path, worker: &WorkerId) -> Result<Option<WorkerLock>, StoreError> {
    let path = lock_file(database, worker);
    let cannot = |error: std::io::Error| StoreError::unavailable(format!("cannot lock {}: {error}", path.display()));
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file: File = options.open(&path).map_err(cannot)?;
    match file.try_lock() {
        // The file stays after the lock is released: removing it could remove the file of the next holder.
        Ok(()) => Ok(Some(Box::new(file))),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(cannot(error)),
    }
}

fn lock_file(database: &Path, worker: &WorkerId) -> PathBuf {
    let hash: String = Sha256::digest(worker.0.as_bytes()).iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let mut name = database.as_os_str().to_owned();
    name.push(format!("-worker-{hash}.lock"));
    name.into()
}
