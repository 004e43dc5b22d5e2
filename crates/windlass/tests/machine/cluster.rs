//! A Postgres cluster for one test, removed afterwards.

use crate::again::{home, is_root};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::net::TcpListener;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

pub const USER: &str = "windlass";
pub const PASSWORD: &str = "secret of one test";
/// A port that seems free may be taken by the time the server asks for it.
const TRIES: u32 = 10;

pub struct Cluster {
    pub port: u16,
    binaries: PathBuf,
    home: TempDir,
}

impl Cluster {
    /// A server with these settings; `prepare` puts files they name into the data directory.
    pub fn start(settings: &str, prepare: impl FnOnce(&Path)) -> Self {
        let mut cluster = Self { port: 0, binaries: binaries(), home: home() };
        let (data, password) = (cluster.data(), cluster.home.path().join("password"));
        std::fs::create_dir(&data).unwrap();
        std::fs::write(&password, PASSWORD).unwrap();
        for path in [cluster.home.path(), &data, &password] {
            give_to_server(path);
        }
        let initdb = cluster
            .command("initdb")
            .arg("--pwfile")
            .arg(&password)
            .args([
                "--username",
                USER,
                "--auth=scram-sha-256",
                "--encoding=UTF8",
                "--locale=C",
                "--no-sync",
                "--no-instructions",
            ])
            .output()
            .unwrap();
        assert!(initdb.status.success(), "{}", String::from_utf8_lossy(&initdb.stderr));
        prepare(&data);
        let mut file = OpenOptions::new().append(true).open(data.join("postgresql.conf")).unwrap();
        let place = cluster.home.path().display();
        writeln!(file, "listen_addresses = '127.0.0.1'\nunix_socket_directories = '{place}'\n{settings}").unwrap();
        for _ in 0..TRIES {
            cluster.port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            if cluster.control(&["-w", "start", "-o", &format!("-p {}", cluster.port)]) {
                return cluster;
            }
        }
        panic!("{}", std::fs::read_to_string(cluster.log()).unwrap_or_default());
    }

    /// The server's URL with its host name, because its certificate is for that name.
    pub fn url(&self) -> String {
        let password = PASSWORD.replace(' ', "%20");
        format!("postgres://{USER}:{password}@localhost:{}/postgres", self.port)
    }

    fn data(&self) -> PathBuf {
        self.home.path().join("data")
    }

    fn log(&self) -> PathBuf {
        self.home.path().join("log")
    }

    fn control(&self, arguments: &[&str]) -> bool {
        let mut command = self.command("pg_ctl");
        // A server that inherited the pipes of this test would keep them open.
        let log = File::create(self.home.path().join("control")).unwrap();
        command.arg("-l").arg(self.log()).args(arguments).stdout(log.try_clone().unwrap()).stderr(log);
        command.status().unwrap().success()
    }

    /// One of Postgres's programs, under a user it accepts.
    fn command(&self, program: &str) -> Command {
        let program = self.binaries.join(program);
        let mut command = match server_user() {
            Some((user, group)) => {
                let mut command = Command::new("setpriv");
                let ids = [format!("--reuid={user}"), format!("--regid={group}"), "--clear-groups".into()];
                command.args(ids).arg(program);
                command
            }
            None => Command::new(program),
        };
        command.arg("-D").arg(self.data()).current_dir("/");
        command
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.control(&["-m", "immediate", "-w", "stop"]);
    }
}

/// The user that Postgres runs as, because it refuses to run as root.
fn server_user() -> Option<(u32, u32)> {
    if !is_root() {
        return None;
    }
    let users = std::fs::read_to_string("/etc/passwd").unwrap();
    let find = |name: &str| {
        let line = users.lines().find(|line| line.split(':').next() == Some(name))?;
        let mut ids = line.split(':').skip(2).map(|id| id.parse().unwrap());
        Some((ids.next()?, ids.next()?))
    };
    Some(find("postgres").or_else(|| find("nobody")).expect("a user that Postgres may run under"))
}

pub fn give_to_server(path: &Path) {
    if let Some((user, group)) = server_user() {
        chown(path, Some(user), Some(group)).unwrap();
    }
}

/// The directory of the newest server programs; Debian keeps them out of PATH.
fn binaries() -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
    let debian = versions.map(|version| version.unwrap().path().join("bin"));
    let in_path = std::env::var("PATH").unwrap_or_default();
    let all = debian.chain(in_path.split(':').map(PathBuf::from));
    all.filter(|place| place.join("initdb").exists())
        .max_by_key(|place| version(place))
        .expect("these tests need the Postgres server programs (initdb, pg_ctl): scripts/test installs them on Debian")
}

/// `/usr/lib/postgresql/15/bin` → 15
fn version(place: &Path) -> u32 {
    let name = place.parent().and_then(Path::file_name).and_then(|name| name.to_str());
    name.and_then(|name| name.parse().ok()).unwrap_or(0)
}
