//! One process of the binary, its log read to the end.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};

/// Lines of the log that are kept to be shown when something is wrong.
const KEPT: usize = 60;

#[derive(Debug)]
pub struct Node {
    child: Child,
    reported: Arc<Mutex<Said>>,
}

/// What the log of a node has said.
#[derive(Debug, Default)]
pub struct Said {
    pub address: Option<SocketAddr>,
    pub panics: Vec<String>,
    last: VecDeque<String>,
}

impl Node {
    pub fn start(mut command: Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().expect("the binary starts");
        let log = BufReader::new(child.stderr.take().expect("standard error is a pipe"));
        let reported = Arc::new(Mutex::new(Said::default()));
        let hears = reported.clone();
        std::thread::spawn(move || log.lines().map_while(Result::ok).for_each(|line| hears.lock().unwrap().hear(line)));
        Self { child, reported }
    }

    pub fn address(&self) -> Option<SocketAddr> {
        self.reported.lock().unwrap().address
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
        let reported = Command::new("kill").args(["-TERM", &self.id().to_string()]).status().expect("kill is there");
        assert!(reported.success());
    }

    /// Whether it has ended, and how.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("the process is ours")
    }

    pub fn panics(&self) -> Vec<String> {
        self.reported.lock().unwrap().panics.clone()
    }

    /// The end of its log.
    pub fn log(&self) -> String {
        Vec::from(self.reported.lock().unwrap().last.clone()).join("\n")
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Said {
    fn hear(&mut self, line: String) {
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
