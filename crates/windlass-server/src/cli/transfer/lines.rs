//! The lines of a file or of standard input, one at a time and of bounded length.

use std::fs::File;
use std::io::{BufRead, BufReader, Read as _};

/// The longest line, in bytes. A job's payload and its history are in one line.
const LONGEST: u64 = 256 << 20;

/// Reads lines.
pub(super) struct Lines {
    reader: Box<dyn BufRead>,
    /// How many lines were read.
    number: u64,
    /// How many bytes they had.
    pub(super) bytes: u64,
}

/// One line.
pub(super) struct Line {
    pub(super) text: String,
    /// Whether a line feed ends it. The last line of a file that was cut off has none.
    pub(super) is_complete: bool,
}

impl Lines {
    /// The file's lines, and its size if it is known; `-` is standard input.
    pub(super) fn open(path: &str) -> Result<(Self, u64), String> {
        if path == "-" {
            return Ok((Self::of(BufReader::new(std::io::stdin())), 0));
        }
        let file = File::open(path).map_err(|error| format!("cannot read {path}: {error}"))?;
        let meta = file.metadata().map_err(|error| format!("cannot read {path}: {error}"))?;
        if meta.is_dir() {
            return Err(format!("{path} is a directory, not a file"));
        }
        Ok((Self::of(BufReader::with_capacity(1 << 20, file)), meta.len()))
    }

    pub(super) fn of(reader: impl BufRead + 'static) -> Self {
        Self { reader: Box::new(reader), number: 0, bytes: 0 }
    }

    /// The next line, without its end; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<Line>, String> {
        let mut bytes = Vec::new();
        let read = (&mut self.reader).take(LONGEST).read_until(b'\n', &mut bytes);
        let read = read.map_err(|error| format!("cannot read line {}: {error}", self.number + 1))? as u64;
        if read == 0 {
            return Ok(None);
        }
        self.number += 1;
        self.bytes += read;
        let is_complete = bytes.ends_with(b"\n");
        if !is_complete && read == LONGEST {
            return Err(format!("line {} is longer than {LONGEST} bytes", self.number));
        }
        let text = String::from_utf8(bytes).map_err(|_| format!("line {} is not UTF-8", self.number))?;
        Ok(Some(Line { text: text.trim_end_matches(['\n', '\r']).to_owned(), is_complete }))
    }

    /// The number of the last line.
    pub(super) const fn number(&self) -> u64 {
        self.number
    }
}
