//! Statements: one file per step under `sql/`, each statement under a line `-- name: …`. They are looked up and
//! expanded at compile time: a wrong name fails the build, and using a statement costs nothing.
//!
//! `{x}` in a statement stands for the columns called `x` in `columns`, or for the text under `-- part: x` in the same
//! file.

use crate::store::sqlite::reads::columns::LISTS;

/// A statement, given its file and its name: `sql!("claim.sql", "claim_due")`.
macro_rules! sql {
    ($file:literal, $name:literal) => {{
        use $crate::store::sqlite::connection::sql;
        const FILE: &str = sql::file($file);
        const TEXT: &str = sql::under(FILE, sql::NAME, $name);
        const BYTES: [u8; sql::length(FILE, TEXT)] = sql::complete(FILE, TEXT);
        const SQL: &str = sql::text(&BYTES);
        SQL
    }};
}
pub(in crate::store::sqlite) use sql;

pub(in crate::store::sqlite) const NAME: &str = "-- name: ";
pub(in crate::store::sqlite) const PART: &str = "-- part: ";

pub(in crate::store::sqlite) const FILES: &[(&str, &str)] = &[
    ("enqueue.sql", include_str!("../sql/enqueue.sql")),
    ("claim.sql", include_str!("../sql/claim.sql")),
    ("commit.sql", include_str!("../sql/commit.sql")),
    ("leases.sql", include_str!("../sql/leases.sql")),
    ("clock.sql", include_str!("../sql/clock.sql")),
    ("gates.sql", include_str!("../sql/gates.sql")),
    ("operations.sql", include_str!("../sql/operations.sql")),
    ("jobs.sql", include_str!("../sql/jobs.sql")),
    ("attempts.sql", include_str!("../sql/attempts.sql")),
    ("queues.sql", include_str!("../sql/queues.sql")),
    ("schedules.sql", include_str!("../sql/schedules.sql")),
    ("tallies.sql", include_str!("../sql/tallies.sql")),
    ("registry.sql", include_str!("../sql/registry.sql")),
    ("texts.sql", include_str!("../sql/texts.sql")),
    ("transfer.sql", include_str!("../sql/transfer.sql")),
    ("upkeep.sql", include_str!("../sql/upkeep.sql")),
    ("schema.sql", include_str!("../sql/schema.sql")),
];

pub(in crate::store::sqlite) const fn file(name: &str) -> &'static str {
    match listed(FILES, name.as_bytes()) {
        Some(text) => text,
        None => panic!("there is no such SQL file"),
    }
}

/// The statement or part called `name`, without the comment before it.
pub(in crate::store::sqlite) const fn under(file: &'static str, mark: &str, name: &str) -> &'static str {
    let bytes = file.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let end = line_end(bytes, at);
        let is_name = end == at + mark.len() + name.len()
            && is_at(bytes, at, mark.as_bytes())
            && is_at(bytes, at + mark.len(), name.as_bytes());
        if is_name {
            return statement(file, end);
        }
        at = end + 1;
    }
    panic!("there is no SQL statement of this name in the file")
}

/// The text from `at` to the next mark, without the comment it starts with and the blank lines it ends with.
const fn statement(file: &'static str, at: usize) -> &'static str {
    let bytes = file.as_bytes();
    let mut begin = at + 1;
    while is_at(bytes, begin, b"-- ") {
        begin = line_end(bytes, begin) + 1;
    }
    let mut end = begin;
    while end < bytes.len() && !is_at(bytes, end, NAME.as_bytes()) && !is_at(bytes, end, PART.as_bytes()) {
        end = line_end(bytes, end) + 1;
    }
    while end > begin && (end > bytes.len() || bytes[end - 1] == b'\n') {
        end -= 1;
    }
    file.split_at(end).0.split_at(begin).1
}

/// The length of a statement after expansion.
pub(in crate::store::sqlite) const fn length(file: &'static str, text: &str) -> usize {
    let bytes = text.as_bytes();
    let (mut length, mut at) = (0, 0);
    while at < bytes.len() {
        if bytes[at] == b'{' {
            let end = brace_end(bytes, at);
            length += stands_for(file, slice(bytes, at + 1, end)).len();
            at = end + 1;
        } else {
            length += 1;
            at += 1;
        }
    }
    length
}

/// The statement with its placeholders expanded.
pub(in crate::store::sqlite) const fn complete<const N: usize>(file: &'static str, text: &str) -> [u8; N] {
    let bytes = text.as_bytes();
    let mut out = [b' '; N];
    let (mut length, mut at) = (0, 0);
    while at < bytes.len() {
        if bytes[at] == b'{' {
            let end = brace_end(bytes, at);
            let inner = stands_for(file, slice(bytes, at + 1, end)).as_bytes();
            let mut from = 0;
            while from < inner.len() {
                out[length] = inner[from];
                length += 1;
                from += 1;
            }
            at = end + 1;
        } else {
            out[length] = bytes[at];
            length += 1;
            at += 1;
        }
    }
    out
}

pub(in crate::store::sqlite) const fn text(bytes: &'static [u8]) -> &'static str {
    match str::from_utf8(bytes) {
        Ok(text) => text,
        Err(_) => panic!("a statement is UTF-8"),
    }
}

const fn stands_for(file: &'static str, name: &[u8]) -> &'static str {
    match listed(LISTS, name) {
        Some(columns) => columns,
        None => match str::from_utf8(name) {
            Ok(name) => under(file, PART, name),
            Err(_) => panic!("a name is UTF-8"),
        },
    }
}

const fn listed(list: &[(&str, &'static str)], name: &[u8]) -> Option<&'static str> {
    let mut at = 0;
    while at < list.len() {
        if list[at].0.len() == name.len() && is_at(list[at].0.as_bytes(), 0, name) {
            return Some(list[at].1);
        }
        at += 1;
    }
    None
}

const fn is_at(bytes: &[u8], at: usize, wanted: &[u8]) -> bool {
    if at + wanted.len() > bytes.len() {
        return false;
    }
    let mut i = 0;
    while i < wanted.len() {
        if bytes[at + i] != wanted[i] {
            return false;
        }
        i += 1;
    }
    true
}

const fn line_end(bytes: &[u8], at: usize) -> usize {
    let mut end = at;
    while end < bytes.len() && bytes[end] != b'\n' {
        end += 1;
    }
    end
}

const fn brace_end(bytes: &[u8], at: usize) -> usize {
    let mut end = at;
    while bytes[end] != b'}' {
        end += 1;
    }
    end
}

const fn slice(bytes: &[u8], begin: usize, end: usize) -> &[u8] {
    bytes.split_at(end).0.split_at(begin).1
}
