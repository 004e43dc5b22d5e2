//! The calls of a document: its `sh` blocks run as one script with a real server behind `curl`.

use crate::page::Page;
use crate::place::Place;

/// Runs curl silently with a time limit, and records its arguments, the status and the answer.
const CURL: &str = r#"curl() {
    case "$*" in "-N "*) most=1 ;; *) most=30 ;; esac
    status=$(command curl -m $most -o body -w '%{http_code}' "$@")
    printf '%s\n%s\n' "$(printf '%s' "$*" | tr '\n' ' ')" "$status" >> calls
    tr '\n' ' ' < body >> calls && echo >> calls
    : > body
}
: > body; : > calls
"#;

/// Where the documents find the server.
const DOCUMENTED: &str = "127.0.0.1:9463";

pub(crate) struct Call {
    pub(crate) arguments: String,
    pub(crate) status: u16,
    pub(crate) body: String,
}

/// The calls a document makes, from its first to its last.
pub(crate) fn made(place: &mut Place, page: &Page) -> Vec<Call> {
    let script = format!("{CURL}{}", page.script()).replace(DOCUMENTED, &place.server());
    place.run(&script, "");
    let written = place.read("calls");
    let mut lines = written.lines();
    let mut calls = Vec::new();
    while let (Some(arguments), Some(status), Some(body)) = (lines.next(), lines.next(), lines.next()) {
        calls.push(Call { arguments: arguments.into(), status: status.parse().unwrap_or(0), body: body.into() });
    }
    calls
}

/// The expected status of a call.
pub(crate) fn expected(arguments: &str) -> u16 {
    let has = |part: &str| arguments.contains(part);
    if has("dead-letters/1") {
        // Nothing has failed yet.
        404
    } else if has("\"lease\":\"…\"") {
        // A lease that the reader fills in.
        422
    } else if has("/jobs -H") || has("/jobs/batch") || has("/schedules -H") || has("/trigger") {
        201
    } else {
        200
    }
}
