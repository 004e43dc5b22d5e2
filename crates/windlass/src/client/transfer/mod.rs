//! Moving everything to another store, as JSON lines: jobs of every state with their history, schedules, settings,
//! queues, tokens and holds. An export is a sequence of texts to write, an import a sequence of lines to read, so
//! callers choose where the lines go, and neither holds more than a page of jobs in memory.

mod export;
mod fields;
mod import;
mod job;
mod record;

pub use export::{Clear, Export, ExportError};
pub use import::{ImportError, ImportReport, Importing};

use crate::client::inner::Backend;
use crate::client::windlass::Windlass;
use crate::store::StoreError;

/// The version of the format. A program refuses files of later versions.
const VERSION: u64 = 1;

/// How many records of each kind were moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Moved {
    /// Queues, with whether they are paused.
    pub queues: u64,
    /// Settings that operators made.
    pub settings: u64,
    /// Tokens of the API.
    pub tokens: u64,
    /// Holds.
    pub holds: u64,
    /// Schedules.
    pub schedules: u64,
    /// Jobs.
    pub jobs: u64,
    /// Attempts of these jobs.
    pub attempts: u64,
}

/// Moves everything to another store. Made by [`Windlass::transfer`].
#[derive(Debug, Clone, Copy)]
pub struct Transfers<'a> {
    windlass: &'a Windlass,
}

impl Windlass {
    /// Moves everything to another store: jobs with their history, schedules, settings, tokens. Ids are kept. Also
    /// copies a SQLite file.
    ///
    /// ```
    /// use windlass::Windlass;
    /// use windlass::client::Clear;
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let old = Windlass::open("memory:").await?;
    /// let id = old.enqueue_kind("email", &serde_json::json!({ "to": "ann" })).await?;
    ///
    /// let new = Windlass::open("memory:").await?;
    /// let mut export = old.transfer().export(Clear::Refuse).await?;
    /// let mut import = new.transfer().import();
    /// while let Some(lines) = export.next().await? {
    ///     for line in lines.lines() {
    ///         import.line(line).await?;
    ///     }
    /// }
    /// assert_eq!(import.finish().await?.moved.jobs, 1);
    /// assert!(new.jobs().get(id).await?.is_some());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    #[must_use]
    pub fn transfer(&self) -> Transfers<'_> {
        Transfers { windlass: self }
    }
}

impl<'a> Transfers<'a> {
    /// Begins an export. `clear` says whether sealed values may be written in clear text.
    ///
    /// # Errors
    /// The values are sealed and `clear` refuses, or the store cannot be read.
    pub async fn export(self, clear: Clear) -> Result<Export<'a>, ExportError> {
        Export::begin(self.windlass, clear).await
    }

    /// Continues an export that was interrupted: `first` and `last` are the first and the last complete line of the
    /// `lines` lines that were written. `None` if nothing is worth continuing: then begin again.
    ///
    /// # Errors
    /// As [`Transfers::export`]; or the lines are of another store or of a later version.
    pub async fn continue_export(
        self,
        clear: Clear,
        first: &str,
        last: &str,
        lines: u64,
    ) -> Result<Option<Export<'a>>, ExportError> {
        Export::resume(self.windlass, clear, (first, last), lines).await
    }

    /// Begins an import, or continues one: lines that a former import of the same export has stored are skipped.
    #[must_use]
    pub fn import(self) -> Importing<'a> {
        Importing::new(self.windlass)
    }

    /// Reads the whole store once, and returns what is damaged: nothing if it is sound. On SQLite these are pages,
    /// indexes, constraints, and tables that do not fit each other. A changed bit inside a value is not seen, unless
    /// the value is sealed. A Postgres server has checksums and `amcheck` for that; nothing is read there.
    ///
    /// ```
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let windlass = windlass::Windlass::open("memory:").await?;
    /// assert!(windlass.transfer().verify().await?.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// The store cannot be read at all.
    pub async fn verify(self) -> Result<Vec<String>, StoreError> {
        self.windlass.store().verify().await
    }

    /// Copies a SQLite store to a new file while it is in use. The copy is consistent: the store at one moment.
    /// It is verified; a damaged copy is an error.
    ///
    /// ```no_run
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let windlass = windlass::Windlass::open("sqlite:jobs.db").await?;
    /// windlass.transfer().backup("jobs.backup.db").await?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// The store is not a SQLite file opened by its URL, or the copy could not be made.
    #[allow(clippy::unused_async)] // Without SQLite there is nothing to wait for.
    pub async fn backup(self, path: &str) -> Result<(), StoreError> {
        match self.windlass.inner().backend() {
            #[cfg(feature = "sqlite")]
            Backend::Sqlite(store) => store.backup(path).await,
            #[cfg(feature = "postgres")]
            Backend::Postgres(_) => Err(not_sqlite(path)),
            Backend::Other => Err(not_sqlite(path)),
        }
    }
}

fn not_sqlite(path: &str) -> StoreError {
    StoreError::Invalid(format!("only a SQLite store can be copied to {path}; for Postgres use pg_dump"))
}
