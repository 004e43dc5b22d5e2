//! The arguments of the process. Every user of the machine can read them in the list of processes. If they contain a
//! password or token, the process starts itself again with a masked copy, and passes the secrets in its environment,
//! which only its own user can read.

use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;

/// Holds the arguments between the two starts. Names that begin with `WINDLASS_` are settings.
const VARIABLE: &str = "HIDDEN_WINDLASS_ARGUMENTS";
/// Flags whose values are secrets.
const SECRET_FLAGS: &[&str] = &["--token", "--secret", "--old-secret", "--faktory-password"];
const MASK: &str = "***";

#[derive(Debug, Serialize, Deserialize)]
struct Arguments {
    masked: Vec<String>,
    given: Vec<String>,
}

/// The arguments as they were given. Does not return if the process has to start again.
pub(crate) fn read() -> Vec<OsString> {
    let all: Vec<OsString> = std::env::args_os().collect();
    let Some(given) = all.iter().skip(1).map(|text| text.to_str().map(str::to_owned)).collect::<Option<Vec<String>>>()
    else {
        return all;
    };
    if let Some(before) = passed_on().filter(|before| before.masked == given) {
        return all.into_iter().take(1).chain(before.given.into_iter().map(OsString::from)).collect();
    }
    let masked = masked(&given);
    if masked != given {
        start_again(&all[0], Arguments { masked, given });
    }
    all
}

fn passed_on() -> Option<Arguments> {
    serde_json::from_str(&std::env::var(VARIABLE).ok()?).ok()
}

fn start_again(name: &OsString, arguments: Arguments) {
    let (Ok(program), Ok(text)) = (std::env::current_exe(), serde_json::to_string(&arguments)) else { return };
    let failed = std::process::Command::new(program).arg0(name).args(arguments.masked).env(VARIABLE, text).exec();
    eprintln!("warning: secrets in the arguments stay visible in the list of processes: {failed}");
}

fn masked(given: &[String]) -> Vec<String> {
    let is_secret = |flag: &str| SECRET_FLAGS.contains(&flag);
    let mut masked = Vec::with_capacity(given.len());
    let mut follows_secret_flag = false;
    for text in given {
        let shown = match text.split_once('=') {
            _ if follows_secret_flag => MASK.to_owned(),
            Some((flag, _)) if is_secret(flag) => format!("{flag}={MASK}"),
            Some((flag, value)) if flag.starts_with("--") => format!("{flag}={}", without_password(value)),
            Some(_) | None => without_password(text),
        };
        follows_secret_flag = !follows_secret_flag && is_secret(text);
        masked.push(shown);
    }
    masked
}

/// Only a URL with a password is changed.
fn without_password(text: &str) -> String {
    let has_password = text.contains("://") && (text.contains('@') || text.contains("password"));
    if has_password { crate::config::without_password(text) } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_and_tokens_are_masked_and_the_rest_stays() {
        let check = |given: &[&str], expected: &[&str]| {
            let given: Vec<String> = given.iter().map(ToString::to_string).collect();
            assert_eq!(masked(&given), expected);
        };
        check(&["serve", "--store", "postgres://me:pw@db/jobs"], &["serve", "--store", "postgres://me:***@db/jobs"]);
        check(&["serve", "--store=postgres://me:pw@db/jobs"], &["serve", "--store=postgres://me:***@db/jobs"]);
        check(&["--store", "postgres://db/jobs?password=pw"], &["--store", "postgres://db/jobs?password=***"]);
        let several = "postgres://me:***@h1:1,h2:2/jobs?sslmode=require";
        check(&["--store", &several.replace("***", "pw")], &["--store", several]);
        check(&["jobs", "--token", "wl_a_b", "list"], &["jobs", "--token", "***", "list"]);
        check(&["jobs", "--token=wl_a_b"], &["jobs", "--token=***"]);
        let plain = ["enqueue", "a", "--payload", r#"{"to":"me@example.org","n":1}"#, "--store", "sqlite:a.db"];
        check(&plain, &plain);
    }
}
