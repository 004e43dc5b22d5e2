//! Where a document runs: an empty directory, the built binary on the path, free ports.

use crate::chance::masked;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;
use windlass::Clock;
use windlass::Millis;
use windlass::Random;

/// How wide the documents are.
const COLUMNS: &str = "100";
/// The port of the receiver that documents start.
const RECEIVER: &str = "8000";
/// How long a background process may take to answer, or a job to reach the documented state.
const HANG: Millis = Millis::from_secs(180);
/// Commands that only read: the expected output may take a moment to appear.
const READS: [&str; 4] = ["windlass history ", "windlass jobs", "windlass dead groups", "windlass dead list"];

pub(crate) struct Place {
    directory: TempDir,
    windlass: u16,
    receiver: u16,
    background: Vec<Child>,
    clock: Clock,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self {
            directory: tempfile::tempdir().unwrap(),
            windlass: free_port(),
            receiver: free_port(),
            background: Vec::new(),
            clock: Clock::system(),
        }
    }

    /// The output of a command line in a shell, including standard error. A command that ends in `&` runs until the
    /// end.
    pub(crate) fn run(&mut self, line: &str, shown: &str) -> String {
        if let Some(line) = line.strip_suffix('&') {
            self.start(line.trim_end());
            return String::new();
        }
        let asked = self.clock.monotonic();
        loop {
            let output = self.shell(&format!("{{ {line}\n}} 2>&1")).output().unwrap();
            let printed = String::from_utf8(output.stdout).unwrap();
            let may_wait =
                READS.iter().any(|look| line.starts_with(look)) && std::env::var_os("WINDLASS_TEST_REWRITE").is_none();
            let is_late = self.clock.monotonic() - asked > HANG;
            if !may_wait || is_late || masked(&printed) == masked(shown) {
                return printed;
            }
        }
    }

    /// The output of a script of many lines in one interactive shell, which has jobs (`%%`). The last line shows that
    /// no command before it failed.
    pub(crate) fn run_all(&self, script: &str) -> String {
        let script = format!("set -em\n{script}\necho end of the tour");
        let mut shell = self.shell("exec bash -c \"$SCRIPT\" 2>&1");
        let output = shell.env("SCRIPT", script).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    pub(crate) fn succeeds(&mut self, line: &str) -> bool {
        self.shell(line).stdout(Stdio::null()).status().unwrap().success()
    }

    /// Where the server of this place listens.
    pub(crate) fn server(&self) -> String {
        format!("127.0.0.1:{}", self.windlass)
    }

    /// The contents of a file in this directory.
    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.directory.path().join(name)).unwrap()
    }

    fn start(&mut self, line: &str) {
        let port = if line.contains(RECEIVER) { self.receiver } else { self.windlass };
        // The shell replaces itself with the command, so that its process id is the command's.
        let child = self.shell(&format!("exec {line}")).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        self.background.push(child);
        let asked = self.clock.monotonic();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let ended = self.background.last_mut().and_then(|child| child.try_wait().unwrap());
            assert!(ended.is_none(), "it ended before it answered on {port}: {line}");
            assert!(self.clock.monotonic() - asked < HANG, "nothing answers on {port}: {line}");
            std::thread::park_timeout(Duration::from_millis(10));
        }
    }

    fn shell(&self, line: &str) -> Command {
        let binary = std::path::Path::new(env!("CARGO_BIN_EXE_windlass"));
        let path = std::env::var("PATH").unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", &line.replace(RECEIVER, &self.receiver.to_string())]);
        // Settings of this machine have no effect.
        command.current_dir(self.directory.path()).stdin(Stdio::null()).env_clear().env("COLUMNS", COLUMNS);
        command.env("PATH", format!("{}:{path}", binary.parent().unwrap().display()));
        // The documented port may be in use on this machine.
        command.env("WINDLASS_LISTEN", format!("127.0.0.1:{}", self.windlass));
        command.env("WINDLASS_SERVER", format!("http://127.0.0.1:{}", self.windlass));
        command
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        for child in &mut self.background {
            // It may have already ended.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A free port below those that the system gives to outgoing connections: one of these could take it before the
/// process opens it.
fn free_port() -> u16 {
    loop {
        let port = 20_000 + (Random::system().number() % 12_000) as u16;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}
