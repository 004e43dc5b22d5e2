//! Which JSON texts are stored: those that every reader can hold.

use serde::de::IgnoredAny;
use serde_json::Value;

/// Deepest nesting of what is stored, and of the bodies of requests.
pub const MAX_DEPTH: usize = 64;
/// A number with more digits than this may be too large for every type.
const MANY_DIGITS: usize = 300;

/// What is wrong with a text that should be JSON. Numbers above 1.8e308 and halves of surrogate pairs are JSON too, but
/// many readers (ours as well) fail on every list that has one.
pub(crate) fn fault(text: &str) -> Option<String> {
    let shape = Shape::of(text.as_bytes());
    if shape.depth > MAX_DEPTH {
        return Some(format!("is nested deeper than {MAX_DEPTH} levels"));
    }
    let read = if shape.needs_values {
        serde_json::from_str::<Value>(text).map(|_| ())
    } else {
        serde_json::from_str::<IgnoredAny>(text).map(|_| ())
    };
    read.err().map(|error| format!("is not JSON: {error}"))
}

/// Deepest nesting of brackets outside strings.
#[must_use]
pub fn depth(json: &[u8]) -> usize {
    Shape::of(json).depth
}

/// What one pass over a JSON text shows. It steps over the insides of strings, which are most of a large payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Shape {
    /// Deepest nesting of brackets outside strings.
    depth: usize,
    /// Whether there may be a number that is too large or half a surrogate pair, which show only when values are made.
    /// Also true for some harmless texts: it only has to be quick.
    needs_values: bool,
}

impl Shape {
    fn of(json: &[u8]) -> Self {
        let (mut shape, mut depth, mut digits, mut at) = (Self::default(), 0_usize, 0_usize, 0);
        while let Some(byte) = json.get(at) {
            at += 1;
            let before = std::mem::take(&mut digits);
            match byte {
                b'"' => at = shape.after_string(json, at),
                b'[' | b'{' => {
                    depth += 1;
                    shape.depth = shape.depth.max(depth);
                }
                b']' | b'}' => depth = depth.saturating_sub(1),
                b'0'..=b'9' => {
                    digits = before + 1;
                    shape.needs_values |= digits > MANY_DIGITS;
                }
                b'e' | b'E' => shape.needs_values |= before > 0,
                _ => {}
            }
        }
        shape
    }

    /// The place after the string that begins here.
    fn after_string(&mut self, json: &[u8], mut at: usize) -> usize {
        while let Some(found) = memchr::memchr2(b'"', b'\\', &json[at..]) {
            at += found + 1;
            if json[at - 1] == b'"' {
                return at;
            }
            self.needs_values |= json.get(at) == Some(&b'u');
            at = (at + 1).min(json.len());
        }
        json.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_above_every_type_are_refused_and_all_others_are_not() {
        let long = |digits: usize| format!("[{}]", "9".repeat(digits));
        for text in ["1e400", "-1E+400", "{\"a\":[1.5e309]}", &long(400)] {
            assert!(fault(text).is_some_and(|why| why.contains("out of range")), "{text}");
        }
        for text in ["1e308", "1e-400", "\"1e400\"", "{\"5e\":1}", &long(308)] {
            assert_eq!(fault(text), None, "{text}");
        }
    }

    #[test]
    fn half_a_surrogate_pair_is_refused() {
        assert!(fault(r#"["\ud800"]"#).is_some());
        assert_eq!(fault(r#"["\ud83d\ude00\u0000"]"#), None);
    }

    #[test]
    fn what_is_nested_too_deeply_is_refused() {
        let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert_eq!(fault(&nested(MAX_DEPTH)), None);
        assert_eq!(fault(&nested(MAX_DEPTH + 1)).as_deref(), Some("is nested deeper than 64 levels"));
        assert_eq!(fault(&format!("\"{}\"", "[".repeat(100))), None);
    }

    /// Byte by byte: whether a byte belongs to a string depends only on those before it.
    fn slow_depth(json: &[u8]) -> usize {
        let (mut depth, mut deepest, mut in_string, mut escaped) = (0_usize, 0, false, false);
        for byte in json {
            match byte {
                _ if escaped => escaped = false,
                b'\\' if in_string => escaped = true,
                b'"' => in_string = !in_string,
                b'[' | b'{' if !in_string => {
                    depth += 1;
                    deepest = deepest.max(depth);
                }
                b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
        deepest
    }

    proptest! {
        #[test]
        fn brackets_in_strings_do_not_count(text in "[\\[{}\\]\"\\\\au]{0,40}") {
            prop_assert_eq!(depth(text.as_bytes()), slow_depth(text.as_bytes()), "{}", text);
        }

        #[test]
        fn strings_are_accepted_if_they_can_be_read(text in "\"(\\\\u[dD][89c-f]00|\\\\u00e9|\\\\n|\\\\\\\\|u|d800|é|[0-9]e400){0,6}\"") {
            prop_assert_eq!(fault(&text).is_none(), serde_json::from_str::<Value>(&text).is_ok(), "{}", text);
        }

        #[test]
        fn what_is_accepted_can_be_read(text in "[-0-9eE.,:\\[\\]{}\"a ]{0,12}|-?[0-9]{1,3}(\\.[0-9])?e[+-]?[0-9]{1,4}") {
            prop_assert_eq!(fault(&text).is_none(), serde_json::from_str::<Value>(&text).is_ok());
        }
    }
}
