//! Tells `windlass --version` which commit it was built from. Works without git: a source archive has no commit, a
//! packager may set `WINDLASS_COMMIT`, and `cargo package` leaves the commit in a file.

use std::path::Path;
use std::process::Command;

/// How much of a commit is shown.
const SHOWN: usize = 12;

fn main() {
    println!("cargo::rerun-if-env-changed=WINDLASS_COMMIT");
    println!("cargo::rerun-if-changed=build.rs");
    let is_release = std::env::var("PROFILE").is_ok_and(|profile| profile == "release");
    // Development builds would be linked again after every commit.
    let commit = given().or_else(|| is_release.then(|| packaged().or_else(checked_out)).flatten());
    println!("cargo::rustc-env=BUILT_FROM_COMMIT={}", commit.unwrap_or_default());
    // Not WINDLASS_…: `cargo run` and `cargo test` pass these on, and the program would take them for settings.
    println!("cargo::rustc-env=BUILT_FOR_TARGET={}", std::env::var("TARGET").unwrap_or_default());
}

fn given() -> Option<String> {
    std::env::var("WINDLASS_COMMIT").ok().and_then(|text| shortened(&text))
}

/// The commit that `cargo package` noted.
fn packaged() -> Option<String> {
    let note = std::fs::read_to_string(".cargo_vcs_info.json").ok()?;
    shortened(note.split("\"sha1\":").nth(1)?.split('"').nth(1)?)
}

/// The commit of the checkout that this file is part of; an archive inside some other checkout has none.
fn checked_out() -> Option<String> {
    let root = Path::new("../..");
    if !root.join(".git").exists() {
        return None;
    }
    let git = |arguments: &[&str]| {
        let output = Command::new("git").current_dir(root).args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    // The log of HEAD changes with every commit, checkout and rebase.
    if let Some(log) = git(&["rev-parse", "--path-format=absolute", "--git-path", "logs/HEAD"]) {
        println!("cargo::rerun-if-changed={log}");
    }
    let commit = shortened(&git(&["rev-parse", "HEAD"])?)?;
    let is_changed = git(&["status", "--porcelain", "--untracked-files=no"]).is_none_or(|list| !list.is_empty());
    Some(if is_changed { format!("{commit}, changed") } else { commit })
}

fn shortened(commit: &str) -> Option<String> {
    let is_commit = commit.len() >= 7 && commit.chars().all(|c| c.is_ascii_hexdigit());
    is_commit.then(|| commit.chars().take(SHOWN).collect())
}
