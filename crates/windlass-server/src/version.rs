//! What `windlass --version` says: version, commit, target, and what is built in.

use std::sync::LazyLock;

/// The commit, or nothing in development builds and in builds from an archive.
const COMMIT: &str = env!("BUILT_FROM_COMMIT");
const TARGET: &str = env!("BUILT_FOR_TARGET");
/// Everything that can be left out of the library, and is in this binary.
const FEATURES: &[&str] = &["sqlite", "postgres", "tls", "http", "metrics", "sealing", "faktory", "dashboard"];

/// The text after the program's name.
pub(crate) static LONG: LazyLock<String> = LazyLock::new(|| {
    let commit = match COMMIT {
        "" if cfg!(debug_assertions) => "not recorded (development build)",
        "" => "not recorded (built without git)",
        commit => commit,
    };
    let sqlite = rusqlite::version();
    format!(
        "{}\ncommit    {commit}\nfeatures  {}\nsqlite    {sqlite}\ntarget    {TARGET}",
        env!("CARGO_PKG_VERSION"),
        FEATURES.join(", ")
    )
});
