//! Golden output: tables at the width of a wide terminal, a narrow one, and a pipe; JSON; help.

use crate::world::{World, without_column};

#[test]
fn a_history_is_a_table_of_attempts() {
    let world = World::of_2026();
    insta::assert_snapshot!("history_wide", world.out("140", &["history", "2"]));
    insta::assert_snapshot!("history_narrow", world.out("60", &["history", "2"]));
    insta::assert_snapshot!("history_exhausted", world.out("120", &["history", "3"]));
    insta::assert_snapshot!("history_at_most_once", world.out("100", &["history", "5"]));
    insta::assert_snapshot!("history_none_yet", world.out("100", &["history", "7"]));
    let items = world.json(&["history", "2"]);
    let labels: Vec<&str> = items["items"].as_array().unwrap().iter().map(|i| i["label"].as_str().unwrap()).collect();
    assert_eq!(labels, ["Initial", "Retry #1", "Retry #2"]);
}

#[test]
fn jobs_and_dead_letters_are_lists_that_fit() {
    let world = World::of_2026();
    insta::assert_snapshot!("jobs_wide", without_column(&world.out("180", &["jobs"]), "when", "why"));
    insta::assert_snapshot!("jobs_narrow", without_column(&world.out("70", &["jobs"]), "when", "why"));
    let failed = ["jobs", "--state", "failed", "--tenant", "acme"];
    insta::assert_snapshot!("jobs_filtered", without_column(&world.out("180", &failed), "when", "why"));
    insta::assert_snapshot!("dead", without_column(&world.out("180", &["dead"]), "when", "why"));
    let groups = world.out("200", &["dead", "groups"]);
    insta::assert_snapshot!("dead_groups", without_column(&groups, "last", "example"));
    insta::assert_snapshot!("dead_show", world.out("100", &["dead", "show", "3"]));
    insta::assert_snapshot!("queues", world.out("120", &["queues"]));
}

#[test]
fn no_line_is_wider_than_the_screen_and_none_has_escapes() {
    let world = World::of_2026();
    for columns in [60, 80, 100, 140] {
        for args in [
            vec!["jobs"],
            vec!["jobs", "show", "3"],
            vec!["dead"],
            vec!["history", "3"],
            vec!["stats"],
            vec!["schedules"],
            vec!["doctor"],
        ] {
            let text = String::from_utf8(world.run(&columns.to_string(), &args).stdout).unwrap();
            assert!(!text.contains('\x1b'), "{args:?}");
            // A path or a URL is one word and is not broken.
            let broken = text.lines().find(|line| line.chars().count() > columns && line.contains(' '));
            assert_eq!(broken, None, "{args:?} at {columns}:\n{text}");
        }
    }
}

#[test]
fn every_command_has_help_with_examples() {
    let world = World::empty();
    for command in [
        "serve",
        "work",
        "enqueue",
        "jobs",
        "history",
        "dead",
        "schedules",
        "queues",
        "policy",
        "simulate",
        "stats",
        "tail",
        "demo",
        "workers",
        "bench",
        "backup",
        "token",
        "config",
        "migrate",
        "doctor",
        "completions",
    ] {
        let text = world.out("100", &[command, "--help"]);
        assert!(text.contains("Examples:") && text.contains(&format!("windlass {command}")), "{command}: {text}");
        assert!(command == "completions" || text.contains("Exit codes: 0"), "{command}");
    }
    assert!(world.out("100", &["--help"]).contains("Exit codes: 0 done, 1 failed, 2 usage or bad input, 3 not found"));
}

#[test]
fn completion_scripts_are_written() {
    let world = World::empty();
    for (shell, sign) in [("bash", "complete -F"), ("zsh", "#compdef windlass"), ("fish", "complete -c windlass")] {
        let script = world.out("100", &["completions", shell]);
        assert!(script.contains(sign) && script.contains("schedules"), "{shell}");
    }
}
