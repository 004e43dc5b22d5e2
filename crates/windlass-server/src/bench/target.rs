//! The store to measure: a temporary one in a directory or schema that is removed afterwards, or one the caller names.

use anyhow::{Context as _, Result, bail};
use windlass::Random;
use windlass::client::{JobFilter, Page, Scope};
use windlass::low_level::stores::Store;
use windlass::{Options, Windlass};

/// A store to measure, and where its raw ceiling is measured too.
pub(crate) enum Target {
    /// The database file; the ceiling's file is in the same directory.
    Sqlite { path: String, temporary: bool, _home: Option<tempfile::TempDir> },
    /// The server's URL and the schema used.
    Postgres { url: String, schema: String },
}

impl Target {
    /// `sqlite:` (a temporary file), `sqlite:PATH`, or `postgres://…` (in its own schema, dropped afterwards).
    pub(crate) fn parse(store: &str) -> Result<Self> {
        if let Some(path) = store.strip_prefix("sqlite:") {
            if path.is_empty() {
                let home = tempfile::tempdir_in(".").context("cannot create a temporary directory here")?;
                let path = home.path().join("bench.db").display().to_string();
                return Ok(Self::Sqlite { path, temporary: true, _home: Some(home) });
            }
            return Ok(Self::Sqlite { path: path.to_owned(), temporary: false, _home: None });
        }
        if store.starts_with("postgres:") || store.starts_with("postgresql:") {
            return Ok(Self::Postgres { url: store.to_owned(), schema: any_schema() });
        }
        bail!("--store `{store}`: write sqlite:PATH, sqlite: (a temporary file) or postgres://…")
    }

    /// A temporary store next to this one.
    pub(crate) fn another(&self) -> Self {
        match self {
            Self::Sqlite { path, .. } => Self::Sqlite { path: format!("{path}.other"), temporary: true, _home: None },
            Self::Postgres { url, .. } => Self::Postgres { url: url.clone(), schema: any_schema() },
        }
    }

    pub(crate) async fn open(&self) -> Result<Windlass> {
        // With a key ring, values are sealed: its cost can be measured.
        let options = Options { key_ring: crate::config::key_ring_of_environment()?, ..Options::default() };
        Ok(match self {
            Self::Sqlite { path, .. } => Windlass::open_with(&format!("sqlite:{path}"), options).await?,
            Self::Postgres { url, schema } => {
                Windlass::open_with(url, Options { schema: schema.clone(), ..options }).await?
            }
        })
    }

    /// The Postgres server, if it is one.
    pub(crate) fn url(&self) -> Option<&str> {
        match self {
            Self::Sqlite { .. } => None,
            Self::Postgres { url, .. } => Some(url),
        }
    }

    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Sqlite { .. } => "sqlite",
            Self::Postgres { .. } => "postgres",
        }
    }

    /// Removes what was created for the run.
    pub(crate) async fn clear(&self) -> Result<()> {
        match self {
            Self::Sqlite { path, temporary: true, .. } => {
                for suffix in ["", "-wal", "-shm"] {
                    // A missing file is fine.
                    let _ = std::fs::remove_file(format!("{path}{suffix}"));
                }
            }
            Self::Sqlite { .. } => {}
            Self::Postgres { url, schema } => {
                let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await?;
                let connection = tokio::spawn(connection);
                client.batch_execute(&format!("DROP SCHEMA IF EXISTS {schema} CASCADE")).await?;
                drop(client);
                connection.await??;
            }
        }
        Ok(())
    }
}

fn any_schema() -> String {
    format!("windlass_bench_{:08x}", Random::system().number() >> 32)
}

/// Refuses a store that holds jobs: a benchmark must not mix its jobs with real ones.
pub(crate) async fn refuse_used(store: &dyn Store) -> Result<()> {
    if !store.jobs(&Scope::All, &JobFilter::default(), Page::oldest(1)).await?.is_empty() {
        bail!("this store holds jobs; use an empty one, or give --force to measure here anyway");
    }
    Ok(())
}
