//! `windlass export` and `windlass import`: between stores, and from other job queues.

use crate::world::World;

fn write(world: &World, name: &str, text: &str) -> String {
    let path = world.path(name);
    std::fs::write(&path, text).unwrap();
    path
}

/// What a store shows, as JSON.
fn shown(world: &World) -> [serde_json::Value; 4] {
    [
        world.json(&["jobs", "--limit", "100"]),
        world.json(&["dead", "groups"]),
        world.json(&["history", "4"]),
        world.json(&["queues"]),
    ]
}

#[test]
fn a_store_that_was_exported_and_imported_shows_the_same() {
    let (from, to) = (World::of_2026(), World::empty());
    let file = from.path("jobs.jsonl");
    let report = from.out("100", &["export", &file]);
    assert!(report.starts_with("exported ") && report.contains(" jobs, "), "{report}");
    let again = from.run("100", &["export", &file]);
    assert_eq!(again.status.code(), Some(2), "the file exists");
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&file).unwrap().permissions());
    assert_eq!(mode & 0o077, 0, "only its owner reads it");
    let report = to.out("100", &["import", &file]);
    assert!(report.starts_with("imported "), "{report}");
    assert_eq!(shown(&to), shown(&from));
    let report = to.json(&["import", &file]);
    assert_eq!((&report["jobs"], &report["existing"]), (&0.into(), &0.into()));
    assert_eq!(shown(&to), shown(&from));
    // An export that was interrupted goes on with its last complete line.
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, &text[..text.len() * 2 / 3]).unwrap();
    from.out("100", &["export", &file, "--resume"]);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
}

#[test]
fn wrong_files_and_stores_in_use_are_refused_with_their_line() {
    let (from, to) = (World::of_2026(), World::empty());
    let text = String::from_utf8(from.run("100", &["export", "-"]).stdout).unwrap();
    let refused = |world: &World, name: &str, text: &str, code: i32| {
        let output = world.run("100", &["import", &write(world, name, text)]);
        assert_eq!(output.status.code(), Some(code), "{name}");
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(refused(&to, "empty", "", 2).contains("the file is empty"));
    assert!(refused(&to, "other", "{\"a\":1}\n", 2).contains("line 1, header: "));
    assert!(refused(&to, "newer", &text.replacen("\"version\":1", "\"version\":7", 1), 2).contains("version 7"));
    assert!(!to.files().contains(&"jobs.db".to_owned()), "no store was made");
    let wrong = refused(&to, "wrong", &text.replacen("\"state\":\"failed\"", "\"state\":\"lost\"", 1), 2);
    assert!(wrong.contains("job.state: `lost` is not one of queued"), "{wrong}");
    let cut = refused(&to, "cut", &text[..text.rfind("{\"end\"").unwrap()], 2);
    assert!(cut.contains("without the line `end`"), "{cut}");
    to.out("100", &["import", &write(&to, "good", &text)]);
    assert_eq!(shown(&to), shown(&from), "it went on after the wrong line");
    assert!(refused(&from, "used", &text, 4).contains("has jobs or schedules already"));
}

#[test]
fn sealed_values_are_exported_only_on_demand() {
    let world = World::empty();
    let key = world.out("100", &["keys", "generate", "one"]);
    let world = world.with("WINDLASS_KEY_RING", key.trim());
    world.out("100", &["enqueue", "email", r#"{"to":"ann"}"#]);
    let refused = world.run("100", &["export", &world.path("a.jsonl")]);
    assert_eq!(refused.status.code(), Some(4));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--unsealed"));
    let file = world.path("b.jsonl");
    world.out("100", &["export", &file, "--unsealed"]);
    assert!(std::fs::read_to_string(&file).unwrap().contains("ann"));
    let clear = World::empty();
    clear.out("100", &["import", &file]);
    assert_eq!(clear.payload(1), r#"{"to":"ann"}"#);
}

/// Dumps of each system, and how many of their jobs fit.
const DUMPS: &[(&str, &str, u64)] = &[
    (
        "pg-boss",
        "{\"id\":\"1\",\"name\":\"email\",\"state\":\"created\",\"data\":{\"to\":\"ann\"},\"retry_limit\":2}\n{\"id\":\"2\",\"name\":\"email\",\"state\":\"failed\"}\n",
        1,
    ),
    (
        "graphile-worker",
        "{\"id\":1,\"task_identifier\":\"email\",\"payload\":{},\"attempts\":0,\"max_attempts\":25,\"run_at\":\"2126-01-01T00:00:00+00:00\"}\nnot json\n",
        1,
    ),
    (
        "sidekiq",
        "{\"class\":\"Email\",\"args\":[1],\"jid\":\"a\",\"queue\":\"default\"}\n{\"class\":\"Email\",\"args\":[2],\"jid\":\"b\",\"queue\":\"default\"}\n4922000000.5\n{\"args\":[],\"jid\":\"c\"}\n",
        2,
    ),
    (
        "bullmq",
        "{\"queue\":\"mail\",\"id\":\"1\",\"name\":\"email\",\"data\":{},\"opts\":{\"attempts\":3}}\n{\"queue\":\"mail\",\"id\":\"2\",\"name\":\"email\",\"data\":{},\"opts\":{\"repeat\":{\"every\":1000}}}\n",
        1,
    ),
    (
        "faktory",
        "{\"jid\":\"abc\",\"queue\":\"default\",\"jobtype\":\"Email\",\"args\":[1]}\n{\"jid\":\"def\",\"args\":[1]}\n",
        1,
    ),
];

#[test]
fn jobs_of_other_queues_are_reported_first_and_stored_once() {
    for (system, dump, fit) in DUMPS {
        let world = World::empty();
        let file = write(&world, "dump.jsonl", dump);
        let import = |more: &[&str]| {
            let mut args = vec!["import", &file, "--from", system];
            args.extend(more);
            world.json(&args)
        };
        let report = import(&[]);
        let count = |report: &serde_json::Value, name: &str| report[name].as_u64().unwrap();
        let found: u64 =
            report["jobs"].as_array().unwrap().iter().map(|row| count(row, "now") + count(row, "later")).sum();
        assert_eq!((found, &report["dryRun"]), (*fit, &true.into()), "{system}");
        assert_eq!(report["notTaken"].as_array().unwrap().len(), 1, "{system}");
        assert!(!world.files().contains(&"jobs.db".to_owned()), "{system}: a dry run makes no file");
        assert_eq!(count(&import(&["--apply"]), "stored"), *fit, "{system}");
        let again = import(&["--apply"]);
        assert_eq!((count(&again, "stored"), count(&again, "existing")), (0, *fit), "{system}");
        assert_eq!(world.json(&["jobs"])["items"].as_array().unwrap().len() as u64, *fit, "{system}");
    }
}

#[test]
fn an_import_that_could_not_store_a_job_fails() {
    let world = World::empty();
    let dump =
        |args: &str| format!("{{\"jid\":\"abc\",\"queue\":\"default\",\"jobtype\":\"Email\",\"args\":[{args}]}}\n");
    let import = |text: &str| {
        let file = write(&world, "dump.jsonl", text);
        world.run("100", &["import", &file, "--from", "faktory", "--apply"])
    };
    assert_eq!(
        import(&format!("{}not a job\n", dump("1"))).status.code(),
        Some(0),
        "lines that do not fit are reported"
    );
    let failed = import(&dump("2"));
    let shown = String::from_utf8(failed.stdout).unwrap();
    assert_eq!(failed.status.code(), Some(1), "{shown}");
    assert!(shown.contains("another payload") && shown.contains("1 job could not be stored"), "{shown}");
}
