//! The help of every command.

use std::fmt::Write as _;
use std::process::Command;

fn help(path: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
    let output = command.env_clear().env("COLUMNS", "100").args(path).arg("--help").output().unwrap();
    assert!(output.status.success(), "{path:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The names under `Commands:`.
fn commands(help: &str) -> Vec<&str> {
    let list = help.split("Commands:\n").nth(1).unwrap_or_default();
    let lines = list.lines().take_while(|line| line.starts_with("  "));
    // A line that continues a description is indented further.
    let names = lines.filter(|line| !line.starts_with("   ")).filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").collect()
}

pub(crate) fn page() -> String {
    let whole = help(&[]);
    let mut page = format!("```text\n{}\n```\n", whole.trim_end());
    for name in commands(&whole) {
        section(&mut page, &[name], 2);
    }
    assert!(page.contains("## windlass serve") && page.contains("### windlass dead replay"), "{page}");
    page
}

fn section(page: &mut String, path: &[&str], level: usize) {
    let text = help(path);
    let _ = write!(page, "\n{} windlass {}\n\n```text\n{}\n```\n", "#".repeat(level), path.join(" "), text.trim_end());
    for name in commands(&text) {
        section(page, &[path, &[name]].concat(), level + 1);
    }
}
