//! What a rule compares: classes with wildcards, and messages with regular expressions that run in linear time.

use regex::{Regex, RegexBuilder};
use std::fmt;
use std::hash::{Hash, Hasher};

/// The longest class pattern and the longest regular expression, in bytes.
const MAX_GLOB: usize = 128;
const MAX_REGEX: usize = 500;
/// The most memory that a compiled regular expression may take.
const REGEX_SIZE: usize = 256 * 1024;
/// How much of a message is looked at; messages are cut to about this length when they are stored.
const MAX_LOOKED_AT: usize = 8 * 1024;

/// An error class in which `*` stands for any text.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ClassGlob(String);

impl ClassGlob {
    /// Reads `Stripe*` or `Timeout`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let is_class = |b: u8| b.is_ascii_alphanumeric() || b"_.:-<>*".contains(&b);
        let is_glob = !text.is_empty() && text.len() <= MAX_GLOB && text.bytes().all(is_class);
        is_glob.then(|| Self(text.into()))
    }

    #[must_use]
    pub fn matches(&self, class: &str) -> bool {
        let mut parts = self.0.split('*');
        let Some(rest) = class.strip_prefix(parts.next().unwrap_or_default()) else { return false };
        let mut middle: Vec<&str> = parts.collect();
        let Some(last) = middle.pop() else { return rest.is_empty() };
        // Taking the first place for each part leaves the most for the rest, so there is no need to go back.
        let mut rest = rest;
        for part in middle {
            match rest.find(part) {
                Some(at) => rest = &rest[at + part.len()..],
                None => return false,
            }
        }
        rest.ends_with(last)
    }
}

impl fmt::Display for ClassGlob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A regular expression for messages: `/deadlock|timeout/i`.
#[derive(Debug, Clone)]
pub struct MessagePattern {
    text: String,
    regex: Regex,
}

impl MessagePattern {
    /// Reads `/…/` or `/…/i`.
    ///
    /// # Errors
    /// What is wrong with the expression.
    pub fn parse(text: &str) -> Result<Self, String> {
        let form = "write a regular expression between slashes, such as \"/deadlock|timeout/i\"";
        let inner = text.strip_prefix('/').and_then(|rest| rest.rsplit_once('/'));
        let (expression, ignores_case) = match inner {
            Some((expression, "")) => (expression, false),
            Some((expression, "i")) => (expression, true),
            Some((_, flags)) => return Err(format!("`{flags}` is not a flag; the only one is i")),
            None => return Err(form.into()),
        };
        if expression.is_empty() || expression.len() > MAX_REGEX {
            return Err(format!("the expression must have 1 to {MAX_REGEX} bytes; {form}"));
        }
        let built = RegexBuilder::new(expression)
            .case_insensitive(ignores_case)
            .size_limit(REGEX_SIZE)
            .dfa_size_limit(REGEX_SIZE)
            .build();
        match built {
            Ok(regex) => Ok(Self { text: text.into(), regex }),
            Err(regex::Error::CompiledTooBig(_)) => Err("the expression is too large".into()),
            Err(error) => {
                let last = error.to_string().lines().last().unwrap_or_default().to_owned();
                Err(format!("is not a regular expression ({last})"))
            }
        }
    }

    #[must_use]
    pub fn matches(&self, message: &str) -> bool {
        let end = message.floor_char_boundary(MAX_LOOKED_AT);
        self.regex.is_match(&message[..end])
    }
}

/// Two patterns are the same if they are written the same.
impl PartialEq for MessagePattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for MessagePattern {}

impl Hash for MessagePattern {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

impl fmt::Display for MessagePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
