//! Stores by their URL, as the command line opens them: nothing is made or migrated in passing.

use crate::cli::Error;
use std::path::Path;
use std::sync::Arc;
use windlass::store::sqlite::SqliteStore;
use windlass::store::{Migrations, Options, Store, StoreError};
use windlass::{OpenError, Windlass};

const FORMS: &str = "write sqlite:PATH or postgres://USER@HOST/DATABASE";

/// What to do about a SQLite file that is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missing {
    /// Say so: a typing error must not make an empty store that then looks fine.
    Refuse,
    Make,
}

/// A store that is open.
#[derive(Debug, Clone)]
pub(crate) enum Opened {
    Sqlite(Arc<SqliteStore>),
    Other(Windlass),
}

impl Opened {
    pub(crate) fn windlass(&self) -> Windlass {
        match self {
            Self::Sqlite(store) => Windlass::from_store(store.clone()),
            Self::Other(windlass) => windlass.clone(),
        }
    }

    pub(crate) fn store(&self) -> Arc<dyn Store> {
        match self {
            Self::Sqlite(store) => store.clone(),
            Self::Other(windlass) => windlass.store().clone(),
        }
    }
}

/// Opens a store whose schema is current, or a new SQLite file.
pub(crate) async fn open(url: &str, missing: Missing) -> Result<Opened, Error> {
    let is_new = is_missing_file(url);
    if is_new && missing == Missing::Refuse {
        return Err(no_file(url));
    }
    // Bringing an old schema up to date is a decision of its own: `windlass migrate`.
    let migrations = if is_new { Migrations::Run } else { Migrations::LeaveToOperator };
    open_with(url, migrations).await
}

pub(crate) async fn open_with(url: &str, migrations: Migrations) -> Result<Opened, Error> {
    let options = Options { migrations, schema: schema(), ..Options::default() };
    if let Some(path) = sqlite_path(url) {
        if path.is_empty() {
            return Err(Error::BadInput(format!("the store `{url}` names no file; {FORMS}")));
        }
        let store = SqliteStore::open(path, options).await;
        return store.map(Opened::Sqlite).map_err(|error| reported(url, &error));
    }
    if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
        let shown: String = url.chars().take(40).collect();
        return Err(Error::BadInput(format!("`{shown}` is not a store; {FORMS}")));
    }
    crate::store::open(url, options).await.map(Opened::Other).map_err(|error| match error {
        OpenError::Store(error) => reported(&without_password(url), &error),
        error => Error::BadInput(error.to_string()),
    })
}

/// The schema that nodes are told by the same variable.
fn schema() -> String {
    std::env::var("WINDLASS_SCHEMA").ok().filter(|name| !name.is_empty()).unwrap_or_else(|| Options::default().schema)
}

pub(crate) fn sqlite_path(url: &str) -> Option<&str> {
    url.strip_prefix("sqlite:").map(|path| path.strip_prefix("//").unwrap_or(path))
}

pub(crate) fn is_missing_file(url: &str) -> bool {
    sqlite_path(url).is_some_and(|path| !path.is_empty() && !Path::new(path).exists())
}

pub(crate) fn no_file(url: &str) -> Error {
    Error::NotFound(format!(
        "there is no SQLite file for {url}\n  hint: `windlass migrate --store {url}` makes an empty one; so does `windlass serve`"
    ))
}

/// The URL with its password hidden, for messages.
pub(crate) fn without_password(url: &str) -> String {
    if url.starts_with("sqlite:") { url.to_owned() } else { crate::config::without_password(url) }
}

pub(crate) fn reported(url: &str, error: &StoreError) -> Error {
    let message = format!("{url}: {error}");
    match error {
        StoreError::Unavailable(_) | StoreError::Unknown(_) => Error::Unavailable(with_causes(message, error)),
        StoreError::Invalid(_) => Error::BadInput(message),
        StoreError::Corrupt { .. } | StoreError::Schema(_) => Error::Failed(anyhow::anyhow!(message)),
    }
}

fn with_causes(mut message: String, error: &StoreError) -> String {
    let mut cause = std::error::Error::source(error);
    while let Some(source) = cause {
        let text = source.to_string();
        if !message.contains(&text) {
            message.push_str(": ");
            message.push_str(&text);
        }
        cause = source.source();
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_shown() {
        assert_eq!(without_password("postgres://me:secret@db/jobs"), "postgres://me:***@db/jobs");
        assert_eq!(without_password("sqlite:jobs.db"), "sqlite:jobs.db");
    }
}
