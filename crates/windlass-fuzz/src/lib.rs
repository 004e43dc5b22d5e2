//! Fuzzing on the stable toolchain: samples of a target are changed at random and given to a parser, which must neither
//! panic nor break the promise that the test checks. A failing input is made as small as possible and printed.
//!
//! Samples are the files of `corpus/TARGET/`. An input that once failed is added there.
//! `WINDLASS_FUZZ_CASES` says how many inputs each target gets; `scripts/test-more fuzz` gives many.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::{Config, TestRunner};
use std::path::Path;

/// Inputs for each target in an ordinary run of the tests.
const CASES: u32 = 500;
/// Bytes that mean something to a parser of numbers, JSON, HTTP, cron or durations.
const MEANINGFUL: &[&str] = &[
    "",
    "0",
    "-1",
    "9999999999999999999999",
    "1e308",
    "0.1",
    "NaN",
    "\"",
    "\\",
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    ";",
    "=",
    "/",
    "%",
    "*",
    "?",
    "#",
    "-",
    "_",
    ".",
    " ",
    "\t",
    "\r\n",
    "\n\n",
    "\0",
    "\u{7f}",
    "é",
    "\u{202e}",
    "𝔘",
    "null",
    "true",
    "ms",
    "s",
    "h",
    "d",
    "\\u0000",
    "\\ud800",
    "whsec_",
    "wl_",
    "*/0",
    "L",
    "W",
    "MON-SUN",
    "UTC",
    "+25:99",
];

/// One change of an input. Places wrap around.
#[derive(Debug, Clone)]
enum Change {
    Insert(Index, Vec<u8>),
    Replace(Index, u8),
    Remove(Index, usize),
    Repeat(Index, usize),
    Truncate(Index),
    Append(Index),
}

fn changes() -> impl Strategy<Value = Change> {
    let bytes = prop_oneof![
        4 => select(MEANINGFUL).prop_map(|text| text.as_bytes().to_vec()),
        1 => vec(any::<u8>(), 1..8),
    ];
    prop_oneof![
        4 => (any::<Index>(), bytes).prop_map(|(at, bytes)| Change::Insert(at, bytes)),
        3 => (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Change::Replace(at, byte)),
        3 => (any::<Index>(), 1..12_usize).prop_map(|(at, count)| Change::Remove(at, count)),
        1 => (any::<Index>(), 2..200_usize).prop_map(|(at, count)| Change::Repeat(at, count)),
        1 => any::<Index>().prop_map(Change::Truncate),
        1 => any::<Index>().prop_map(Change::Append),
    ]
}

fn apply(input: &mut Vec<u8>, change: Change, samples: &[Vec<u8>]) {
    let place = |at: &Index, input: &[u8]| at.index(input.len() + 1);
    match change {
        Change::Insert(at, bytes) => {
            let at = place(&at, input);
            input.splice(at..at, bytes);
        }
        Change::Replace(at, byte) if !input.is_empty() => {
            let at = at.index(input.len());
            input[at] = byte;
        }
        Change::Remove(at, count) => {
            let at = place(&at, input);
            let end = (at + count).min(input.len());
            input.drain(at..end);
        }
        Change::Repeat(at, count) => {
            let at = place(&at, input);
            let part: Vec<u8> = input[at..].iter().copied().take(4).collect();
            input.splice(at..at, part.repeat(count));
        }
        Change::Truncate(at) => input.truncate(place(&at, input)),
        Change::Append(other) => input.extend(&samples[other.index(samples.len())]),
        Change::Replace(..) => {}
    }
}

/// The samples in `corpus/TARGET/`.
///
/// # Panics
/// The target has no samples.
#[must_use]
pub fn samples(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    let files = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<_> = files.map(|file| file.expect("the corpus can be read").path()).collect();
    paths.sort();
    // One sample per line, except for files of whole answers.
    let read = |path: &std::path::PathBuf| std::fs::read(path).expect("the corpus can be read");
    let split = |bytes: Vec<u8>| bytes.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect::<Vec<_>>();
    let is_lines = |path: &Path| path.extension().is_some_and(|end| end == "lines");
    let samples: Vec<Vec<u8>> =
        paths.iter().flat_map(|path| if is_lines(path) { split(read(path)) } else { vec![read(path)] }).collect();
    assert!(!samples.is_empty(), "{target} has no samples");
    samples
}

/// Checks every sample, and many changed ones.
///
/// # Panics
/// `check` panicked: with the smallest input found.
pub fn fuzz(target: &str, check: impl Fn(&[u8])) {
    let samples = samples(target);
    samples.iter().for_each(|sample| check(sample));
    let cases = std::env::var("WINDLASS_FUZZ_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(CASES);
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let inputs = (any::<Index>(), vec(changes(), 1..12)).prop_map(|(sample, changes)| {
        let mut input = samples[sample.index(samples.len())].clone();
        changes.into_iter().for_each(|change| apply(&mut input, change, &samples));
        input
    });
    let shown = inputs.prop_map(|bytes| (String::from_utf8_lossy(&bytes).into_owned(), bytes));
    let result = TestRunner::new(config).run(&shown, |(_, bytes)| {
        check(&bytes);
        Ok(())
    });
    if let Err(error) = result {
        panic!("{target}: {error}");
    }
}
