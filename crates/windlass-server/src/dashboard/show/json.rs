//! Payloads and results for reading: indented, and with values that look secret masked for visitors who may only read.

use serde_json::Value;

/// The longest text that is shown whole.
const MAX_SHOWN: usize = 64 * 1024;
/// Parts of names whose values are masked.
const SECRET: [&str; 10] =
    ["password", "passwd", "secret", "token", "authorization", "apikey", "api_key", "credential", "cookie", "private"];
const MASK: &str = "••••••";

/// JSON with indentation; anything else as it is.
pub(crate) fn pretty(text: &str) -> String {
    let shown = match serde_json::from_str::<Value>(text) {
        Ok(value) => serde_json::to_string_pretty(&value).unwrap_or_else(|_| text.to_owned()),
        Err(_) => text.to_owned(),
    };
    match shown.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}…", &shown[..end]),
        None => shown,
    }
}

/// The same, with the values of fields that look secret masked.
pub(crate) fn mask(text: &str) -> String {
    let Ok(mut value) = serde_json::from_str::<Value>(text) else { return pretty(text) };
    hide(&mut value);
    pretty(&value.to_string())
}

fn hide(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let name = name.to_lowercase();
                match SECRET.iter().any(|part| name.contains(part)) {
                    true => *value = Value::String(MASK.into()),
                    false => hide(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(hide),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_look_secret_are_masked_at_any_depth() {
        let shown = mask(r#"{"to":"ann","auth":[{"apiKey":"abc","n":1}],"userPassword":{"x":"y"}}"#);
        assert!(shown.contains("ann") && shown.contains("\"n\": 1"), "{shown}");
        assert!(!shown.contains("abc") && !shown.contains("\"y\""), "{shown}");
    }

    #[test]
    fn text_that_is_not_json_is_shown_as_it_is() {
        assert_eq!(pretty("<b>"), "<b>");
    }
}
