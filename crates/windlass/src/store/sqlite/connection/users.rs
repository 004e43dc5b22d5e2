//! The users of a file: each holds a shared lock on a file next to the database, so that a process can tell whether it
//! is alone. The operating system releases the lock when the process ends. The last user removes the file.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};

/// How often to start over because the last user has just removed the file.
const TRIES: usize = 100;

#[derive(Debug)]
pub(in crate::store::sqlite) struct User {
    path: PathBuf,
    file: File,
}

impl User {
    /// Joins, and says whether nobody else is there. `None` if the file cannot be locked: then nothing is known.
    pub(in crate::store::sqlite) fn enter(database: &Path) -> Option<(Self, bool)> {
        let mut path = database.as_os_str().to_owned();
        path.push("-users.lock");
        let path = PathBuf::from(path);
        for _ in 0..TRIES {
            let file = open(&path)?;
            let is_alone = file.try_lock().is_ok();
            if !is_alone {
                file.lock_shared().ok()?;
            }
            if is_at(&file, &path) {
                return Some((Self { path, file }, is_alone));
            }
        }
        None
    }

    /// Lets others join.
    pub(in crate::store::sqlite) fn share(mut self) -> Option<Self> {
        for _ in 0..TRIES {
            self.file.lock_shared().ok()?;
            if is_at(&self.file, &self.path) {
                return Some(self);
            }
            self.file = open(&self.path)?;
        }
        None
    }
}

impl Drop for User {
    fn drop(&mut self) {
        // Nobody else holds a lock, and whoever opens the file now will find that it is gone.
        if cfg!(unix) && self.file.try_lock().is_ok() && is_at(&self.file, &self.path) {
            // A file that stays harms nobody.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn open(path: &Path) -> Option<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).ok()
}

/// Whether the open file is still the one at its path.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let place = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
    match (file.metadata(), std::fs::metadata(path)) {
        (Ok(ours), Ok(theirs)) => place(ours) == place(theirs),
        _ => false,
    }
}

#[cfg(not(unix))]
fn is_at(_: &File, _: &Path) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_is_alone_the_second_is_not_and_the_last_removes_the_file() {
        let home = tempfile::tempdir().unwrap();
        let database = home.path().join("jobs.db");
        let (first, is_alone) = User::enter(&database).unwrap();
        assert!(is_alone);
        let first = first.share().unwrap();
        let (second, is_alone) = User::enter(&database).unwrap();
        assert!(!is_alone);
        drop(first);
        assert!(home.path().join("jobs.db-users.lock").exists());
        drop(second);
        assert!(!home.path().join("jobs.db-users.lock").exists());
        assert!(User::enter(&database).unwrap().1);
    }
}
