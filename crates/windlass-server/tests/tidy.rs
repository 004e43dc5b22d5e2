//! Rules about the sources that the compiler does not know.

#![allow(clippy::unwrap_used)] // A test that cannot go on has failed.

use std::fs;
use std::path::{Path, PathBuf};

/// The server parses, calls the client and shows. What it needs of a store is on the client's handles; the benchmark
/// and the tests may use `windlass::low_level`, and say so.
#[test]
fn the_server_works_through_the_client() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut wrong = Vec::new();
    for path in sources(&root) {
        let place = path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
        let may_use_store = LOW_LEVEL.iter().any(|allowed| place.starts_with(allowed));
        for (number, line) in fs::read_to_string(&path).unwrap().lines().enumerate() {
            let uses_store = line.contains("low_level") || line.contains(".store()");
            if uses_store && !may_use_store {
                wrong.push(format!("{place}:{}: {}", number + 1, line.trim()));
            }
        }
    }
    assert!(wrong.is_empty(), "these lines reach for the store:\n{}", wrong.join("\n"));
}

/// Where the store itself may be used.
const LOW_LEVEL: &[&str] = &["bench/", "faktory/tests/", "http/tests/"];

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}
