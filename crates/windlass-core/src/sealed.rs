//! Sealed values as text: `windlass:sealed:1:MARK:KEY:BODY`. The form is known here, because rules compare values that
//! they cannot open: by the mark, which is in clear. Sealing and opening is the library's work.

/// What every sealed value begins with.
pub const PREFIX: &str = "windlass:sealed:1:";
/// The name of the header and of the query parameter that stand for sealed ones.
pub const PLACEHOLDER: &str = "windlass-sealed";
/// The mark of a value that is never compared.
pub const NO_MARK: &str = "-";

/// The parts of a sealed value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sealed<'a> {
    /// Names of what is equal in equal values, separated by commas, or [`NO_MARK`].
    pub mark: &'a str,
    /// The id of the key that it was sealed with.
    pub key: &'a str,
    /// The sealed bytes in base64.
    pub body: &'a str,
}

impl<'a> Sealed<'a> {
    /// The parts of a text that is a sealed value, plain or as a JSON string.
    #[must_use]
    pub fn parse(text: &'a str) -> Option<Self> {
        let bare = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
        let mut parts = bare.strip_prefix(PREFIX)?.split(':');
        let (mark, key, body) = (parts.next()?, parts.next()?, parts.next()?);
        let is_body = |c: u8| c.is_ascii_alphanumeric() || c == b'-' || c == b'_';
        let is_whole = parts.next().is_none() && !mark.is_empty() && !key.is_empty() && body.bytes().all(is_body);
        is_whole.then_some(Self { mark, key, body })
    }

    /// Whether both values have a mark in common.
    #[must_use]
    pub fn is_same(self, other: Sealed<'_>) -> bool {
        let mut marks = self.mark.split(',').filter(|mark| *mark != NO_MARK);
        marks.any(|mark| other.mark.split(',').any(|theirs| theirs == mark))
    }
}

/// Whether a text was a sealed value and is damaged: one changed bit anywhere in a sealed value makes it either this,
/// or a sealed value that does not open. Taken for clear text, it would be handed out as the value itself.
#[must_use]
pub fn is_broken(text: &str) -> bool {
    let bytes = text.as_bytes();
    // Behind a quote if it is a JSON string; the quote may be what changed.
    let begins = |at: usize| {
        let differing = |head: &[u8]| head.iter().zip(PREFIX.bytes()).filter(|(one, other)| *one != other).count();
        bytes.get(at..at + PREFIX.len()).is_some_and(|head| differing(head) <= 1)
    };
    (begins(0) || begins(1)) && !is_sealed(text)
}

/// Whether a text is, or was, a sealed value. From outside it is refused: stored in clear it could not be opened, and
/// every list that it is part of would fail.
#[must_use]
pub fn looks_sealed(text: &str) -> bool {
    is_sealed(text) || is_broken(text)
}

/// Whether a text is a sealed value.
#[must_use]
pub fn is_sealed(text: &str) -> bool {
    Sealed::parse(text).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_changed_bit_makes_a_sealed_value_look_like_clear_text() {
        for sealed in ["windlass:sealed:1:-:k1:AAA_-zz09", "\"windlass:sealed:1:k1=0f:k1:AAA_-zz09\""] {
            assert!(is_sealed(sealed) && !is_broken(sealed));
            for bit in 0..sealed.len() * 8 {
                let mut bytes = sealed.as_bytes().to_vec();
                bytes[bit / 8] ^= 1 << (bit % 8);
                // A text that is not UTF-8 is refused when it is read.
                let Ok(text) = String::from_utf8(bytes) else { continue };
                assert!(is_sealed(&text) != is_broken(&text), "{text}");
            }
        }
        for clear in ["", "\"\"", "{\"a\":1}", "windlass", "windlass:sealed", "see windlass:sealed:1:-:k:b"] {
            assert!(!is_broken(clear), "{clear}");
        }
    }

    #[test]
    fn sealed_values_are_recognized_and_compared_by_their_marks() {
        let one = Sealed::parse("windlass:sealed:1:a=1,b=2:k1:AAA_-").unwrap();
        assert_eq!(one, Sealed { mark: "a=1,b=2", key: "k1", body: "AAA_-" });
        assert_eq!(Sealed::parse("\"windlass:sealed:1:a=1,b=2:k1:AAA_-\""), Some(one));
        assert!(one.is_same(Sealed { mark: "b=2", key: "k2", body: "" }));
        assert!(!one.is_same(Sealed { mark: "b=1", key: "k1", body: "AAA_-" }));
        let none = Sealed { mark: NO_MARK, key: "k1", body: "" };
        assert!(!none.is_same(none), "unmarked values are never the same");
        for text in ["", "windlass:sealed:1:", "windlass:sealed:1:-:k", "windlass:sealed:1:-:k:b:c", "{\"a\":1}"] {
            assert_eq!(Sealed::parse(text), None, "{text}");
        }
    }
}
