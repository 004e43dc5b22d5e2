//! Words that the glossary has replaced do not come back: not in sources, SQL, documents or scripts.

use crate::files::texts;
use std::collections::BTreeMap;

/// Words that are gone. A word here may be part of a name: `settle_all` and `SettleAll` are found too.
const GONE: &[&str] = &[
    "book",
    "books",
    "dice",
    "fate",
    "hasten",
    "hastened",
    "heard",
    "lanes",
    "patience",
    "people",
    "person",
    "sabotage",
    "sabotaged",
    "seats",
    "settle",
    "settled",
    "settles",
    "settling",
    "told",
    "turns",
    "verb",
    "verbs",
    "wish",
    "wishes",
];

/// Places where a word is meant in its plain sense: part of the path, and the word.
const ALLOWED: &[(&str, &str)] = &[("tests/tidy/", ""), ("src/store/sqlite/", "lanes"), ("docs/book.toml", "book")];

/// The words of a text, in lower case, names taken apart.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    for letter in text.chars() {
        let begins = letter.is_uppercase() && !word.is_empty() && !word.ends_with(|last: char| last.is_uppercase());
        if begins || !letter.is_alphabetic() {
            words.extend((!word.is_empty()).then(|| std::mem::take(&mut word).to_lowercase()));
        }
        if letter.is_alphabetic() {
            word.push(letter);
        }
    }
    words.extend((!word.is_empty()).then(|| word.to_lowercase()));
    words
}

/// Where these words are: `path: word (count)`.
fn uses(wanted: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for text in texts() {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        let is_allowed =
            |word: &str| ALLOWED.iter().any(|(place, of)| text.path.contains(place) && (of.is_empty() || *of == word));
        for word in words(&text.content) {
            if wanted.contains(&word.as_str()) && !is_allowed(&word) {
                *counts.entry(word).or_default() += 1;
            }
        }
        found.extend(counts.into_iter().map(|(word, count)| format!("{}: {word} ({count})", text.path)));
    }
    found
}

#[test]
fn retired_words_do_not_come_back() {
    let found = uses(GONE);
    assert!(found.is_empty(), "the glossary has other words for these:\n{}", found.join("\n"));
}

#[test]
fn names_are_taken_apart() {
    assert_eq!(
        words("let run_now = SettleAll::of(2, HTTPCall);"),
        ["let", "run", "now", "settle", "all", "of", "httpcall"]
    );
}
