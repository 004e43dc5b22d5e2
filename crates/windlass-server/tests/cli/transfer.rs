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

/// Dumps of real installations, made with the commands of the guide "Moving data". In those of pg-boss and Graphile
/// Worker, the job with a large number was inserted with SQL, because JavaScript has no such number. Only Faktory's
/// was put together from parts: the jobs of two of its client libraries, with the times and failure that its server
/// would add.
const REAL_DUMPS: &[(&str, &str, &str)] = &[
    ("pg-boss", "9", include_str!("dumps/pg-boss-9.jsonl")),
    ("pg-boss", "12", include_str!("dumps/pg-boss-12.jsonl")),
    ("graphile-worker", "0.18", include_str!("dumps/graphile-worker.jsonl")),
    ("sidekiq", "6.4", include_str!("dumps/sidekiq.jsonl")),
    ("bullmq", "6", include_str!("dumps/bullmq.jsonl")),
    ("faktory", "1", include_str!("dumps/faktory.jsonl")),
];

/// A store with the jobs of a real dump, and the report of the import.
fn taken_over(system: &str, version: &str) -> (World, serde_json::Value) {
    let world = World::empty();
    let (_, _, dump) = REAL_DUMPS.iter().find(|(name, of, _)| (*name, *of) == (system, version)).unwrap();
    let file = write(&world, "dump.jsonl", dump);
    let report = world.json(&["import", &file, "--from", system, "--apply"]);
    (world, report)
}

/// The jobs in the order in which they are due.
fn jobs_by_due_time(world: &World) -> Vec<serde_json::Value> {
    let mut jobs = world.json(&["jobs", "--limit", "100"])["items"].as_array().unwrap().clone();
    jobs.sort_by_key(|job| (job["runAt"].as_str().unwrap().to_owned(), job["id"].as_i64()));
    jobs
}

fn find<'a>(jobs: &'a [serde_json::Value], kind: &str) -> &'a serde_json::Value {
    jobs.iter().find(|job| job["kind"] == kind).unwrap()
}

#[test]
fn a_retry_of_pg_boss_has_the_attempts_that_are_left() {
    for version in ["9", "12"] {
        let (world, _) = taken_over("pg-boss", version);
        let jobs = jobs_by_due_time(&world);
        // Each has failed once. pg-boss counts a retry when it starts, so the rows say 0 of 3 and 0 of 1.
        assert_eq!(find(&jobs, "failing")["maxAttempts"], 3, "{version}");
        assert_eq!(find(&jobs, "last")["maxAttempts"], 1, "{version}");
        let retry = &find(&jobs, "Reports_Daily")["retry"];
        assert_eq!((&retry["base"], &retry["jitter"]), (&"1m".into(), &"equal".into()), "{version}: 30 to 60 s");
    }
}

#[test]
fn a_job_that_waits_for_others_is_not_taken() {
    let (world, report) = taken_over("pg-boss", "12");
    let jobs = jobs_by_due_time(&world);
    assert!(jobs.iter().all(|job| job["kind"] != "child"), "it would start before its parent");
    assert!(report["notTaken"].to_string().contains("flow"), "{report}");
    let (world, report) = taken_over("bullmq", "6");
    let kinds: Vec<_> = jobs_by_due_time(&world).iter().map(|job| job["kind"].clone()).collect();
    assert!(!kinds.contains(&"parent".into()) && !kinds.contains(&"child".into()), "{kinds:?}");
    assert!(report["notTaken"].to_string().contains("flow"), "{report}");
}

