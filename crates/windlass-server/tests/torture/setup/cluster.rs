//! A Postgres of the test's own, which it may stop, starve and start again.

use crate::tools::below;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use windlass::Random;

/// Ports that are tried: one that seems free may be taken by the time the server asks for it.
const TRIES: u32 = 10;

#[derive(Debug)]
pub struct Cluster {
    home: tempfile::TempDir,
    bin: PathBuf,
    port: u64,
}

impl Cluster {
    /// A new cluster, running.
    pub fn start() -> Self {
        // Root's own temporary directory may be closed to the server's user; /tmp is not.
        let home = tempfile::Builder::new().prefix("windlass-torture.").tempdir_in("/tmp").unwrap();
        let mut cluster = Self { home, bin: binaries(), port: 0 };
        cluster.give(cluster.home.path());
        let data = cluster.data();
        cluster.run("initdb", &["-D", &data, "-U", "windlass", "--auth=trust", "-E", "UTF8", "--locale=C"]);
        let settings = format!(
            "listen_addresses = '127.0.0.1'\nunix_socket_directories = '{}'\nmax_connections = 100\n",
            cluster.home.path().display()
        );
        let file = cluster.home.path().join("data/postgresql.conf");
        let before = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, before + &settings).unwrap();
        for _ in 0..TRIES {
            cluster.port = 20_000 + below(&Random::system(), 30_000);
            if cluster.up() {
                return cluster;
            }
        }
        panic!("the cluster does not start: {}", std::fs::read_to_string(cluster.log()).unwrap_or_default());
    }

    pub fn url(&self, database: &str) -> String {
        format!("postgres://windlass@127.0.0.1:{}/{database}", self.port)
    }

    /// Stops it as a power cut would.
    pub fn stop(&self) {
        self.run("pg_ctl", &["-D", &self.data(), "-m", "immediate", "-w", "stop"]);
    }

    /// Starts it again. Answers whether it runs.
    pub fn up(&self) -> bool {
        let (options, log) = (format!("-p {}", self.port), self.log());
        let words = ["-D", &self.data(), "-o", &options, "-l", &log, "-w", "start"];
        self.command("pg_ctl", &words).status().unwrap().success()
    }

    /// Runs a statement.
    pub fn sql(&self, statement: &str) {
        let (url, runtime) = (self.url("postgres"), tokio::runtime::Runtime::new().unwrap());
        runtime.block_on(async {
            let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
            let connection = tokio::spawn(connection);
            client.batch_execute(statement).await.unwrap();
            drop(client);
            connection.await.unwrap().unwrap();
        });
    }

    /// Lets the server's user write to a directory.
    pub fn give(&self, dir: &Path) {
        if let Some(user) = server_user() {
            assert!(Command::new("chown").args(["-R", user]).arg(dir).status().unwrap().success());
        }
    }

    fn data(&self) -> String {
        self.home.path().join("data").display().to_string()
    }

    fn log(&self) -> String {
        self.home.path().join("log").display().to_string()
    }

    fn run(&self, program: &str, words: &[&str]) {
        assert!(self.command(program, words).status().unwrap().success(), "{program} {words:?}");
    }

    fn command(&self, program: &str, words: &[&str]) -> Command {
        let program = self.bin.join(program);
        let mut command = match server_user() {
            None => Command::new(program),
            Some(user) => {
                let mut command = Command::new("runuser");
                command.args(["-u", user, "--"]).arg(program);
                command
            }
        };
        command.args(words).current_dir(self.home.path());
        // The server would keep the pipe of whoever started it.
        command.stdout(std::process::Stdio::null());
        command
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // It may be down already.
        let _ = self.command("pg_ctl", &["-D", &self.data(), "-m", "immediate", "-w", "stop"]).status();
    }
}

/// Postgres refuses to run as root.
fn server_user() -> Option<&'static str> {
    if std::fs::metadata("/proc/self").unwrap().uid() != 0 {
        return None;
    }
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    Some(if users.lines().any(|line| line.starts_with("postgres:")) { "postgres" } else { "nobody" })
}

/// The directory of the newest server binaries; Debian keeps them out of PATH.
fn binaries() -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let number = |path: &PathBuf| path.file_name().and_then(|name| name.to_str()?.parse::<u32>().ok());
    let newest = versions.map(|entry| entry.path()).filter(|path| path.join("bin/initdb").exists()).max_by_key(number);
    if let Some(version) = newest {
        return version.join("bin");
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).find(|dir| dir.join("initdb").exists());
    found.expect("these tests need the binaries of a Postgres server: initdb and pg_ctl")
}
