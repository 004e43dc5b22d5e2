//! A server of its own, for what only a running one knows.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

pub(crate) struct Node {
    folder: TempDir,
    child: Child,
    address: String,
}

impl Node {
    pub(crate) fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
        command.args(["serve", "--listen", "127.0.0.1:0", "--log-format", "json"]).current_dir(folder.path());
        command.env_clear().stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let address = lines.by_ref().find_map(|line| {
            let line = line.ok()?;
            Some(line.split_once("serves http://")?.1.split(' ').next()?.to_owned())
        });
        // Keep reading, so that the server can keep writing.
        std::thread::spawn(move || lines.for_each(drop));
        Self { folder, child, address: address.unwrap() }
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.folder.path().join("windlass.db")
    }

    /// The body of an answer.
    pub(crate) fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(" 200 "), "{path}: {head}");
        body.to_owned()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // It may have already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
