//! The greeting: the server says HI, with a salt if there is a password, and the client answers HELLO.

use serde::Deserialize;
use serde_json::json;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use subtle::ConstantTimeEq as _;

/// How often the password is hashed.
pub(super) const ITERATIONS: u32 = 5_000;
/// The newest version of the protocol that is spoken here.
const VERSION: u32 = 2;
/// The longest name of a worker.
const MAX_WID: usize = 100;

/// Who is connected.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub(super) struct Hello {
    #[serde(default)]
    pub(super) hostname: String,
    /// The worker's name; producers have none.
    #[serde(default)]
    pub(super) wid: Option<String>,
    #[serde(default)]
    pub(super) labels: Vec<String>,
    #[serde(default)]
    pwdhash: Option<String>,
    /// Old clients leave it out.
    #[serde(default)]
    v: Option<u32>,
}

/// The first line, without spaces in its JSON: clients split it at spaces.
pub(super) fn hi(salt: Option<&str>) -> String {
    let greeting = match salt {
        Some(salt) => json!({ "v": VERSION, "s": salt, "i": ITERATIONS }),
        None => json!({ "v": VERSION }),
    };
    format!("+HI {greeting}\r\n")
}

/// Reads the client's answer and checks its password.
///
/// # Errors
/// Why the client is refused.
pub(super) fn read(line: &str, password: Option<&str>, salt: &str) -> Result<Hello, String> {
    let text = line.strip_prefix("HELLO").ok_or("the first command must be HELLO")?.trim();
    let text = if text.is_empty() { "{}" } else { text };
    let hello: Hello = serde_json::from_str(text).map_err(|error| format!("HELLO takes JSON: {error}"))?;
    if hello.v.is_some_and(|version| version > VERSION) {
        return Err(format!("version {VERSION} of the protocol is spoken here"));
    }
    if hello.wid.as_ref().is_some_and(|wid| wid.is_empty() || wid.len() > MAX_WID || wid.chars().any(char::is_control))
    {
        return Err(format!("wid must be 1 to {MAX_WID} bytes of plain text"));
    }
    if let Some(password) = password {
        let given = hello.pwdhash.as_deref().unwrap_or_default();
        // Some clients ignore the number of iterations and hash once.
        let is_right = |iterations| hash(password, salt, iterations).as_bytes().ct_eq(given.as_bytes());
        if !bool::from(is_right(ITERATIONS) | is_right(1)) {
            return Err("invalid password".into());
        }
    }
    Ok(hello)
}

pub(super) fn hash(password: &str, salt: &str, iterations: u32) -> String {
    let mut digest = Sha256::digest(format!("{password}{salt}"));
    for _ in 1..iterations {
        digest = Sha256::digest(digest);
    }
    hex(&digest)
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
