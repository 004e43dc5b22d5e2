//! Opens stores by URL for the command line. Nothing is created or migrated as a side effect.

use crate::cli::Error;
use std::path::Path;
use windlass::{Migrations, OpenError, Options, StoreError, Windlass};

const FORMS: &str = "write sqlite:PATH or postgres://USER@HOST/DATABASE";

/// What to do if a SQLite file does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missing {
    /// Refuse: a typo must not create an empty store that then looks fine.
    Refuse,
    Make,
}

/// Opens a store whose schema is current, or a new SQLite file.
pub(crate) async fn open(url: &str, missing: Missing) -> Result<Windlass, Error> {
    let is_new = is_missing_file(url);
    if is_new && missing == Missing::Refuse {
        return Err(no_file(url));
    }
    // Upgrading an old schema is a separate decision: `windlass migrate`.
    let migrations = if is_new { Migrations::Run } else { Migrations::LeaveToOperator };
    open_with(url, migrations).await
}

pub(crate) async fn open_with(url: &str, migrations: Migrations) -> Result<Windlass, Error> {
    let ring = crate::config::key_ring_of_environment();
    let key_ring = ring.map_err(|error| Error::BadInput(format!("{error:#}")))?;
    let options = Options { migrations, schema: schema(), key_ring, ..Options::default() };
    let opened = match sqlite_path(url) {
        Some("") => return Err(Error::BadInput(format!("the store `{url}` names no file; {FORMS}"))),
        Some(path) => Windlass::open_with(&format!("sqlite:{path}"), options).await,
        None if url.starts_with("postgres://") || url.starts_with("postgresql://") => {
            Windlass::open_with(url, options).await
        }
        None => {
            let shown: String = url.chars().take(40).collect();
            return Err(Error::BadInput(format!("`{shown}` is not a store; {FORMS}")));
        }
    };
    opened.map_err(|error| {
        if let OpenError::Store(error) = &error {
            return reported(&without_password(url), error);
        }
        Error::BadInput(error.to_string())
    })
}

/// The Postgres schema, from the same variable that nodes use.
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
        "there is no SQLite file for {url}\n  hint: `windlass migrate --store {url}` creates an empty one; so does `windlass serve`"
    ))
}

/// The URL with its password hidden, for messages.
pub(crate) fn without_password(url: &str) -> String {
    if url.starts_with("sqlite:") { url.to_owned() } else { crate::config::without_password(url) }
}

pub(crate) fn reported(url: &str, error: &StoreError) -> Error {
    let message = format!("{url}: {error}");
    match error {
        StoreError::Unavailable(_) | StoreError::Unknown(_) | StoreError::Sealed(_) => {
            Error::Unavailable(with_causes(message, error))
        }
        StoreError::Invalid(_) => Error::BadInput(message),
        StoreError::Corrupt { .. } | StoreError::Schema(_) | _ => Error::Failed(anyhow::anyhow!(message)),
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
