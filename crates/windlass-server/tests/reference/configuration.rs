//! Every key, from the file that `windlass init` writes.

use crate::sources::{head, row};
use std::process::Command;

const INTRO: &str = "\
Keys of `windlass.toml`. A variable overrides the file, and a flag overrides both; `windlass config` shows the values in force and where each
came from. Keys with a dot belong to a section: `logs.level` is `level` under `[logs]`. Tables of queues, kinds, policies, tenants and
alert rules are described in the guides: [Operating](../guides/operating.md), [Observing](../guides/observing.md),
[Protecting what you call](../guides/protecting.md).

";

pub(crate) fn page() -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_windlass")).env_clear().args(["init", "-"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let mut page = format!("{INTRO}{}", head(["key", "default", "variable", "what it is"]));
    let (mut section, mut help) = (String::new(), String::new());
    let mut count = 0;
    for line in text.lines() {
        if let Some(name) = line.strip_prefix('[') {
            section = format!("{}.", name.trim_end_matches(']'));
        } else if line.starts_with("# [") {
            // The examples of tables follow the last key.
            break;
        } else if let Some((name, default)) = line.strip_prefix("# ").and_then(|line| line.split_once(" = ")) {
            let key = format!("{section}{name}");
            page.push_str(&row([
                &format!("`{key}`"),
                &format!("`{default}`"),
                &format!("`{}`", variable(&key)),
                &help,
            ]));
            count += 1;
        } else if let Some(words) = line.strip_prefix("# ") {
            help = words.to_owned();
        }
    }
    assert!(count > 30, "{count} keys");
    page
}

fn variable(key: &str) -> String {
    let mut name = String::from("WINDLASS_");
    for c in key.chars() {
        if c.is_ascii_uppercase() {
            name.push('_');
        }
        name.push(if c == '.' { '_' } else { c.to_ascii_uppercase() });
    }
    name
}
