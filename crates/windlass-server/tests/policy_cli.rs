//! `windlass policy` as users see it: golden output, exit codes, width and colour.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::process::{Command, Output};

fn windlass(columns: &str, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_windlass")).args(args).env("COLUMNS", columns).output().unwrap()
}

fn stdout(columns: &str, args: &[&str]) -> String {
    let output = windlass(columns, args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stderr.is_empty());
    String::from_utf8(output.stdout).unwrap()
}

/// The error message; all bad input ends with exit code 2 and prints nothing else.
fn refusal(args: &[&str]) -> String {
    let output = windlass("100", args);
    assert_eq!(output.status.code(), Some(2), "{args:?}");
    assert!(output.stdout.is_empty(), "{args:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn the_presets_are_listed_with_their_numbers() {
    insta::assert_snapshot!("list", stdout("110", &["policy", "list"]));
    insta::assert_snapshot!("list_json", stdout("110", &["policy", "list", "--json"]));
}

#[test]
fn a_preview_shows_numbers_and_a_plot() {
    for (name, args) in [
        ("preview_exponential", vec!["exponential"]),
        ("preview_full_jitter_ten", vec!["full-jitter", "--count", "10"]),
        ("preview_stepped", vec!["stepped"]),
        ("preview_queue_worker_ten", vec!["queue-worker", "--count", "10"]),
        ("preview_once", vec!["once"]),
        ("preview_decorrelated", vec!["exponential:base=1s,cap=30s,jitter=decorrelated,retries=5"]),
    ] {
        insta::assert_snapshot!(name, stdout("90", &[vec!["policy", "preview"], args].concat()));
    }
}

#[test]
fn a_preview_in_json_is_as_documented() {
    let text = stdout("90", &["policy", "preview", "full-jitter", "--json"]);
    insta::assert_snapshot!("preview_json", text);
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let second = serde_json::json!({"retry": 2, "delayMs": 1000, "minMs": 0, "maxMs": 1000, "totalMs": 1500});
    assert_eq!(value["delays"][1], second);
    assert_eq!(value["delays"].as_array().unwrap().len(), 3);
}

#[test]
fn every_row_of_the_reference_table_is_what_preview_prints() {
    for (name, delays) in [
        ("stepped", "30s 1m 2m 2m 2m 2m 2m 2m 2m 2m"),
        ("full-jitter", "500ms 1s 2s 4s 8s 16s 30s 30s 30s 30s"),
        ("exponential", "1m 2m 4m 8m 16m 32m 1h 1h 1h 1h"),
        ("linear", "1m 2m 3m 4m 5m 6m 7m 8m 9m 10m"),
        ("fixed", "1m 1m 1m 1m 1m 1m 1m 1m 1m 1m"),
        ("fibonacci", "1m 1m 2m 3m 5m 8m 13m 21m 34m 55m"),
        ("http", "1s 2s 4s 8s 16s 32s 1m4s 2m8s 4m16s 5m"),
        ("queue-worker", "1s 2s 4s 8s 16s 32s 1m 1m 1m 1m"),
        ("financial", "1s 2s 4s 8s 16s"),
        ("low-latency", "100ms 200ms"),
    ] {
        let count = delays.split(' ').count().to_string();
        let text = stdout("200", &["policy", "preview", name, "--count", &count]);
        let shown: Vec<&str> = text
            .lines()
            .filter(|line| line.trim_start().starts_with(|c: char| c.is_ascii_digit()))
            .filter_map(|line| line.split_whitespace().nth(1))
            .collect();
        assert_eq!(shown.join(" "), delays, "{name}");
    }
}

#[test]
fn a_policy_is_explained_in_words() {
    insta::assert_snapshot!("explain", stdout("80", &["policy", "explain", "exponential"]));
    let http = stdout("200", &["policy", "explain", "http"]);
    assert!(http.contains("retries every failure"), "{http}");
    let handler = stdout("200", &["policy", "explain", "http", "--for", "handler"]);
    assert!(handler.contains("gives up at once on ValidationError"), "{handler}");
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    for columns in [60_usize, 80, 120] {
        for args in [["policy", "preview", "queue-worker"], ["policy", "explain", "fibonacci"]] {
            let text = stdout(&columns.to_string(), &args);
            let widest = text.lines().map(|line| line.chars().count()).max().unwrap();
            assert!(widest <= columns, "{columns}: {text}");
        }
    }
}

#[test]
fn a_narrow_terminal_shows_only_the_numbers() {
    let text = stdout("44", &["policy", "preview", "queue-worker"]);
    assert!(!text.contains('●') && text.contains("1s300ms"), "{text}");
}

#[test]
fn no_escape_sequences_reach_a_pipe() {
    assert!(!stdout("90", &["policy", "preview", "exponential"]).contains('\x1b'));
    assert!(!stdout("90", &["policy", "list"]).contains('\x1b'));
}

#[test]
fn a_wrong_policy_is_refused_with_a_caret_and_the_accepted_forms() {
    insta::assert_snapshot!("refused_name", refusal(&["policy", "preview", "expnential"]));
    insta::assert_snapshot!("refused_value", refusal(&["policy", "preview", "exponential:base=1s,cap=soon"]));
    insta::assert_snapshot!("refused_key", refusal(&["policy", "explain", "http:retires=3"]));
    refusal(&["policy", "preview", ""]);
    refusal(&["policy", "preview", "é\n:x"]);
}

#[test]
fn wrong_usage_is_refused_with_exit_code_2() {
    for args in [
        vec!["policy"],
        vec!["policy", "preview"],
        vec!["policy", "preview", "http", "--count", "0"],
        vec!["policy", "preview", "http", "--count", "1001"],
        vec!["policy", "preview", "http", "--for", "nobody"],
        vec!["nope"],
        vec![],
    ] {
        refusal(&args);
    }
}

#[test]
fn help_has_examples() {
    let text = stdout("100", &["policy", "preview", "--help"]);
    assert!(text.contains("windlass policy preview full-jitter"), "{text}");
}
