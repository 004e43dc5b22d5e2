//! One process of the binary, with a thread that reads its log.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};

/// How many of the last log lines are kept, to be shown when a test fails.
const KEPT: usize = 60;

#[derive(Debug)]
pub struct Node {
    child: Child,
    seen: Arc<Mutex<NodeLog>>,
}

/// The information from a node's log.
#[derive(Debug, Default)]
pub struct NodeLog {
    pub address: Option<SocketAddr>,
    pub panics: Vec<String>,
    last: VecDeque<String>,
}

impl Node {
    pub fn start(mut command: Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().expect("the binary starts");
        let log = BufReader::new(child.stderr.take().expect("standard error is a pipe"));
        let seen = Arc::new(Mutex::new(NodeLog::default()));
        let writer = seen.clone();
        std::thread::spawn(move || {
            log.lines().map_while(Result::ok).for_each(|line| writer.lock().unwrap().record(line));
        });
        Self { child, seen }
    }

    pub fn address(&self) -> Option<SocketAddr> {
        self.seen.lock().unwrap().address
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn kill(&mut self) {
        self.child.kill().expect("the process is ours");
        self.child.wait().expect("the process is ours");
    }

    /// Asks it to stop.
    pub fn terminate(&self) {
        let status = Command::new("kill").args(["-TERM", &self.id().to_string()]).status().expect("kill is there");
        assert!(status.success());
    }

    /// Whether it has ended, and how.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("the process is ours")
    }

    pub fn panics(&self) -> Vec<String> {
        self.seen.lock().unwrap().panics.clone()
    }

    /// The end of its log.
    pub fn log(&self) -> String {
        Vec::from(self.seen.lock().unwrap().last.clone()).join("\n")
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // It may have already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl NodeLog {
    fn record(&mut self, line: String) {
        if let Some((_, rest)) = line.split_once("serves http://") {
            self.address = rest.split(' ').next().and_then(|address| address.parse().ok());
        }
        if line.contains("panicked at") {
            self.panics.push(line.clone());
        }
        if std::env::var_os("WINDLASS_TEST_LOG").is_some() {
            eprintln!("{line}");
        }
        if self.last.len() == KEPT {
            self.last.pop_front();
        }
        self.last.push_back(line);
    }
}
