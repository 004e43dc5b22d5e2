//! Processes of the real binary, and the stores they use.

use super::client::Client;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The longest wait for a condition.
pub(crate) const HANG: Duration = Duration::from_secs(180);

/// Where jobs are stored: a file, or a schema of a database.
#[derive(Debug)]
pub struct Place {
    store: String,
    schema: String,
    _dir: Arc<tempfile::TempDir>,
}

impl Place {
    pub fn sqlite() -> Self {
        let dir = Arc::new(tempfile::tempdir().unwrap());
        let store = format!("sqlite:{}", dir.path().join("jobs.db").display());
        Self { store, schema: "windlass".into(), _dir: dir }
    }

    pub fn postgres() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let store = std::env::var("WINDLASS_TEST_POSTGRES")
            .expect("set WINDLASS_TEST_POSTGRES to the URL of a Postgres these tests may make schemas in");
        let schema = format!("server_{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        Self { store, schema, _dir: Arc::new(tempfile::tempdir().unwrap()) }
    }

    /// A database at this URL, with a schema of its own.
    pub fn at(store: &str) -> Self {
        Self { store: store.into(), ..Self::postgres() }
    }

    /// Writes a file into the directory where nodes start, from which `windlass.toml` is read.
    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self._dir.path().join(name), text).unwrap();
    }

    /// The SQLite file.
    pub fn file(&self) -> std::path::PathBuf {
        self.store.strip_prefix("sqlite:").expect("this place is a file").into()
    }

    /// The schema of a database.
    pub fn schema(&self) -> &str {
        &self.schema
    }

    pub fn url(&self) -> &str {
        &self.store
    }

    /// Runs statements in the database.
    pub fn sql(&self, text: &str) {
        tokio::runtime::Runtime::new().unwrap().block_on(async {
            let (client, connection) = tokio_postgres::connect(&self.store, tokio_postgres::NoTls).await.unwrap();
            let connection = tokio::spawn(connection);
            client.batch_execute(text).await.unwrap();
            connection.abort();
        });
    }

    pub fn is_postgres(&self) -> bool {
        self.store.starts_with("postgres")
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
        command.args(args).args(["--store", &self.store]).env("WINDLASS_SCHEMA", &self.schema).env_remove("RUST_LOG");
        command.current_dir(self._dir.path());
        command
    }

    /// A node with the API on its own port.
    pub fn serve(&self, args: &[&str]) -> Node {
        self.serve_with(args, &[])
    }

    /// The same, with environment variables.
    pub fn serve_with(&self, args: &[&str], variables: &[(&str, &str)]) -> Node {
        let mut command = self.command(&["serve"]);
        command.envs(variables.iter().copied());
        command.args(["--listen", "127.0.0.1:0", "--log-format", "json"]).args(args);
        Node::start(command, "serves http://", self._dir.clone())
    }

    /// The same, or the log of a node that does not start.
    pub fn try_serve_with(&self, variables: &[(&str, &str)]) -> Result<Node, Vec<String>> {
        let mut command = self.command(&["serve", "--listen", "127.0.0.1:0", "--log-format", "json"]);
        command.envs(variables.iter().copied());
        Node::try_start(command, "serves http://", self._dir.clone())
    }

    /// A node whose log has a line with these words and its address.
    pub fn serve_until(&self, words: &str, args: &[&str]) -> Node {
        let mut command = self.command(&["serve", "--listen", "127.0.0.1:0", "--log-format", "json"]);
        command.args(args);
        Node::start(command, words, self._dir.clone())
    }
}

/// A running process; killed when dropped.
#[derive(Debug)]
pub struct Node {
    child: Child,
    pub client: Client,
    log: Arc<Mutex<Vec<String>>>,
    /// Kept as long as the process: without its file, a store cannot open another connection.
    _dir: Arc<tempfile::TempDir>,
}

impl Node {
    fn start(command: Command, words: &str, dir: Arc<tempfile::TempDir>) -> Self {
        Self::try_start(command, words, dir).unwrap_or_else(|seen| panic!("the node did not start: {seen:#?}"))
    }

    fn try_start(mut command: Command, words: &str, dir: Arc<tempfile::TempDir>) -> Result<Self, Vec<String>> {
        let mut child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().expect("the binary starts");
        let mut lines = BufReader::new(child.stderr.take().expect("standard error is a pipe")).lines();
        let mut seen = Vec::new();
        let address = lines.by_ref().map_while(Result::ok).find_map(|line| {
            let address = line.split_once("http://").filter(|_| line.contains(words));
            let address = address.and_then(|(_, rest)| rest.split(' ').next()?.parse().ok());
            seen.push(line);
            address
        });
        let Some(address) = address else {
            child.wait().expect("the process is ours");
            return Err(seen);
        };
        // Read the log to its end; otherwise the node would block on a full pipe.
        let log = Arc::new(Mutex::new(seen));
        let kept = log.clone();
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(|line| kept.lock().unwrap().push(line)));
        Ok(Self { child, client: Client { address, token: None }, log, _dir: dir })
    }

    /// How many lines of its log contain these words.
    pub fn logged(&self, words: &str) -> usize {
        self.log.lock().unwrap().iter().filter(|line| line.contains(words)).count()
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, name: &str) {
        let status = Command::new("kill").args([name, &self.child.id().to_string()]).status().expect("kill is there");
        assert!(status.success());
    }

    pub fn kill(&mut self) {
        self.child.kill().expect("the process is ours");
        self.child.wait().expect("the process is ours");
    }

    /// Waits for the process to end by itself.
    pub fn ended(&mut self) -> ExitStatus {
        let mut status = None;
        eventually("the process ends", || {
            status = self.child.try_wait().expect("the process is ours");
            status.is_some()
        });
        status.expect("it has ended")
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // It may have already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits for a condition.
#[track_caller]
#[allow(clippy::disallowed_methods)] // Other processes use the real clock.
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < HANG, "{what}: not within {HANG:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
