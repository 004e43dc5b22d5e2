//! Frames: the places in a program that a stack trace names, without what varies between two occurrences. Traces of
//! Python, JavaScript, Java, Ruby, Go, Rust and the like are read by their common forms.

/// The most frames that count: the rest of a deep trace is how the program got there.
const MAX_FRAMES: usize = 8;

/// Parts of paths and names of code that the application did not write.
const FOREIGN: &[&str] = &[
    "node_modules",
    "node:",
    "site-packages",
    "dist-packages",
    "/lib/python",
    "<frozen ",
    ".cargo/registry",
    "/rustc/",
    "at java.",
    "at jdk.",
    "at sun.",
    "java.base/",
    "/gems/",
    "/usr/local/go/",
    "/usr/lib/",
];

/// The application's own frames of a trace, or all if none is its own; `None` if the text has no frames.
pub(super) fn own_frames(trace: &str) -> Option<String> {
    let lines = || trace.lines().filter(|line| is_frame(line));
    let own: Vec<String> = lines().filter(|line| !is_foreign(line)).map(place).take(MAX_FRAMES).collect();
    let frames = if own.is_empty() { lines().map(place).take(MAX_FRAMES).collect() } else { own };
    (!frames.is_empty()).then(|| frames.join("\n"))
}

fn is_foreign(line: &str) -> bool {
    FOREIGN.iter().any(|part| line.contains(part))
}

/// `at send (mail.js:4:1)`, `File "mail.py", line 4, in send`, `mail.rb:4:in 'send'`, `/src/mail.go:4 +0x1d`
fn is_frame(line: &str) -> bool {
    let text = line.trim_start();
    let is_indented = text.len() < line.len();
    let names_line = || text.split([' ', ')']).any(ends_with_line);
    text.starts_with("at ")
        || (text.starts_with("File \"") && text.contains(", line "))
        || text.contains(":in ")
        || (is_indented && text.contains('/') && names_line())
}

/// `mail.go:4`
fn ends_with_line(word: &str) -> bool {
    word.rsplit_once(':')
        .is_some_and(|(path, line)| !path.is_empty() && !line.is_empty() && line.bytes().all(|b| b.is_ascii_digit()))
}

/// A frame without folders, lines and addresses: they change with every build and every machine.
fn place(line: &str) -> String {
    let words = line.split_whitespace().map(|word| {
        let name = word.rsplit(['/', '\\']).next().unwrap_or(word);
        name.split(':').filter(|part| !is_number(part)).collect::<Vec<_>>().join(":")
    });
    words.filter(|word| !word.is_empty() && !is_number(word)).collect::<Vec<_>>().join(" ")
}

fn is_number(word: &str) -> bool {
    let digits = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    let digits = digits
        .strip_prefix("0x")
        .map_or_else(|| digits.to_owned(), |hex| hex.replace(|c: char| c.is_ascii_hexdigit(), "0"));
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_read_without_what_varies() {
        for (one, other) in [
            (
                "Error: order 7\n    at send (/srv/1/mail.js:4:11)\n    at node:internal/process:1:2",
                "Error: order 8\n    at send (/srv/2/mail.js:9:3)\n    at node:internal/timers:7:7",
            ),
            (
                "Traceback (most recent call last):\n  File \"/app/mail.py\", line 4, in send\nValueError: 7",
                "Traceback (most recent call last):\n  File \"/srv/mail.py\", line 90, in send\nValueError: 8",
            ),
            ("\tat com.acme.Mail.send(Mail.java:4)\n\tat java.base/x", "\tat com.acme.Mail.send(Mail.java:77)"),
            ("mail.rb:4:in 'send'", "/srv/mail.rb:5:in 'send'"),
            ("main.send()\n\t/src/mail.go:4 +0x1d", "main.send()\n\t/ci/mail.go:8 +0x2f"),
            (
                "   3: app::send\n             at ./src/mail.rs:4:9",
                "  17: app::send\n             at ./src/mail.rs:8:1",
            ),
        ] {
            assert_eq!(own_frames(one).unwrap(), own_frames(other).unwrap());
        }
    }

    #[test]
    fn other_places_have_other_frames() {
        assert_ne!(own_frames("at send (mail.js:4:1)"), own_frames("at charge (card.js:4:1)"));
        assert_ne!(own_frames("at send (mail.js:4:1)"), own_frames("at send (sms.js:4:1)"));
    }

    #[test]
    fn frames_of_libraries_count_only_if_there_are_no_others() {
        let library = "    at get (/app/node_modules/http/a.js:1:1)";
        let own = "    at send (/app/mail.js:4:1)";
        assert_eq!(own_frames(&format!("{library}\n{own}")), own_frames(own));
        assert!(own_frames(library).is_some());
    }

    #[test]
    fn a_text_without_frames_has_none() {
        for text in ["", "it broke", "order 7: card declined", "\u{0}\n\n"] {
            assert_eq!(own_frames(text), None, "{text:?}");
        }
    }
}
