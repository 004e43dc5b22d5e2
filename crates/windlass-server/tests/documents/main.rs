//! The documents are real: their commands run in a separate directory, and the shown output is compared with theirs.
//! `WINDLASS_TEST_REWRITE=1` writes the output into the documents instead; read the diff before you commit it.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod calls;
mod chance;
mod page;
mod place;

use page::Page;
use place::Place;
use std::process::Command;

/// Runs all commands of a document in order. Returns how many there were.
fn follow(name: &str) -> usize {
    let mut page = Page::read(name);
    let mut place = Place::new();
    let examples = page.examples();
    for example in &examples {
        let printed = place.run(&example.command, &example.shown);
        if std::env::var_os("WINDLASS_TEST_REWRITE").is_some() {
            page.replace(example, &printed);
            continue;
        }
        let (real, reported) = (chance::masked(&printed), chance::masked(&example.shown));
        assert_eq!(
            real, reported,
            "{name}: $ {}\n--- printed:\n{printed}\n--- shown:\n{}",
            example.command, example.shown
        );
    }
    page.save();
    for command in page.commands() {
        assert!(place.succeeds(&command), "{name}: {command}");
    }
    examples.len()
}

#[test]
fn the_readme_is_real() {
    assert!(follow("README.md") >= 7);
}

/// The block that readers paste: all of it, in one shell. Building is left out; the binary under test is on the path.
#[test]
fn the_tour_can_be_pasted_whole() {
    let page = Page::read("README.md");
    let tour = page.pasted();
    let (build, rest) = tour.split_once('\n').unwrap();
    assert!(build.starts_with("cargo build --release"), "{build}");
    let printed = Place::new().run_all(rest);
    for part in
        ["wrote windlass.toml", "is ready", "failed (exhausted), 3 attempts", "ConnectError", "job 1: sent again"]
    {
        assert!(printed.contains(part), "{part}: {printed}");
    }
    assert!(printed.ends_with("end of the tour\n"), "a command failed: {printed}");
}

#[test]
fn the_quickstart_is_real() {
    assert!(follow("docs/guides/quickstart.md") >= 6);
}

#[test]
fn the_retry_guide_is_real() {
    assert!(follow("docs/guides/retry.md") >= 5);
}

/// One page for each kind of system that users come from.
#[test]
fn the_pages_for_users_of_other_systems_are_real() {
    for (name, examples) in [
        ("tenant-job-service", 8),
        ("in-process-queue", 1),
        ("retry-scheduler", 3),
        ("http-scheduler", 7),
        ("message-queue-worker", 7),
    ] {
        assert!(follow(&format!("docs/guides/coming-from/{name}.md")) >= examples, "{name}");
    }
}

#[test]
fn the_guide_to_flow_control_is_real() {
    assert!(follow("docs/guides/protecting.md") >= 10);
}

#[test]
fn the_api_guide_is_real() {
    let page = Page::read("docs/guides/api.md");
    let mut place = Place::new();
    place.run("windlass serve &", "");
    let calls = calls::made(&mut place, &page);
    let wrong = calls.iter().filter(|call| call.status != calls::expected(&call.arguments));
    let reported: Vec<String> =
        wrong.map(|call| format!("{} curl {}\n{}", call.status, call.arguments, call.body)).collect();
    assert!(reported.is_empty(), "{}", reported.join("\n"));
    assert!(calls.len() >= 25, "{}", calls.len());
}

/// Policies that the guides write inline, such as `http:jitter=full`.
#[test]
fn every_policy_in_the_guides_is_valid() {
    let heads = ["exponential:", "linear:", "fixed:", "fibonacci:", "steps:", "http:", "stepped:", "queue-worker:"];
    let mut seen = 0;
    for name in ["docs/guides/retry.md", "docs/guides/coming-from.md"] {
        let text = Page::read(name).text;
        let spans = text.lines().flat_map(|line| line.split('`').skip(1).step_by(2));
        for line in spans.filter(|span| heads.iter().any(|head| span.starts_with(head)) && span.contains('=')) {
            let binary = env!("CARGO_BIN_EXE_windlass");
            let output = Command::new(binary).args(["policy", "explain", line]).output().unwrap();
            assert!(output.status.success(), "{name}: {line}: {}", String::from_utf8_lossy(&output.stderr));
            seen += 1;
        }
    }
    assert!(seen >= 8, "the guides name policies: {seen}");
}