#[test]
fn jobs_of_redis_lists_are_due_in_the_order_they_were_enqueued() {
    // Redis lists the newest job first.
    let order = |system: &str, version: &str, queue: &str| -> Vec<String> {
        let (world, _) = taken_over(system, version);
        let jobs = jobs_by_due_time(&world);
        let of_queue = jobs.iter().filter(|job| job["queue"] == queue);
        of_queue.map(|job| format!("{} {}", job["kind"].as_str().unwrap(), job["runAt"].as_str().unwrap())).collect()
    };
    let sidekiq = [
        "HardWorker 2026-11-17T23:11:27.536Z",
        "HardWorker 2026-11-17T23:11:27.557Z",
        "NoRetry 2026-11-17T23:11:27.583Z",
        "WelcomeJob 2026-11-17T23:11:27.606Z",
        "HardWorker 2030-01-02T03:04:05.678Z",
    ];
    assert_eq!(order("sidekiq", "6.4", "default"), sidekiq);
    let bullmq = [
        "welcome 2026-11-17T23:11:36.344Z",
        "welcome 2026-11-17T23:11:36.555Z",
        "welcome 2026-11-17T23:11:36.576Z",
        "prio 2026-11-17T23:11:36.578Z",
        "later 2030-01-02T03:04:05.678Z",
    ];
    assert_eq!(order("bullmq", "6", "mail-out"), bullmq);
    let faktory = [
        "SendEmail 2026-11-17T23:13:00.223Z",
        "Report 2026-11-17T23:13:01.223Z",
        "adder 2026-11-17T23:13:03.223Z",
        "later 2030-01-02T03:04:05.678Z",
    ];
    assert_eq!(order("faktory", "1", "default"), faktory);
}

#[test]
fn a_retry_of_bullmq_waits_from_its_last_attempt() {
    let (world, _) = taken_over("bullmq", "6");
    // It started 4 s after it was added, failed at once, and its backoff is 10 minutes.
    assert_eq!(find(&jobs_by_due_time(&world), "f1")["runAt"], "2026-11-17T23:21:40.847Z");
}

#[test]
fn payloads_are_taken_as_they_are_written() {
    for (system, version, payload) in [
        ("pg-boss", "12", r#"{"big": 12345678901234567890123, "price": 1.10}"#),
        ("pg-boss", "12", "null"),
        ("graphile-worker", "0.18", r#"{"big": 12345678901234567890123, "price": 1.10}"#),
        (
            "sidekiq",
            "6.4",
            r#"[{"text":"Grüße 日本 🎉 \"q\" back\\slash\nnew line"},[2,{"b":null}],12345678901234567890123]"#,
        ),
        ("bullmq", "6", "null"),
    ] {
        let (world, report) = taken_over(system, version);
        let stored = i64::try_from(report["stored"].as_u64().unwrap()).unwrap();
        let payloads: Vec<String> = (1..=stored).map(|id| world.payload(id)).collect();
        assert!(payloads.iter().any(|found| found == payload), "{system}: {payloads:#?}");
    }
}

#[test]
fn the_key_of_a_unique_faktory_job_is_its_id() {
    let (world, report) = taken_over("faktory", "1");
    // A key by type and args, which expires after 60 seconds, would let a repeated import store it twice.
    let jobs = jobs_by_due_time(&world);
    assert_eq!(find(&jobs, "Failing")["idempotencyKey"], "faktory:0b77f845bf0e4eb5b059fe737c5bc6b1");
    assert!(report["notes"].to_string().contains("unique_for"), "{report}");
}

#[test]
fn real_dumps_are_stored_with_what_they_say() {
    for (system, version, _) in REAL_DUMPS {
        let (world, report) = taken_over(system, version);
        let mut text = String::new();
        for job in jobs_by_due_time(&world) {
            let word = |name: &str| job[name].as_str().unwrap().to_owned();
            let retry = &job["retry"];
            let delays = format!("{} {} cap {}", retry["strategy"], retry["base"], retry["maxDelay"]).replace('"', "");
            text += &format!("{} {} {} {}, ", word("queue"), word("kind"), word("priority"), word("runAt"));
            text += &format!(
                "{} attempts, {delays}\n    {}\n",
                job["maxAttempts"],
                world.payload(job["id"].as_i64().unwrap())
            );
        }
        for row in report["notTaken"].as_array().unwrap() {
            text += &format!("not taken: {} from line {}, {}\n", row["count"], row["firstLine"], row["why"]);
        }
        for row in report["notes"].as_array().unwrap() {
            text += &format!("note: {}, {}\n", row["count"], row["note"]);
        }
        insta::assert_snapshot!(format!("taken_over_{system}_{version}"), text);
        let file = world.path("dump.jsonl");
        let again = world.json(&["import", &file, "--from", system, "--apply"]);
        assert_eq!((&again["stored"], &again["existing"]), (&0.into(), &report["stored"]), "{system}");
    }
}
