//! Problems of the API, classes of failures, reasons for giving up, exit codes; events. From the sources that define
//! them.

use crate::root;
use crate::sources::{documented, head, row};

const CLASSES: [&str; 2] = ["crates/windlass-core/src/failure.rs", "crates/windlass/src/executor/http/fault.rs"];

pub(crate) fn errors() -> String {
    let mut page = String::from(
        "## Problems\n\nEvery error of the API is an RFC 9457 problem; its `type` ends with one of these.\n\n",
    );
    page.push_str(&head(["status", "type", "title"]));
    let source = std::fs::read_to_string(root().join("crates/windlass-server/src/http/output/problem.rs")).unwrap();
    let mut count = 0;
    for part in source.split("(StatusCode::").skip(1) {
        let words: Vec<&str> = part.split('"').collect();
        let (Some(status), &[_, kind, _, title, ..]) = (part.split(',').next(), words.as_slice()) else { continue };
        if status.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_') {
            page.push_str(&row([&status.to_lowercase().replace('_', " "), &format!("`{kind}`"), title]));
            count += 1;
        }
    }
    assert!(count >= 20, "{count} problems");
    page.push_str("\n## Classes of failures\n\nClasses that Windlass itself gives. Handlers name their own; HTTP jobs have the status, such as `503`.\n\n");
    page.push_str(&head(["class", "what it is"]));
    for (comment, line) in CLASSES.iter().flat_map(|path| documented(path)) {
        if let Some(class) = line.strip_prefix("pub const ").and_then(|rest| rest.split('"').nth(1)) {
            page.push_str(&row([&format!("`{class}`"), &comment]));
        }
    }
    page.push_str("\n## Why a job was given up\n\n");
    page.push_str(&head(["reason", "what it means"]));
    page.push_str(&words("crates/windlass-core/src/job.rs", "    Reason {"));
    page.push_str("\n## Exit codes of the command line\n\n");
    page.push_str("`0` done, `1` failed, `2` usage or bad input, `3` not found, `4` conflict with the current state, `5` unavailable.\n");
    page
}

pub(crate) fn events() -> String {
    let mut page = String::from(
        "## Events of jobs\n\n`GET /api/v1/events` and `windlass tail` show them; `Windlass::events` gives them to programs.\n\n",
    );
    page.push_str(&head(["event", "when"]));
    page.push_str(&variants("crates/windlass/src/event.rs", "pub enum EventKind"));
    page.push_str("\n## Notices of alerts\n\n`type` of the JSON that operators are sent.\n\n");
    page.push_str("`alert.fired`, `alert.reminder`, `alert.resolved`, `alert.test`.\n");
    page
}

/// The words of an enum that is defined as `Name = "word"`, with their comments.
fn words(path: &str, start: &str) -> String {
    let source = std::fs::read_to_string(root().join(path)).unwrap();
    let body = source.split(start).nth(1).unwrap_or_else(|| panic!("{path} has no {start}"));
    let mut rows = String::new();
    let mut comment = Vec::new();
    for line in body.split("\n    }").next().unwrap().lines().map(str::trim) {
        if let Some(said) = line.strip_prefix("/// ") {
            comment.push(said);
        } else if let Some(word) = line.split('"').nth(1) {
            rows.push_str(&row([&format!("`{word}`"), &comment.join(" ")]));
            comment.clear();
        }
    }
    assert!(rows.lines().count() >= 5, "{path}: {rows}");
    rows
}

/// The variants of an enum with their comments, as `snake_case` words.
fn variants(path: &str, head: &str) -> String {
    let source = std::fs::read_to_string(root().join(path)).unwrap();
    let body = source.split(head).nth(1).unwrap_or_else(|| panic!("{path} has no {head}"));
    let body = body.split("\n}").next().unwrap();
    let mut rows = String::new();
    let mut comment = Vec::new();
    for line in body.lines() {
        if let Some(words) = line.strip_prefix("    /// ") {
            comment.push(words);
        } else if let Some(name) =
            line.strip_prefix("    ").filter(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase()))
        {
            let name = name.trim_end_matches([',', '{', ' ']).split(['(', ' ']).next().unwrap();
            rows.push_str(&row([&format!("`{}`", snake(name)), &comment.join(" ")]));
            comment.clear();
        } else if !line.starts_with("        ") {
            comment.clear();
        }
    }
    assert!(rows.lines().count() >= 5, "{path}: {rows}");
    rows
}

fn snake(name: &str) -> String {
    let mut word = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() && !word.is_empty() {
            word.push('_');
        }
        word.push(c.to_ascii_lowercase());
    }
    word
}
