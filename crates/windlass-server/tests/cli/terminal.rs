//! A real pseudo-terminal of a given width, with the binary running on it.

use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Command, ExitStatus};

/// Every byte that was written to the terminal, in order.
pub(crate) struct Seen {
    pub(crate) status: ExitStatus,
    pub(crate) text: String,
}

/// Runs a command on a terminal with this many columns; `typed` is its input.
pub(crate) fn run(command: Command, columns: u16, typed: &str) -> Seen {
    watch(command, columns, typed, |_| {})
}

/// The same, and calls a function whenever the terminal has new output.
pub(crate) fn watch(mut command: Command, columns: u16, typed: &str, mut look: impl FnMut(&str)) -> Seen {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let theirs = open(ptsname(&ours, Vec::new()).unwrap(), OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
    tcsetwinsize(&theirs, Winsize { ws_row: 50, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    let theirs = File::from(theirs);
    command.env_remove("COLUMNS").stdin(theirs.try_clone().unwrap()).stdout(theirs.try_clone().unwrap()).stderr(theirs);
    let mut child = command.spawn().unwrap();
    // The command object holds the terminal's other end. Reading would not end while it exists.
    drop(command);
    let mut ours = File::from(ours);
    ours.write_all(typed.as_bytes()).unwrap();
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    // When the last process has closed the terminal, reading fails.
    while let Ok(length @ 1..) = ours.read(&mut piece) {
        bytes.extend_from_slice(&piece[..length]);
        look(&String::from_utf8_lossy(&bytes));
    }
    let text = String::from_utf8(bytes).unwrap().replace("\r\n", "\n");
    Seen { status: child.wait().unwrap(), text }
}

/// The text without escape sequences.
pub(crate) fn plain(text: &str) -> String {
    let mut parts = text.split('\x1b');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| c.is_ascii_alphabetic()).map_or(part.len(), |end| end + 1);
        plain.push_str(&part[end..]);
    }
    plain
}

/// The text with visible escape sequences, for golden files.
pub(crate) fn visible(text: &str) -> String {
    text.replace('\x1b', "␛")
}
