//! Commands that change something, directly on a store.

use crate::world::World;

/// Parsing and printing it again would change the text.
const PAYLOAD: &str = r#"{"b":1.50, "a":12345678901234567890123}"#;

#[test]
fn a_payload_is_stored_and_read_byte_for_byte() {
    let world = World::empty();
    let reported = world.out("100", &["enqueue", "email", PAYLOAD, "--queue", "email", "--retry", "full-jitter"]);
    assert_eq!(reported, "job 1 email in queue email: due now, up to 4 attempts\n");
    let repeated = world.out("100", &["enqueue", "email", "--key", "k", "--delay", "2h30m"]);
    assert!(repeated.starts_with("job 2 email in queue default: due in 2h"), "{repeated}");
    assert_eq!(world.json(&["enqueue", "email", "--key", "k"])["id"], 2);
    assert_eq!(world.payload(1), PAYLOAD);
}

#[test]
fn dead_letters_are_replayed_by_filter_and_discarded_by_id() {
    let world = World::of_2026();
    assert_eq!(world.out("100", &["dead", "replay", "--kind", "sync", "--yes"]), "2 dead letters sent again\n");
    assert_eq!(world.out("100", &["dead", "replay", "--kind", "sync", "--yes"]), "no dead letters match\n");
    let reported = world.out("100", &["dead", "discard", "5", "--yes", "--reason", "sent by hand"]);
    assert_eq!(reported, "job 5: discarded\n");
    let left = world.json(&["dead"]);
    let ids: Vec<i64> = left["items"].as_array().unwrap().iter().map(|job| job["id"].as_i64().unwrap()).collect();
    assert_eq!(ids, [4]);
    let output = world.run("100", &["dead", "discard", "4", "999", "--yes"]);
    assert_eq!(output.status.code(), Some(1), "one of them is not there");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "job 4: discarded\njob 999: not found\n");
}

#[test]
fn repeating_a_replay_is_harmless_and_the_audit_names_who_did_it() {
    let world = World::of_2026();
    let reported = world.out("100", &["dead", "replay", "3", "6", "--rate", "1"]);
    assert!(reported.starts_with("job 3: sent again\njob 6: sent again\nthe last one is due "), "{reported}");
    assert_eq!(world.out("100", &["dead", "replay", "3"]), "job 3: is already waiting to run\n");
    let output = world.run("100", &["dead", "replay", "1", "999"]);
    assert_eq!(output.status.code(), Some(1), "one has succeeded, one is not there");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "job 1: is not a dead letter\njob 999: not found\n");
    let audit = world.json(&["dead", "audit"]);
    let lines = audit["items"].as_array().unwrap();
    assert_eq!((lines.len(), &lines[0]["by"], &lines[0]["count"]), (1, &"command line".into(), &2.into()));
    assert!(world.out("100", &["dead", "audit"]).contains("dead letters 3, 6"), "also as text");
}

#[test]
fn a_queue_is_set_paused_and_purged() {
    let world = World::of_2026();
    world.out("100", &["queues", "set", "email", "--policy", "queue-worker"]);
    world.out("100", &["queues", "set", "email", "--keep-failed", "forever"]);
    world.out("100", &["queues", "pause", "email"]);
    let queues = world.json(&["queues"]);
    let email = queues["items"].as_array().unwrap().iter().find(|queue| queue["name"] == "email").unwrap().clone();
    assert_eq!((&email["policy"], &email["paused"]), (&"queue-worker".into(), &true.into()));
    assert_eq!(email["retention"]["failed"], "forever");
    assert_eq!(world.out("100", &["queues", "purge", "email", "--yes"]), "1 job cancelled\n");
    assert_eq!(world.out("100", &["queues", "resume", "email"]), "queue email is resumed\n");
}

#[test]
fn a_schedule_is_created_paused_triggered_and_removed() {
    let world = World::empty();
    let made = world.json(&["schedules", "add", "report", "{\"of\":\"sales\"}", "--cron", "0 6 * * *"]);
    assert_eq!((&made["id"], &made["cron"]), (&1.into(), &"0 6 * * *".into()));
    assert_eq!(world.out("100", &["schedules", "pause", "1"]), "schedule 1 report: 0 6 * * *, paused\n");
    assert!(world.out("100", &["schedules", "resume", "1"]).contains("next run in"));
    assert_eq!(world.out("100", &["schedules", "trigger", "1"]), "schedule 1 fired: job 2\n");
    let next = world.json(&["schedules", "preview", "1", "--count", "3"]);
    assert_eq!(next["firings"].as_array().unwrap().len(), 3);
    assert_eq!(world.out("100", &["schedules", "remove", "1", "--yes"]), "removed 1\n");
    assert_eq!(world.out("100", &["schedules"]), "no schedules\n");
    assert_eq!(world.json(&["jobs", "--schedule", "1"])["items"][0]["id"], 2);
}

#[test]
fn a_backup_is_a_store_with_the_same_jobs() {
    let world = World::of_2026();
    let reported = world.json(&["backup", "copy.db"]);
    assert!(reported["bytes"].as_u64().unwrap() > 0);
    let copy = world.json(&["jobs", "--store", "sqlite:copy.db"]);
    assert_eq!(copy, world.json(&["jobs"]));
}

#[test]
fn migrate_creates_a_store_and_shows_its_status() {
    let world = World::empty();
    world.refusal(3, &["migrate", "status"]);
    assert!(world.out("100", &["migrate"]).contains("is up to date"));
    assert_eq!(world.json(&["migrate", "status"])["current"], true);
}

#[test]
fn doctor_reports_no_problems_for_a_good_store_and_names_what_is_wrong_with_another() {
    let world = World::empty();
    world.out("100", &["migrate"]);
    let reported = world.json(&["doctor"]);
    assert_eq!(reported["well"], true, "{reported}");
    // Jobs that were due in 2026 and were replayed wait, and there is no worker.
    let world = World::of_2026();
    world.out("100", &["enqueue", "email", "{}", "--run-at", "2026-01-01T12:00:00Z"]);
    let output = world.run("100", &["doctor", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let reported: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let wrong = reported["checks"].as_array().unwrap().iter().find(|check| check["verdict"] == "wrong").unwrap();
    assert_eq!(wrong["check"], "workers");
    assert!(wrong["detail"].as_str().unwrap().contains("start `windlass serve` or your workers"), "{wrong}");
}
