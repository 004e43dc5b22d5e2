//! The recorder: a library in C that is preloaded into the binary, and what it wrote.

use std::path::{Path, PathBuf};
use std::process::Command;

const SOURCE: &str = include_str!("record.c");
/// Operation, length of the name, offset, length.
const HEAD: usize = 1 + 2 + 8 + 8;

/// One change or sync of a file.
#[derive(Debug, Clone)]
pub struct Event {
    pub name: String,
    pub change: Change,
    /// The length of the record up to here. An answer that a client got when the record was longer came later.
    pub end: u64,
}

#[derive(Debug, Clone)]
pub enum Change {
    Create,
    Write(u64, Vec<u8>),
    Truncate(u64),
    Sync,
    Unlink,
}

#[derive(Debug)]
pub struct Recorder {
    library: PathBuf,
    record: PathBuf,
    dir: PathBuf,
}

impl Recorder {
    /// Records what happens to the files in `dir`; the library and the record are kept in `home`.
    pub fn new(home: &Path, dir: &Path) -> Self {
        let (source, library) = (home.join("record.c"), home.join("record.so"));
        std::fs::write(&source, SOURCE).unwrap();
        let mut compiler = Command::new("cc");
        let compiled = compiler.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(&source).arg("-ldl").status();
        assert!(compiled.expect("a C compiler, which SQLite needs too").success());
        Self { library, record: home.join("record"), dir: dir.canonicalize().unwrap() }
    }

    /// Makes a command record.
    pub fn on<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        command.env("LD_PRELOAD", &self.library).env("WINDLASS_TEST_RECORD", &self.record);
        command.env("WINDLASS_TEST_RECORD_DIR", &self.dir)
    }

    /// How much was recorded so far.
    pub fn length(&self) -> u64 {
        std::fs::metadata(&self.record).map_or(0, |record| record.len())
    }

    pub fn events(&self) -> Vec<Event> {
        let record = std::fs::read(&self.record).unwrap();
        let (mut events, mut at) = (Vec::new(), 0);
        while at < record.len() {
            let number = |from: usize| u64::from_le_bytes(record[at + from..at + from + 8].try_into().unwrap());
            let name_length = usize::from(u16::from_le_bytes([record[at + 1], record[at + 2]]));
            let (operation, offset, length) = (record[at], number(3), number(11) as usize);
            at += HEAD;
            let name = String::from_utf8(record[at..at + name_length].to_vec()).unwrap();
            at += name_length;
            let change = match operation {
                b'C' => Change::Create,
                b'W' => {
                    at += length;
                    Change::Write(offset, record[at - length..at].to_vec())
                }
                b'T' => Change::Truncate(offset),
                b'S' => Change::Sync,
                b'U' => Change::Unlink,
                other => panic!("operation {other} in the record"),
            };
            events.push(Event { name, change, end: at as u64 });
        }
        events
    }
}
