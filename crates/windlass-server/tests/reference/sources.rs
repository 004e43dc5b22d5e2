//! What comments in the sources say.

use crate::root;

/// Items that a source file documents: the comment and the line that follows it.
pub(crate) fn documented(path: &str) -> Vec<(String, String)> {
    let text = std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    let mut found = Vec::new();
    let mut comment: Vec<String> = Vec::new();
    for line in text.lines().map(str::trim) {
        if let Some(words) = line.strip_prefix("///") {
            comment.push(words.trim().to_owned());
        } else if !line.starts_with("#[") {
            if !comment.is_empty() {
                found.push((comment.join(" "), line.to_owned()));
            }
            comment.clear();
        }
    }
    found
}

/// A table row. Bars would end a cell.
pub(crate) fn row<const N: usize>(cells: [&str; N]) -> String {
    let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|").replace('\n', " ")).collect();
    format!("| {} |\n", cells.join(" | "))
}

/// The head of a table.
pub(crate) fn head<const N: usize>(titles: [&str; N]) -> String {
    format!("{}|{}\n", row(titles), "---|".repeat(N))
}
