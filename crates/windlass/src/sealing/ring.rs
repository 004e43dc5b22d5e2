//! The key ring: named keys. The first one seals, all of them open.

use crate::random::Random;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::fmt;

/// The most keys of a ring: each is tried for marks.
pub const MAX_KEYS: usize = 8;
const KEY_BYTES: usize = 32;
const MAX_ID: usize = 32;

/// One key. Debug output never contains its bytes.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Key {
    pub id: String,
    pub bytes: [u8; KEY_BYTES],
}

/// Named keys for values at rest. The first one seals, all of them open. Debug output contains names only.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct KeyRing(Vec<Key>);

/// Not a key ring. The message does not repeat a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("key {place}: {message}")]
pub struct KeyRingError {
    /// Which key of the ring, from 1.
    pub place: usize,
    /// What is wrong and what is accepted.
    pub message: String,
}

impl KeyRing {
    /// Reads `NAME:KEY` lines (or texts separated by commas), the key as 32 bytes in base64. Empty lines and lines that
    /// begin with `#` are skipped.
    ///
    /// ```
    /// use windlass::KeyRing;
    ///
    /// let ring = KeyRing::parse("2026-11:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=")?;
    /// assert_eq!(ring.names().collect::<Vec<_>>(), ["2026-11"]);
    /// # Ok::<(), windlass::KeyRingError>(())
    /// ```
    ///
    /// # Errors
    /// The first key that is wrong.
    pub fn parse(text: &str) -> Result<Self, KeyRingError> {
        let mut keys: Vec<Key> = Vec::new();
        let lines = text.split(['\n', ',']).map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        for (index, line) in lines.enumerate() {
            let wrong = |message: &str| KeyRingError { place: index + 1, message: message.to_owned() };
            let (id, key) = line.split_once(':').ok_or_else(|| wrong("write NAME:KEY, the key as base64"))?;
            let is_name = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
            if id.is_empty() || id.len() > MAX_ID || !id.chars().all(is_name) {
                return Err(wrong("a name has 1 to 32 letters, digits, dots, dashes or underscores"));
            }
            let bytes = STANDARD.decode(key.trim()).ok().and_then(|bytes| bytes.try_into().ok());
            let bytes =
                bytes.ok_or_else(|| wrong("a key has 32 bytes in base64; `windlass keys generate` makes one"))?;
            if keys.iter().any(|other| other.id == id || other.bytes == bytes) {
                return Err(wrong("repeats a name or a key of the ring"));
            }
            if index == MAX_KEYS {
                return Err(wrong("a ring has at most 8 keys"));
            }
            keys.push(Key { id: id.to_owned(), bytes });
        }
        Ok(Self(keys))
    }

    /// A new random key, as a line of a ring.
    #[must_use]
    pub fn generate(name: &str, random: &Random) -> String {
        format!("{name}:{}", STANDARD.encode(random.bytes::<KEY_BYTES>()))
    }

    /// The names of the keys, the one that seals first.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|key| key.id.as_str())
    }

    /// Whether it has no key: nothing is sealed, and nothing sealed can be opened.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn first(&self) -> Option<&Key> {
        self.0.first()
    }

    pub(super) fn find(&self, id: &str) -> Option<&Key> {
        self.0.iter().find(|key| key.id == id)
    }

    pub(super) fn keys(&self) -> &[Key] {
        &self.0
    }
}

impl fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_reads_lines_and_names_what_is_wrong_without_repeating_it() {
        let random = Random::seeded(7);
        let (a, b) = (KeyRing::generate("a", &random), KeyRing::generate("b", &random));
        let ring = KeyRing::parse(&format!("# the ring\n{a}\n\n {b} \n")).unwrap();
        assert_eq!(ring.names().collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(ring, KeyRing::parse(&format!("{a},{b}")).unwrap());
        assert_eq!(format!("{ring:?}"), "[\"a\", \"b\"]");
        assert!(KeyRing::parse("").unwrap().is_empty());
        for wrong in ["abc", "a b:AAAA", "a:AAAA", "a:s3cret", &format!("{a}\n{a}")] {
            let error = KeyRing::parse(wrong).unwrap_err().to_string();
            assert!(!error.contains("AAAA") && !error.contains("s3cret"), "{error}");
        }
    }
}
