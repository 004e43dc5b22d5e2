//! Every way into the library has an example, and the client stays small enough to scan.

use crate::files::texts;

const CLIENT: &str = "impl Windlass {";
/// A reader of the client's page should be able to scan its methods.
const MAX_METHODS: usize = 30;

/// The documented public methods of the client, each with its documentation.
fn methods() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for text in texts().iter().filter(|text| text.path.contains("crates/windlass/src/")) {
        for block in text.content.split(CLIENT).skip(1) {
            found.extend(methods_of(block.split("\n}\n").next().unwrap_or_default()));
        }
    }
    found
}

fn methods_of(block: &str) -> Vec<(String, String)> {
    let (mut docs, mut found) = (String::new(), Vec::new());
    for line in block.lines().map(str::trim) {
        let signature = line.strip_prefix("pub fn ").or_else(|| line.strip_prefix("pub async fn "));
        if let Some(signature) = signature {
            let name = signature.split(['(', '<']).next().unwrap_or_default();
            if !docs.contains("#[doc(hidden)]") {
                found.push((name.to_owned(), docs.clone()));
            }
        }
        if line.starts_with("///") || line.starts_with("#[") {
            docs.push_str(line);
        } else {
            docs.clear();
        }
    }
    found
}

#[test]
fn every_way_into_the_library_has_an_example() {
    let methods = methods();
    assert!(methods.iter().any(|(name, _)| name == "enqueue"), "the test reads the wrong files");
    let bare = methods.iter().filter(|(_, docs)| !docs.contains("```")).map(|(name, _)| name);
    let bare: Vec<_> = bare.collect();
    assert!(bare.is_empty(), "no example on `Windlass::`{bare:?}");
}

#[test]
fn the_client_stays_small_enough_to_scan() {
    let names: Vec<_> = methods().into_iter().map(|(name, _)| name).collect();
    assert!(names.len() <= MAX_METHODS, "{} methods; give them to a handle: {names:?}", names.len());
}
