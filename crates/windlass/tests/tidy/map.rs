//! ARCHITECTURE.md names what exists, and every module folder is on its map.

use crate::files::{paths, root};
use std::collections::BTreeSet;

const CRATES: [&str; 4] = ["windlass-core", "windlass-macros", "windlass", "windlass-server"];

fn document() -> String {
    std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap()
}

/// What the document names in code style or links to, and is a path: ends with a slash or an extension of ours.
fn named() -> BTreeSet<String> {
    let document = document();
    let code = document.split('`').skip(1).step_by(2).flat_map(str::split_whitespace);
    let links = document.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let is_path = |word: &&str| {
        let is_plain = word.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c));
        is_plain && !word.starts_with('.') && [".rs", ".sql", ".md", ".toml", "/"].iter().any(|end| word.ends_with(end))
    };
    code.chain(links).map(|word| word.trim_end_matches([',', ';', ':'])).filter(is_path).map(str::to_owned).collect()
}

#[test]
fn every_path_that_architecture_names_exists() {
    let paths = paths();
    let exists = |name: &String| {
        // A file that has become a folder still is the module of that name.
        let folder = name.strip_suffix(".rs").map_or_else(|| name.clone(), |module| format!("{module}/"));
        paths.iter().any(|path| [name, &folder].into_iter().any(|n| path == n || path.ends_with(&format!("/{n}"))))
    };
    let missing: Vec<String> = named().into_iter().filter(|name| !exists(name)).collect();
    assert!(missing.is_empty(), "ARCHITECTURE.md names what does not exist: {missing:?}");
}

#[test]
fn every_module_folder_is_on_the_map() {
    let named = named();
    let mut missing = Vec::new();
    for of in CRATES {
        let source = format!("crates/{of}/src/");
        for path in paths() {
            let Some(folder) =
                path.strip_prefix(&source).filter(|rest| rest.matches('/').count() == 1 && rest.ends_with('/'))
            else {
                continue;
            };
            let file = format!("{}.rs", folder.trim_end_matches('/'));
            let is_named = named
                .iter()
                .any(|name| name.starts_with(folder) || name.contains(&format!("/{folder}")) || *name == file);
            if !is_named {
                missing.push(path);
            }
        }
    }
    assert!(missing.is_empty(), "ARCHITECTURE.md has no place for {missing:?}");
}
