//! Wrong input: each is refused with a message that says what is accepted, and changes nothing.

use crate::world::World;

#[test]
fn wrong_input_is_reported_and_ends_with_2() {
    let world = World::of_2026();
    let before = world.json(&["jobs"])["items"].as_array().unwrap().len();
    for (args, reported) in [
        (vec!["enqueue"], "a KIND for your workers, or --url URL"),
        (vec!["enqueue", "email", "hello"], "the payload is not JSON"),
        (vec!["enqueue", "email", "@nowhere.json"], "cannot read nowhere.json"),
        (vec!["enqueue", " name"], "kind ` name` is not a name"),
        (vec!["enqueue", "email", "--queue", "E mail"], "queue: "),
        (vec!["enqueue", "email", "--retry", "exponental"], "retry: at position 1: `exponental` is not a policy"),
        (vec!["enqueue", "email", "--delay", "soon"], "--delay"),
        (vec!["enqueue", "email", "--run-at", "tomorrow"], "runAt: "),
        (vec!["enqueue", "email", "--priority", "9"], "priority: must be lowest, low, normal, high, highest"),
        (vec!["enqueue", "--url", "ftp://example.com"], "http/url: "),
        (vec!["enqueue", "--url", "http://example.com", "--header", "nonsense"], "is not NAME: VALUE"),
        (vec!["enqueue", "email", "--webhook", "nonsense"], "webhook/url: "),
        (vec!["enqueue", "--file", "nowhere.ndjson"], "cannot read nowhere.ndjson"),
        (vec!["jobs", "--state", "done"], "state: must be queued, running, retrying"),
        (vec!["jobs", "--since", "yesterday"], "write a moment such as 2026-01-01T12:00:00Z, or how long ago"),
        (vec!["jobs", "show", "abc"], "invalid value 'abc'"),
        (vec!["jobs", "change", "7"], "give --priority, --run-at or --delay"),
        (vec!["jobs", "--limit", "0"], "invalid value '0'"),
        (vec!["history", "0"], "invalid value '0'"),
        (vec!["dead", "replay"], "which dead letters?"),
        (vec!["dead", "replay", "3", "--all"], "not both"),
        (vec!["dead", "replay", "3", "--rate", "0"], "invalid value '0'"),
        (vec!["dead", "discard", "--all"], "repeat with --yes"),
        (vec!["dead", "discard", "3"], "repeat with --yes"),
        (vec!["queues", "purge", "email"], "repeat with --yes"),
        (vec!["queues", "set", "email"], "give a setting such as --policy"),
        (vec!["queues", "set", "email", "--concurrency", "0"], "limits/concurrency: "),
        (vec!["hold", "email"], "required"),
        (vec!["hold", "email", "--for", "soon"], "`soon` is not a duration"),
        (vec!["queues", "set", "email", "--policy", "nonsense"], "policy: "),
        (vec!["queues", "set", "email", "--keep-failed", "long"], "`long` is not a duration"),
        (vec!["schedules", "add", "x"], "cron: is needed"),
        (vec!["schedules", "add", "x", "--cron", "every day"], "cron: "),
        (vec!["schedules", "add", "x", "--cron", "0 6 * * *", "--timezone", "Atlantis"], "timezone: "),
        (vec!["schedules", "preview"], "required"),
        (vec!["stats", "--window", "2h"], "invalid value '2h'"),
        (vec!["backup", "jobs.db"], "the file jobs.db already exists"),
        (vec!["backup", "x.db", "--store", "postgres://localhost/x"], "use pg_dump"),
        (vec!["backup", "x.db", "--server", "http://127.0.0.1:1"], "give --store sqlite:PATH"),
        (vec!["migrate", "--server", "http://127.0.0.1:1"], "give --store"),
        (vec!["jobs", "--store", "mysql://localhost"], "is not a store; write sqlite:PATH or postgres://"),
        (vec!["jobs", "--store", "sqlite:"], "names no file"),
        (vec!["jobs", "--server", "localhost:9463"], "write http://HOST:PORT"),
        (vec!["jobs", "--server", "http://x", "--store", "sqlite:x"], "cannot be used with"),
        (vec!["demo", "--keep", "jobs.db"], "the file jobs.db already exists"),
        (vec!["completions", "tcsh"], "invalid value 'tcsh'"),
        (vec!["no-such-command"], "unrecognized subcommand"),
    ] {
        let message = world.refusal(2, &args);
        assert!(message.contains(reported), "{args:?}: {message}");
    }
    assert_eq!(world.json(&["jobs"])["items"].as_array().unwrap().len(), before, "nothing was stored");
}

#[test]
fn a_configuration_under_which_jobs_cannot_be_stored_ends_with_2() {
    let world = World::empty();
    std::fs::write(world.path("windlass.toml"), "[kinds.x]\npolicy = { strategy = \"linear\", factor = 2 }\n").unwrap();
    let reported = world.refusal(2, &["serve", "--store", "sqlite:jobs.db", "--listen", "127.0.0.1:0"]);
    assert!(reported.contains("jobs of kind `x`") && reported.contains("factor: has no effect"), "{reported}");
}

#[test]
fn not_found_ends_with_3() {
    let world = World::of_2026();
    for args in [
        vec!["jobs", "show", "999"],
        vec!["jobs", "cancel", "999"],
        vec!["history", "999"],
        vec!["dead", "show", "1"],
        vec!["schedules", "show", "999"],
        vec!["schedules", "remove", "999", "--yes"],
        vec!["queues", "pause", "nowhere"],
        vec!["token", "revoke", "0123456789ab"],
    ] {
        assert!(world.refusal(3, &args).contains("there is no"), "{args:?}");
    }
    let reported = world.refusal(3, &["jobs", "--store", "sqlite:nowhere.db"]);
    insta::assert_snapshot!("no_such_store", reported);
    assert!(!std::path::Path::new(&world.path("nowhere.db")).exists(), "reading created no store");
}

#[test]
fn a_conflict_with_the_current_state_ends_with_4() {
    let world = World::of_2026();
    assert!(world.refusal(4, &["jobs", "cancel", "1"]).contains("job 1 is succeeded already"));
    world.out("100", &["enqueue", "email", "{}", "--key", "k"]);
    assert!(world.refusal(4, &["enqueue", "email", "[]", "--key", "k"]).contains("another kind or payload"));
}

#[test]
fn without_a_server_the_error_says_what_to_do() {
    let world = World::empty();
    // Nothing listens on port 1.
    let reported = world.refusal(5, &["jobs", "--server", "http://127.0.0.1:1"]);
    insta::assert_snapshot!("no_server", reported);
}

#[test]
fn a_file_with_wrong_lines_is_not_stored_and_the_lines_are_named() {
    let world = World::of_2026();
    let output = world.feed("{\"kind\":\"a\"}\n{\"kind\":", &["enqueue", "--file", "-"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("line 2 is not JSON"), "{output:?}");
    let output = world.feed("{\"kind\":\"a\"}\n\n{\"knd\":\"b\"}\n", &["enqueue", "--file", "-"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "1 job stored\n");
    let reported = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(reported.contains("line 3: knd: is not a known field; did you mean `kind`?"), "{reported}");
}
