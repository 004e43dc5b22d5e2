//! The files of the repository.

use std::path::{Path, PathBuf};

/// Folders with nothing written by hand.
const SKIPPED: [&str; 3] = ["target", "node_modules", "snapshots"];

/// A text of the repository, by its path from the root.
pub(crate) struct Text {
    pub(crate) path: String,
    pub(crate) content: String,
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

/// Every file and folder, by its path from the root; folders end with a slash.
pub(crate) fn paths() -> Vec<String> {
    let (root, mut found) = (root(), Vec::new());
    collect(&root, &root, &mut found);
    found.sort();
    found
}

fn collect(root: &Path, folder: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let path = entry.path().strip_prefix(root).unwrap().to_str().unwrap().to_owned();
        let is_hidden = name.starts_with('.') && name != ".ci";
        if is_hidden || SKIPPED.contains(&name.as_str()) {
            continue;
        }
        if entry.file_type().unwrap().is_dir() {
            found.push(format!("{path}/"));
            collect(root, &entry.path(), found);
        } else {
            found.push(path);
        }
    }
}

/// Everything that is written by hand: sources, SQL, documents, scripts and settings.
pub(crate) fn texts() -> Vec<Text> {
    let is_text = |path: &String| {
        let ends = [".rs", ".sql", ".md", ".toml", ".py", ".yml"].iter().any(|end| path.ends_with(end));
        ends || path.starts_with("scripts/") && !path.ends_with('/')
    };
    let read = |path: String| std::fs::read_to_string(root().join(&path)).ok().map(|content| Text { path, content });
    paths().into_iter().filter(is_text).filter_map(read).collect()
}
