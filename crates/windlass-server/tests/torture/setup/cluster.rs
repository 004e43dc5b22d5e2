//! A separate Postgres that a test may stop, run out of disk space and start again.

use crate::setup::faulty_disk::FaultyDisk;
use crate::tools::below;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use windlass::Random;

/// How many ports are tried: a port that seems free may be in use by the time the server binds it.
const TRIES: u32 = 10;

#[derive(Debug)]
pub struct Cluster {
    home: tempfile::TempDir,
    bin: PathBuf,
    port: u64,
    /// The variables of the server and its tools.
    variables: Vec<(String, String)>,
}

impl Cluster {
    /// Creates and starts a new cluster.
    pub fn start() -> Self {
        // The server's user may not have access to root's temporary directory; it has access to /tmp.
        let home = tempfile::Builder::new().prefix("windlass-torture.").tempdir_in("/tmp").unwrap();
        Self::start_in(home, Vec::new())
    }

    /// The same, with a table space, which the caller creates, on a disk that has faults.
    pub fn start_beside(disk: &FaultyDisk) -> Self {
        let home = tempfile::Builder::new().prefix("windlass-torture.").tempdir_in("/tmp").unwrap();
        let cluster = Self::start_in(home, disk.variables());
        give_to_server(disk.home());
        cluster
    }

    /// The same, with all its files on a disk that has faults.
    pub fn start_on(disk: &FaultyDisk) -> Self {
        let home = tempfile::Builder::new().prefix("cluster.").tempdir_in(disk.path()).unwrap();
        give_to_server(disk.home());
        Self::start_in(home, disk.variables())
    }

    fn start_in(home: tempfile::TempDir, variables: Vec<(String, String)>) -> Self {
        let mut cluster = Self { home, bin: binaries(), port: 0, variables };
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
        cluster.start_somewhere();
        cluster
    }

    /// A standby of this cluster. From here on every commit here waits for it.
    pub fn standby(&self) -> Self {
        let home = tempfile::Builder::new().prefix("windlass-torture.").tempdir_in("/tmp").unwrap();
        let mut standby = Self { home, bin: self.bin.clone(), port: 0, variables: Vec::new() };
        standby.give(standby.home.path());
        let (data, port) = (standby.data(), self.port.to_string());
        let words = ["-D", &data, "-h", "127.0.0.1", "-p", &port, "-U", "windlass", "-R", "-X", "stream", "-c", "fast"];
        standby.run("pg_basebackup", &words);
        standby.start_somewhere();
        self.sql("ALTER SYSTEM SET synchronous_standby_names = '*'");
        self.sql("SELECT pg_reload_conf()");
        standby
    }

    /// Makes a standby the primary.
    pub fn promote(&self) {
        self.run("pg_ctl", &["-D", &self.data(), "-w", "promote"]);
    }

    /// Sends a signal to every process of the server.
    pub fn signal(&self, name: &str) {
        let file = self.home.path().join("data/postmaster.pid");
        let main: u32 = std::fs::read_to_string(file).unwrap().lines().next().unwrap().parse().unwrap();
        let mut processes = vec![main];
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let Some(id) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
            let parent = stat.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(1)?.parse().ok());
            if parent == Some(main) {
                processes.push(id);
            }
        }
        for id in processes {
            // A process may have ended meanwhile.
            let _ = Command::new("kill").args([name, &id.to_string()]).stderr(std::process::Stdio::null()).status();
        }
    }

    /// `host:port`
    pub fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    fn start_somewhere(&mut self) {
        for _ in 0..TRIES {
            self.port = 20_000 + below(&Random::system(), 30_000);
            if self.up() {
                return;
            }
        }
        panic!("the cluster does not start: {}", std::fs::read_to_string(self.log()).unwrap_or_default());
    }

    pub fn url(&self, database: &str) -> String {
        format!("postgres://windlass@127.0.0.1:{}/{database}", self.port)
    }

    /// Stops it immediately, as after a power failure.
    pub fn stop(&self) {
        self.run("pg_ctl", &["-D", &self.data(), "-m", "immediate", "-w", "stop"]);
    }

    /// Starts it again. Returns whether it runs.
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
        give_to_server(dir);
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
        command.args(words).current_dir(self.home.path()).envs(self.variables.clone());
        // Otherwise the server would keep the pipe of its parent open.
        command.stdout(std::process::Stdio::null());
        command
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // It may have already stopped.
        let _ = self.command("pg_ctl", &["-D", &self.data(), "-m", "immediate", "-w", "stop"]).status();
    }
}

fn give_to_server(dir: &Path) {
    if let Some(user) = server_user() {
        assert!(Command::new("chown").args(["-R", user]).arg(dir).status().unwrap().success());
    }
}

/// Postgres refuses to run as root.
pub fn server_user() -> Option<&'static str> {
    if std::fs::metadata("/proc/self").unwrap().uid() != 0 {
        return None;
    }
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    Some(if users.lines().any(|line| line.starts_with("postgres:")) { "postgres" } else { "nobody" })
}

/// The directory of the newest server binaries; Debian keeps them out of PATH.
pub fn binaries() -> PathBuf {
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
