//! Fingerprints: failures that differ only in numbers, ids and names get the same one, so that a thousand dead letters
//! with one cause are shown as one line.

mod frames;

use sha2::{Digest, Sha256};
use std::fmt::Write;
use windlass_core::job::{Kind, QueueName};
use windlass_core::sealed::{Sealed, is_sealed};

/// Longest normalised message.
const MESSAGE_LIMIT: usize = 200;

/// A message without its variable parts: quoted texts, numbers and long hexadecimal words become `…`.
#[must_use]
pub fn normalise(message: &str) -> String {
    if is_sealed(message) {
        return message.to_owned();
    }
    let mut out = String::new();
    let mut rest = message.lines().next().unwrap_or_default().trim();
    while let Some(first) = rest.chars().next() {
        if out.chars().count() >= MESSAGE_LIMIT {
            break;
        }
        let taken = if let Some(length) = quoted(rest, first) {
            out.push('…');
            length
        } else if first.is_ascii_alphanumeric() {
            let length = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
            out.push_str(if varies(&rest[..length]) { "…" } else { &rest[..length] });
            length
        } else {
            out.push(first);
            first.len_utf8()
        };
        rest = &rest[taken..];
    }
    out
}

/// What a failure left.
#[derive(Debug, Clone, Copy, Default)]
pub struct Left<'a> {
    /// The class of the error; empty if unknown.
    pub class: &'a str,
    /// The message of the error.
    pub message: &'a str,
    /// The stack trace of the error.
    pub trace: Option<&'a str>,
}

/// A short stable name for class, kind, queue, and where the failure happened: the application's own frames of its
/// trace, or else its normalised message.
#[must_use]
pub fn fingerprint(left: Left<'_>, kind: &Kind, queue: &QueueName) -> String {
    // The mark of a sealed message was made from the same place.
    let sealed = Sealed::parse(left.message).map(|sealed| sealed.mark.to_owned());
    let place = sealed.unwrap_or_else(|| place_of(left.message, left.trace));
    let mut hash = Sha256::new();
    for part in [left.class, &place, kind.as_str(), queue.as_str()] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().iter().take(8).fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Where a failure happened: the application's own frames of its trace, or else its normalised message.
pub(crate) fn place_of(message: &str, trace: Option<&str>) -> String {
    trace.and_then(frames::own_frames).unwrap_or_else(|| normalise(message))
}

fn quoted(rest: &str, first: char) -> Option<usize> {
    if !matches!(first, '"' | '`' | '\'') {
        return None;
    }
    rest[1..].find(first).map(|end| end + 2)
}

fn varies(word: &str) -> bool {
    let has_digit = word.bytes().any(|b| b.is_ascii_digit());
    let is_hex = word.len() >= 8 && word.bytes().all(|b| b.is_ascii_hexdigit());
    has_digit || is_hex
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_varies_between_occurrences_is_left_out() {
        let a = normalise("order 123 of \"ann\" at 10.0.0.1:80 refused by 3f2a9c1e77");
        let b = normalise("order 9 of \"bob\" at 10.2.0.7:8080 refused by deadbeef00");
        assert_eq!(a, b);
        assert_eq!(a, "order … of … at ….….….…:… refused by …");
        assert_ne!(normalise("card declined"), normalise("card expired"));
        assert_eq!(normalise("it's broken"), "it's broken");
    }

    #[test]
    fn a_trace_decides_before_the_message() {
        let (kind, queue) = (Kind::new("email").unwrap(), QueueName::default());
        let print = |message, trace| fingerprint(Left { class: "Error", message, trace }, &kind, &queue);
        let (here, there) = (Some("at send (mail.js:4:1)"), Some("at charge (card.js:9:1)"));
        assert_eq!(print("ann is away", here), print("bob is away", here));
        assert_ne!(print("ann is away", here), print("ann is away", there));
        assert_eq!(print("no frames", Some("it broke")), print("no frames", None));
    }
}
