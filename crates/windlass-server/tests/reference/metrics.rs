//! Names, types and help of the metrics, from where they are registered: a server that has done nothing yet shows few
//! of them.

use crate::root;
use crate::sources::{head, row};
use std::collections::BTreeMap;

const INTRO: &str = "\
What `GET /metrics` answers. [Observing](../guides/observing.md) has the labels and says which to watch.

";

pub(crate) fn page(shown: &str) -> String {
    let mut metrics: BTreeMap<String, (&str, String)> = BTreeMap::new();
    for file in ["mod.rs", "series.rs", "gauges.rs"] {
        let path = root().join("crates/windlass/src/metrics").join(file);
        let source = std::fs::read_to_string(path).unwrap();
        // `let help = "…";` stands before a `register` that names it.
        let mut help = "";
        for line in source.lines().map(str::trim) {
            if let Some(rest) = line.strip_prefix("let help = \"") {
                help = rest.trim_end_matches("\";");
            } else if let Some((_, rest)) = line.split_once("registry.register(\"") {
                let words: Vec<&str> = rest.split('"').collect();
                let said = if words.len() > 2 { words[2] } else { help };
                let name = words[0];
                let (kind, suffix) = match file {
                    "mod.rs" => ("info", "_info"),
                    "series.rs" if name.ends_with("_seconds") => ("histogram", ""),
                    "series.rs" => ("counter", "_total"),
                    _ => ("gauge", ""),
                };
                metrics.insert(format!("{name}{suffix}"), (kind, said.to_owned()));
            }
        }
    }
    // What a server shows is among them, with the same type.
    let mut seen = 0;
    for line in shown.lines() {
        let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' ')) else { continue };
        let known = metrics.iter().any(|(full, (of, _))| full.starts_with(name) && *of == kind);
        assert!(known, "{name} ({kind}) is registered where this test does not look");
        seen += 1;
    }
    assert!(seen >= 3 && metrics.len() >= 15, "{seen} shown, {} known", metrics.len());
    let rows = metrics.iter().map(|(name, (kind, help))| row([&format!("`{name}`"), kind, help]));
    format!("{INTRO}{}{}", head(["name", "type", "what it is"]), rows.collect::<String>())
}
