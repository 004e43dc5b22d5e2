//! The file that `windlass init` writes: every key with its help and default, commented out, and an example of each
//! table.

use super::keys::{KEYS, Key};
use serde_json::Value;
use std::fmt::Write as _;

const HEAD: &str = "\
# Windlass reads this file when it starts: from the current directory, or as `--config FILE` names it.
# Every line that begins with `# ` and has a `=` shows a default: remove the `# ` to change it.
# A WINDLASS_… variable overrides a line here (store: WINDLASS_STORE), and a flag overrides both.
# `windlass config` prints the values in force and where each came from.
";

/// Tables with names of their own; the examples are valid as they are.
const TABLES: &str = r#"
# How jobs are retried where nothing nearer says otherwise: `windlass policy list` shows the presets, and
# `windlass policy preview exponential` what one does.
# [defaults]
# policy = "exponential"

# Settings of a queue: retry policy, how long finished jobs are kept, limits.
# [queues.email]
# policy = "full-jitter:retries=5"
# retention = { succeeded = "1d", failed = "forever" }

# Retry policies with a name, for queues, kinds and jobs.
# [policies]
# patient = "exponential:base=10s,cap=6h,jitter=full,retries=20"

# Where a tenant's finished jobs are reported.
# [tenants.acme]
# webhook = { url = "https://acme.example/hooks/jobs" }

# Alert rules: the name of a measure, or any name with `measure`. Rules here replace the default ones.
# [alerts.rules.oldest_due]
# threshold = "5m"
"#;

/// The text of the file. The keys in `set` have their values and are not commented out.
pub(crate) fn template(set: &[(&str, Value)]) -> String {
    let mut text = HEAD.to_owned();
    let mut section = "";
    for key in KEYS {
        let (under, name) = key.name.rsplit_once('.').unwrap_or(("", key.name));
        if under != section {
            section = under;
            let _ = write!(text, "\n[{under}]\n");
        }
        let given = set.iter().find(|(name, _)| *name == key.name);
        line(&mut text, key, name, given.map(|(_, value)| value));
    }
    text.push_str(TABLES);
    text
}

fn line(text: &mut String, key: &Key, name: &str, given: Option<&Value>) {
    // Texts, lists of texts, numbers and flags are written alike in JSON and in TOML.
    let (mark, value) = given.map_or_else(|| ("# ", key.default()), |value| ("", value.clone()));
    let _ = write!(text, "\n# {}\n{mark}{name} = {value}\n", capital(key.help));
}

fn capital(help: &str) -> String {
    let mut chars = help.chars();
    let first = chars.next().map(char::to_uppercase);
    let ends = if help.ends_with(['.', '…']) { "" } else { "." };
    first.into_iter().flatten().chain(chars).chain(ends.chars()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, file};
    use serde_json::json;
    use std::path::Path;

    fn read(text: &str) -> Config {
        let mut config = Config::defaults();
        file::parse(&mut config, Path::new("windlass.toml"), text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        config
    }

    #[test]
    fn as_written_it_changes_nothing_but_what_was_given() {
        let fresh = read(&template(&[]));
        assert!(fresh.values.values().all(|(_, source)| *source == crate::config::Source::Default));
        let given = read(&template(&[("listen", json!("127.0.0.1:8080"))]));
        assert_eq!(given.text("listen"), "127.0.0.1:8080");
    }

    #[test]
    fn with_every_line_in_force_it_has_the_defaults_and_valid_tables() {
        fn in_force(line: &str) -> &str {
            let rest = line.strip_prefix("# ").unwrap_or(line);
            if rest.starts_with('[') || rest.split(' ').nth(1) == Some("=") { rest } else { line }
        }
        let text: String = template(&[]).lines().map(|line| format!("{}\n", in_force(line))).collect();
        let config = read(&text);
        for key in KEYS {
            let (value, source) = &config.values[key.name];
            assert_eq!(*value, key.default(), "{}", key.name);
            assert!(matches!(source, crate::config::Source::File { .. }), "{} is not in the file", key.name);
        }
        assert!(config.settings.len() >= 4 && config.file_rules().count() == 1);
    }
}
