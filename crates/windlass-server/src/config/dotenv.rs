//! `.env` files: `NAME=value` on each line, with comments, quotes and an optional `export`.

use super::ConfigError;
use std::path::Path;

/// Reads the variables of a file, in its order.
///
/// # Errors
/// The file cannot be read, or a line is not of the form `NAME=value`.
pub(crate) fn read(path: &Path) -> Result<Vec<(String, String)>, ConfigError> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| ConfigError::new(path.display(), format!("cannot be read: {error}")))?;
    parse(&text).map_err(|(line, reported)| ConfigError::new(format!("{}:{line}", path.display()), reported))
}

fn parse(text: &str) -> Result<Vec<(String, String)>, (usize, String)> {
    let mut variables = Vec::new();
    for (position, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let wrong = |reported: &str| (position + 1, reported.to_owned());
        let line = line.strip_prefix("export ").unwrap_or(line);
        let (name, value) = line.split_once('=').ok_or_else(|| wrong("is not of the form NAME=value"))?;
        let name = name.trim();
        let is_name = |name: &str| {
            !name.starts_with(|c: char| c.is_ascii_digit())
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        };
        if name.is_empty() || !is_name(name) {
            return Err(wrong("is not of the form NAME=value: a name has letters, digits and _"));
        }
        let value = unquoted(value.trim()).ok_or_else(|| wrong("has a quote that does not end"))?;
        variables.push((name.to_owned(), value));
    }
    Ok(variables)
}

/// A value without its quotes, or without the comment after it.
fn unquoted(value: &str) -> Option<String> {
    for quote in ['"', '\''] {
        if let Some(rest) = value.strip_prefix(quote) {
            let (inner, after) = rest.split_once(quote)?;
            let after = after.trim();
            return (after.is_empty() || after.starts_with('#')).then(|| inner.to_owned());
        }
    }
    Some(value.split(" #").next().unwrap_or_default().trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn lines_are_names_and_values() {
        let text = "# limits\nMAX_EMAIL_RETRY_ATTEMPTS=5\n\nexport A = \"x # y\" # why\nB='1 2'\nC=plain # note\nD=\n";
        let read = parse(text).unwrap();
        let expected = [("MAX_EMAIL_RETRY_ATTEMPTS", "5"), ("A", "x # y"), ("B", "1 2"), ("C", "plain"), ("D", "")];
        assert_eq!(read, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }

    #[test]
    fn a_wrong_line_is_named() {
        for (text, line) in [("A=1\nnonsense", 2), ("=1", 1), ("1A=2", 1), ("A=\"x", 1), ("a b=1", 1)] {
            assert_eq!(parse(text).unwrap_err().0, line, "{text}");
        }
    }
}
