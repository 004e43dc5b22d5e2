//! Where jobs are stored: a file, or a schema of a database; and the binary that uses it.

use std::path::{Path, PathBuf};
use std::process::Command;
use windlass::Random;

#[derive(Debug)]
pub struct Place {
    /// The URL that the nodes use, perhaps through a proxy.
    pub store: String,
    /// The URL that the checks use.
    pub direct: String,
    pub schema: String,
    /// Whether processes ignore the signal for a file at its size limit, which would end them.
    pub survives_limits: bool,
    /// Further variables of every node.
    pub variables: Vec<(String, String)>,
    dir: tempfile::TempDir,
}

impl Place {
    pub fn sqlite() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("jobs.db");
        Self::sqlite_in(&file, dir)
    }

    /// A file in another place, such as on a small disk.
    pub fn sqlite_at(file: &Path) -> Self {
        Self::sqlite_in(file, tempfile::tempdir().unwrap())
    }

    fn sqlite_in(file: &Path, dir: tempfile::TempDir) -> Self {
        let store = format!("sqlite:{}", file.display());
        Self {
            direct: store.clone(),
            store,
            schema: "windlass".into(),
            survives_limits: false,
            variables: Vec::new(),
            dir,
        }
    }

    pub fn postgres() -> Self {
        let url = std::env::var("WINDLASS_TEST_POSTGRES").expect(
            "these tests need a Postgres server: run them with scripts/test or `scripts/with-postgres cargo test …`, \
             or set WINDLASS_TEST_POSTGRES to the URL of a database they may create schemas in",
        );
        Self::postgres_at(&url, &url)
    }

    /// A schema of the server at `direct`, which nodes reach through `store`.
    pub fn postgres_at(store: &str, direct: &str) -> Self {
        let schema = format!("torture_{:016x}", Random::system().number());
        let dir = tempfile::tempdir().unwrap();
        Self { store: store.into(), direct: direct.into(), schema, survives_limits: false, variables: Vec::new(), dir }
    }

    pub fn is_postgres(&self) -> bool {
        self.direct.starts_with("postgres")
    }

    /// The name of the kind of store, for reports.
    pub fn name(&self) -> &'static str {
        if self.is_postgres() { "postgres" } else { "sqlite" }
    }

    /// The SQLite file.
    pub fn file(&self) -> PathBuf {
        self.direct.strip_prefix("sqlite:").expect("this place is a file").into()
    }

    /// The command that starts a node of the binary under test.
    pub fn node(&self) -> Command {
        let binary = binary();
        let mut command = Command::new(&binary);
        if self.survives_limits {
            command = Command::new("sh");
            command.args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\"", &binary]);
        }
        command.envs(self.variables.clone());
        self.on(command, &["serve"])
    }

    /// A command of the same binary.
    pub fn command(&self, words: &[&str]) -> Command {
        self.on(Command::new(binary()), words)
    }

    fn on(&self, mut command: Command, words: &[&str]) -> Command {
        command.args(words).args(["--store", &self.store]).env("WINDLASS_SCHEMA", &self.schema).env_remove("RUST_LOG");
        command.current_dir(self.dir.path());
        command
    }
}

/// The binary under test. The scripts name a release build with default features; `cargo test` alone uses the binary
/// that it has just built.
fn binary() -> String {
    std::env::var("WINDLASS_TEST_BINARY").unwrap_or_else(|_| env!("CARGO_BIN_EXE_windlass").into())
}

impl Drop for Place {
    fn drop(&mut self) {
        if !self.is_postgres() {
            return;
        }
        // A leftover schema does no harm: the next run uses another name.
        let drop = format!("SET lock_timeout = '5s'; DROP SCHEMA IF EXISTS {} CASCADE", self.schema);
        let (url, runtime) = (self.direct.clone(), tokio::runtime::Runtime::new().unwrap());
        let _ = runtime.block_on(async {
            let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await?;
            let connection = tokio::spawn(connection);
            let dropped = client.batch_execute(&drop).await;
            connection.abort();
            dropped
        });
    }
}
