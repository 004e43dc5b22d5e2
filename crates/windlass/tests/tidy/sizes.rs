//! Files stay small enough to read in one go, comments fit the width that the formatter keeps code to.

use crate::files::{root, texts};

const MAX_LINES: usize = 600;

fn width() -> usize {
    let settings: toml::Table = std::fs::read_to_string(root().join("rustfmt.toml")).unwrap().parse().unwrap();
    settings["max_width"].as_integer().unwrap().try_into().unwrap()
}

#[test]
fn no_source_is_longer_than_a_reader_can_take_in() {
    let sources = texts().into_iter().filter(|text| text.path.ends_with(".rs") || text.path.ends_with(".sql"));
    let long = sources.map(|text| (text.content.lines().count(), text.path)).filter(|(lines, _)| *lines > MAX_LINES);
    let long: Vec<_> = long.collect();
    assert!(long.is_empty(), "longer than {MAX_LINES} lines: {long:?}");
}

#[test]
fn comments_fit_the_width() {
    let width = width();
    let mut wide = Vec::new();
    for text in texts().iter().filter(|text| text.path.ends_with(".rs")) {
        for (number, line) in text.content.lines().enumerate() {
            if line.trim_start().starts_with("//") && line.chars().count() > width {
                wide.push(format!("{}:{}", text.path, number + 1));
            }
        }
    }
    assert!(wide.is_empty(), "comments wider than {width} columns:\n{}", wide.join("\n"));
}
