//! `windlass simulate` as users see it: golden output, exit codes, width and colour.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use serde_json::Value;
use std::process::{Command, Output};

fn windlass(columns: &str, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
    command.arg("simulate").args(args).env("COLUMNS", columns).output().unwrap()
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

/// A small scenario under two policies with short names.
const SMALL: [&str; 10] = [
    "--jobs",
    "500",
    "--capacity",
    "20",
    "--outage",
    "20s",
    "--policy",
    "herd=fixed:base=8s,jitter=none,retries=9",
    "--policy",
    "spread=fixed:base=8s,jitter=full,retries=9",
];

#[test]
fn policies_are_compared_in_figures_and_curves() {
    insta::assert_snapshot!("small", stdout("90", &SMALL));
    insta::assert_snapshot!("small_narrow", stdout("50", &SMALL));
    insta::assert_snapshot!("defaults", stdout("100", &[]));
    let steady = ["--arrival", "50/s", "--jobs", "9000", "--outage", "30s@1m", "--latency", "200ms"];
    insta::assert_snapshot!("steady", stdout("100", &[&steady[..], &["--retry-after", "5s"]].concat()));
}

#[test]
fn the_report_in_json_holds_the_same_figures() {
    let text = stdout("90", &[&SMALL[..], &["--json"]].concat());
    insta::assert_snapshot!("small_json", text);
    let report: Value = serde_json::from_str(&text).unwrap();
    for item in report["items"].as_array().unwrap() {
        assert_eq!(item["succeeded"].as_u64().unwrap() + item["givenUp"].as_u64().unwrap(), 500);
        let load = item["load"].as_array().unwrap();
        let calls: u64 = load.iter().map(|point| point["calls"].as_u64().unwrap()).sum();
        assert_eq!(calls, item["calls"].as_u64().unwrap());
    }
}

#[test]
fn a_load_curve_in_json_stays_small_however_long_the_run() {
    let text =
        stdout("90", &["--jobs", "5", "--outage", "6d", "--policy", "exponential:base=1h,retries=200", "--json"]);
    let report: Value = serde_json::from_str(&text).unwrap();
    assert!(report["items"][0]["load"].as_array().unwrap().len() <= 1000);
}

#[test]
fn the_same_seed_gives_the_same_output_and_another_seed_another() {
    let with_seed = |seed| stdout("90", &[&SMALL[..], &["--seed", seed, "--json"]].concat());
    assert_eq!(with_seed("7"), with_seed("7"));
    assert_ne!(with_seed("7"), with_seed("8"));
}

#[test]
fn other_policies_do_not_change_the_figures_of_a_policy() {
    let item = |policies: &[&str]| {
        let flags: Vec<&str> = policies.iter().flat_map(|p| ["--policy", p]).collect();
        let report: Value =
            serde_json::from_str(&stdout("90", &[&flags[..], &["--jobs", "500", "--json"]].concat())).unwrap();
        let items = report["items"].as_array().unwrap().clone();
        let mut item = items.into_iter().find(|item| item["name"] == "full-jitter").unwrap();
        // The curves share one time axis, which is as long as the longest run.
        item["load"].take();
        item
    };
    assert_eq!(item(&["full-jitter"]), item(&["exponential", "full-jitter"]));
}

#[test]
fn the_svg_shows_every_policy_with_axes_and_a_legend() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("herd.svg");
    let text = stdout("90", &[&SMALL[..], &["--svg", path.to_str().unwrap()]].concat());
    assert!(text.contains("Wrote "), "{text}");
    let svg = std::fs::read_to_string(path).unwrap();
    for part in ["herd", "spread", "capacity 20/s", "target down", ">10s<", ">100<", "given up"] {
        assert!(svg.contains(part), "{part}: {svg}");
    }
    insta::assert_snapshot!("small_svg", svg);
}

#[test]
fn an_svg_that_cannot_be_written_is_a_failure() {
    let output = windlass("90", &["--jobs", "1", "--svg", "/nowhere/at/all.svg"]);
    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("--svg: cannot write /nowhere/at/all.svg"), "{error}");
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let long = "exponential:base=1s,factor=2,cap=5m,jitter=full,retries=5,giveUpOn=ValidationError|NotFoundError|404";
    for columns in [40_usize, 60, 80, 100, 140] {
        let text =
            stdout(&columns.to_string(), &["--jobs", "500", "--policy", long, "--policy", "http", "--latency", "10ms"]);
        let widest = text.lines().max_by_key(|line| line.chars().count()).unwrap();
        assert!(widest.chars().count() <= columns, "{columns}: {widest}");
    }
}

#[test]
fn no_escape_sequences_reach_a_pipe() {
    assert!(!stdout("90", &SMALL).contains('\x1b'));
}

#[test]
fn jobs_left_at_the_limit_are_reported() {
    let forever = ["--jobs", "3", "--outage", "7d", "--policy", "fixed:base=1d,cap=none,retries=100"];
    let text = stdout("100", &forever);
    assert!(text.contains("3 jobs were still live"), "{text}");
}

#[test]
fn wrong_flags_are_refused_by_name_with_the_accepted_form() {
    for (args, parts) in [
        (vec!["--jobs", "0"], vec!["--jobs", "1..=1000000"]),
        (vec!["--jobs", "1000001"], vec!["--jobs", "1..=1000000"]),
        (vec!["--jobs", "many"], vec!["--jobs", "many"]),
        (vec!["--capacity", "0"], vec!["--capacity", "1..=10000000"]),
        (vec!["--outage", "soon"], vec!["--outage", "`soon`", "30s", "2m@30s"]),
        (vec!["--outage", "2m@x"], vec!["--outage", "`x`", "2m@30s"]),
        (vec!["--outage", "8d"], vec!["--outage", "at most 7d"]),
        (vec!["--outage", "4d@4d"], vec!["--outage", "within 7d"]),
        (vec!["--arrival", "fast"], vec!["--arrival", "`fast`", "100/s"]),
        (vec!["--arrival", "0/s"], vec!["--arrival", "1 to 10000000", "100/s"]),
        (vec!["--arrival", "5/fortnight"], vec!["--arrival", "100/s, 6000/m, 50/h"]),
        (vec!["--arrival", "1/h"], vec!["--arrival", "10000 jobs at 1/h", "at most 7d"]),
        (vec!["--latency", "2h"], vec!["--latency", "at most 1h"]),
        (vec!["--retry-after", "-"], vec!["--retry-after", "30s"]),
        (vec!["--seed", "x"], vec!["--seed", "digit"]),
        (vec!["--policy", "expnential"], vec!["--policy", "exponential"]),
        (vec!["--policy", "bad name=http"], vec!["--policy", "letters"]),
        (vec!["--policy", "mine=http:cap=soon"], vec!["--policy", "position 10", "cap"]),
        (vec!["stray"], vec!["stray"]),
    ] {
        let error = refusal(&args);
        for part in parts {
            assert!(error.contains(part), "{args:?}: {part}: {error}");
        }
    }
    let nine = ["--policy", "http"].repeat(9);
    assert!(refusal(&nine).contains("--policy: 9 policies are too many; give at most 8"));
}

#[test]
fn help_has_examples_and_says_what_is_not_modelled() {
    let text = stdout("100", &["--help"]).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("windlass simulate --policy full-jitter --policy stepped"), "{text}");
    assert!(text.contains("more harm than is shown"), "{text}");
}
