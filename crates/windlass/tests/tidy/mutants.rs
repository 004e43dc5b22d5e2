//! The table of mutants stays valid: the text that each one replaces is in its file exactly once.

use crate::files::root;
use std::collections::BTreeSet;

fn text<'a>(mutant: &'a toml::Table, field: &str) -> Option<&'a str> {
    mutant.get(field).and_then(toml::Value::as_str)
}

/// The text in a file of SQL under a mark and a name: one statement, or one part of several statements.
fn under<'a>(sql: &'a str, mark: &str, name: &str) -> Option<&'a str> {
    let start = sql.find(&format!("-- {mark}: {name}\n"))?;
    let rest = &sql[start..];
    let ends = ["\n-- name: ", "\n-- part: "].map(|next| rest[1..].find(next));
    Some(ends.into_iter().flatten().min().map_or(rest, |end| &rest[..=end]))
}

#[test]
fn every_mutant_still_applies() {
    let table = std::fs::read_to_string(root().join("scripts/mutants.toml")).unwrap();
    let table: toml::Table = table.parse().unwrap();
    let tests = table["tests"].as_table().unwrap();
    let mut names = BTreeSet::new();
    let mut wrong = Vec::new();
    for mutant in table["mutant"].as_array().unwrap() {
        let mutant = mutant.as_table().unwrap();
        let field = |name: &str| text(mutant, name).unwrap_or_else(|| panic!("{mutant:?} has no `{name}`"));
        let (name, find) = (field("name"), field("find"));
        assert!(names.insert(name), "two mutants are called {name}");
        assert!(tests.contains_key(field("test")), "{name}: there is no test called {}", field("test"));
        assert_ne!(find, field("replace"), "{name} changes nothing");
        assert!(!field("breaks").is_empty());
        let content = std::fs::read_to_string(root().join(field("file"))).unwrap_or_default();
        let part = match (text(mutant, "statement"), text(mutant, "part")) {
            (Some(called), _) => under(&content, "name", called).unwrap_or_default(),
            (None, Some(called)) => under(&content, "part", called).unwrap_or_default(),
            (None, None) => &content,
        };
        let count = part.matches(find).count();
        if count != 1 {
            wrong.push(format!("{name}: `{find}` is in {} {count} times, not once", field("file")));
        }
    }
    assert!(wrong.is_empty(), "scripts/mutants.toml does not fit the sources:\n{}", wrong.join("\n"));
}
