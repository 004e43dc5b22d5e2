//! The same commands on terminals: widths, colours, bars, questions.

use crate::terminal::{self, Seen, plain, visible};
use crate::world::{World, without_column};

const WIDTHS: [u16; 3] = [60, 80, 120];

impl World {
    /// What a user sees on a terminal with this many columns.
    fn seen(&self, columns: u16, args: &[&str]) -> Seen {
        self.typed(columns, "", args)
    }

    fn typed(&self, columns: u16, keys: &str, args: &[&str]) -> Seen {
        let mut command = self.command("", args);
        command.env("TERM", "xterm-256color");
        terminal::run(command, columns, keys)
    }
}

#[test]
fn tables_on_terminals_look_like_this() {
    let world = World::of_2026();
    for columns in WIDTHS {
        for (name, args) in [
            ("history", vec!["history", "3"]),
            ("queues", vec!["queues"]),
            ("policies", vec!["policy", "list"]),
            ("preview", vec!["policy", "preview", "queue-worker", "--count", "8"]),
            ("dead_show", vec!["dead", "show", "3"]),
        ] {
            let seen = world.seen(columns, &args);
            assert!(seen.status.success(), "{args:?}: {}", seen.text);
            insta::assert_snapshot!(format!("terminal_{name}_{columns}"), visible(&seen.text));
        }
        let jobs = plain(&world.seen(columns, &["jobs"]).text);
        insta::assert_snapshot!(format!("terminal_jobs_{columns}"), without_column(&jobs, "when", "why"));
    }
}

#[test]
fn nothing_is_wider_than_the_terminal() {
    let world = World::of_2026();
    world.out("100", &["token", "create", "a name that goes on and on until it is wrapped", "--scope", "admin"]);
    world.out("100", &["schedules", "add", "report", "--cron", "0 6 * * *"]);
    for columns in WIDTHS {
        for args in [
            vec!["jobs"],
            vec!["jobs", "show", "3"],
            vec!["history", "3"],
            vec!["dead"],
            vec!["dead", "groups"],
            vec!["dead", "show", "4"],
            vec!["stats", "--by", "kind"],
            vec!["queues"],
            vec!["schedules"],
            vec!["schedules", "show", "8"],
            vec!["schedules", "preview", "8"],
            vec!["policy", "list"],
            vec!["policy", "preview", "fibonacci", "--count", "10"],
            vec!["policy", "explain", "queue-worker"],
            vec!["simulate", "--jobs", "500"],
            vec!["token", "list"],
            vec!["config"],
            vec!["doctor"],
            vec!["migrate", "status"],
            vec!["--help"],
            vec!["serve", "--help"],
            vec!["enqueue", "--help"],
        ] {
            let text = plain(&world.seen(columns, &args).text);
            assert!(text.lines().count() > 1 || args[0] == "migrate", "{args:?}: {text}");
            // A path, a URL or a command to copy is one word and is not broken.
            let fits = |line: &str| line.chars().count() <= usize::from(columns) || !line.trim().contains(' ');
            let broken = text.lines().find(|line| !fits(line) && !line.contains(&world.store()));
            assert_eq!(broken, None, "{args:?} at {columns}:\n{text}");
        }
    }
}

#[test]
fn colour_is_for_terminals_that_want_it() {
    let world = World::of_2026();
    for args in [vec!["jobs"], vec!["history", "3"], vec!["policy", "list"], vec!["--help"]] {
        assert!(world.seen(80, &args).text.contains('\x1b'), "{args:?}: a terminal has colours");
        for (name, value) in [("NO_COLOR", "1"), ("TERM", "dumb")] {
            let mut command = world.command("", &args);
            command.env(name, value);
            let seen = terminal::run(command, 80, "");
            assert!(!seen.text.contains('\x1b'), "{args:?} with {name}={value}: {}", visible(&seen.text));
        }
        let piped = world.out("80", &args);
        assert!(!piped.contains('\x1b'), "{args:?}: a pipe has none");
    }
}

