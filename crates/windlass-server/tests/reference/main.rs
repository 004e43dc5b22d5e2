//! The pages of `docs/reference` are made from the program: its help, its configuration template, its OpenAPI document,
//! its metrics, its views, and the comments of its sources. `WINDLASS_TEST_REWRITE=1` writes them.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod api;
mod cli;
mod configuration;
mod errors;
mod metrics;
mod node;
mod sources;
mod views;

use node::Node;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Compares a page with the file, or writes the file.
fn check(name: &str, title: &str, text: &str) {
    let path = root().join("docs/reference").join(name);
    let made = "Made from the program by `WINDLASS_TEST_REWRITE=1 cargo test -p windlass-server --test reference`; do not edit.";
    let page = format!("# {title}\n\n<!-- {made} -->\n\n{}\n", text.trim_end());
    if std::env::var_os("WINDLASS_TEST_REWRITE").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &page).unwrap();
    }
    let shown = std::fs::read_to_string(&path).unwrap_or_default();
    let differs = page.lines().zip(shown.lines()).find(|(real, shown)| real != shown);
    assert!(page == shown, "docs/reference/{name} is out of date ({differs:?}). {made}");
}

#[test]
fn the_configuration_page_is_up_to_date() {
    check("configuration.md", "Configuration keys", &configuration::page());
}

#[test]
fn the_command_line_page_is_up_to_date() {
    check("cli.md", "Command line", &cli::page());
}

#[test]
fn the_pages_of_a_running_server_are_up_to_date() {
    let node = Node::start();
    check("api.md", "HTTP API", &api::page(&node.get("/openapi.json")));
    check("metrics.md", "Metrics", &metrics::page(&node.get("/metrics")));
    check("sql.md", "SQL views", &views::page(&node.store()));
}

#[test]
fn the_error_and_event_pages_are_up_to_date() {
    check("errors.md", "Errors", &errors::errors());
    check("events.md", "Events", &errors::events());
}

#[test]
fn the_summary_has_every_page() {
    let docs = root().join("docs");
    let summary = std::fs::read_to_string(docs.join("SUMMARY.md")).unwrap();
    for folder in ["guides", "guides/coming-from", "guides/transactions", "reference"] {
        for entry in std::fs::read_dir(docs.join(folder)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let link = format!("({folder}/{name})");
            assert!(!name.ends_with(".md") || summary.contains(&link), "docs/SUMMARY.md does not name {folder}/{name}");
        }
    }
    for link in summary.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
        assert!(docs.join(link).exists(), "docs/SUMMARY.md names {link}, which does not exist");
    }
}
