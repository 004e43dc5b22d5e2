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
    if depth(text.as_bytes()) > MAX_DEPTH {
        return Some(format!("is nested deeper than {MAX_DEPTH} levels"));
    }
    let read = if may_be_too_large(text) || text.contains("\\u") {
        serde_json::from_str::<Value>(text).map(|_| ())
    } else {
        serde_json::from_str::<IgnoredAny>(text).map(|_| ())
    };
    read.err().map(|error| format!("is not JSON: {error}"))
}

/// Deepest nesting of brackets outside strings.
#[must_use]
pub fn depth(json: &[u8]) -> usize {
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

/// Whether there may be a number that is too large. Also true for some harmless texts: it only has to be quick.
fn may_be_too_large(text: &str) -> bool {
    let mut digits = 0;
    text.bytes().any(|byte| match byte {
        b'0'..=b'9' => {
            digits += 1;
            digits > MANY_DIGITS
        }
        b'e' | b'E' => std::mem::take(&mut digits) > 0,
        _ => {
            digits = 0;
            false
        }
    })
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

    proptest! {
        #[test]
        fn what_is_accepted_can_be_read(text in "[-0-9eE.,:\\[\\]{}\"a ]{0,12}|-?[0-9]{1,3}(\\.[0-9])?e[+-]?[0-9]{1,4}") {
            prop_assert_eq!(fault(&text).is_none(), serde_json::from_str::<Value>(&text).is_ok());
        }
    }
}