#[test]
fn a_question_is_asked_and_answered() {
    let world = World::of_2026();
    let reported = world.typed(80, "n\n", &["dead", "discard", "--all"]);
    assert!(reported.text.contains("Discard 4 dead letters? [y/N]"), "{}", reported.text);
    assert!(reported.text.contains("nothing was done"), "{}", reported.text);
    assert_eq!(reported.status.code(), Some(2));
    assert_eq!(world.json(&["dead"])["items"].as_array().unwrap().len(), 4);
    let reported = world.typed(80, "y\n", &["dead", "discard", "--all"]);
    assert!(reported.text.contains("4 dead letters discarded"), "{}", reported.text);
    for (args, question) in [
        (vec!["queues", "purge", "email"], "Cancel"),
        (vec!["schedules", "remove", "8"], "Remove schedule 8?"),
        (vec!["dead", "replay", "--all"], "no dead letters match"),
    ] {
        let reported = world.typed(80, "\n", &args);
        assert!(reported.text.contains(question), "{args:?}: {}", reported.text);
    }
    assert_eq!(world.json(&["jobs", "--state", "queued"])["items"].as_array().unwrap().len(), 1, "nothing was purged");
}

#[test]
fn long_operations_have_a_bar_with_rate_and_remaining_time() {
    let world = World::empty();
    let jobs: String = (0..12_000).map(|n| format!("{{\"kind\":\"fill\",\"payload\":{n}}}\n")).collect();
    std::fs::write(world.path("jobs.ndjson"), jobs).unwrap();
    let reported = world.seen(100, &["enqueue", "--file", "jobs.ndjson"]);
    let text = plain(&reported.text);
    assert!(text.contains("storing ") && text.contains("/12,000") && text.contains("/s") && text.contains(" left"));
    assert!(text.ends_with("12,000 jobs stored\n"), "the bar is gone in the end: {text}");
    let text = plain(&world.seen(100, &["backup", "copy.db"]).text);
    assert!(text.contains("copying ") && text.contains(" B/s") && text.contains(" left"), "{text}");
    let text = plain(&world.seen(100, &["bench", "--jobs", "100", "--scenario", "drain"]).text);
    assert!(text.contains("0/3 raw ceiling") && text.contains("/3 drain") && text.contains(" left)"), "{text}");
    // A pipe gets only the result.
    assert_eq!(world.out("100", &["enqueue", "--file", "jobs.ndjson"]), "12,000 jobs stored\n");
}

#[test]
fn a_bulk_replay_has_a_bar() {
    let world = World::of_2026();
    let text = plain(&world.seen(100, &["dead", "replay", "--all", "--yes"]).text);
    assert!(text.contains("replay ") && text.contains("/4 ") && text.contains(" left"), "{text}");
    assert!(text.ends_with("4 dead letters sent again\n"), "{text}");
}

#[test]
fn the_demo_fits_a_small_terminal_and_has_colours() {
    let world = World::empty();
    let seen = world.seen(80, &["demo"]);
    assert!(seen.status.success(), "{}", seen.text);
    assert!(seen.text.contains("\x1b[33m↻ ServiceBusy: retry 1/3 in "), "{}", visible(&seen.text));
    let text = plain(&seen.text);
    let wide = text.lines().find(|line| line.chars().count() > 80);
    assert_eq!(wide, None, "{text}");
}

#[test]
fn waiting_for_a_job_that_no_worker_claims_shows_a_message() {
    let world = World::empty();
    world.out("100", &["enqueue", "email", "--queue", "mail"]);
    let command = world.command("", &["enqueue", "email", "--queue", "mail", "--wait"]);
    let mut is_reported = false;
    let reported = terminal::watch(command, 120, "", |text| {
        if !is_reported && text.contains("job 2 is stored; no worker of queue mail has claimed it yet") {
            is_reported = true;
            // This ends the waiting.
            world.out("100", &["jobs", "cancel", "2"]);
        }
    });
    assert_eq!(reported.status.code(), Some(1), "{}", reported.text);
}
