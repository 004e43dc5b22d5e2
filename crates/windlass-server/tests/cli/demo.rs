//! The demo shows every way a job can end, within its time.

use crate::world::World;
use serde_json::Value;

#[test]
fn the_demo_shows_every_way_a_job_can_end() {
    let world = World::empty();
    let clock = windlass::Clock::system();
    let reported = world.out("100", &["demo", "--keep", "demo.db"]);
    assert!(clock.monotonic() < windlass::Millis::from_secs(20), "it took {}", clock.monotonic());
    assert!(!reported.contains('\x1b') && !reported.contains('\r'), "a pipe gets plain lines");
    for words in [
        "only the time is scaled: a minute of backoff",
        "ServiceBusy: retry 2/3 in ",
        "(for real: ",
        "gave up, a permanent error",
        "gave up, retries used up",
        "gave up, it may run only once",
        "Panic: retry 1/3",
        "How it ended",
        "Retry #3",
        "In numbers",
        "What to try next",
    ] {
        assert!(reported.contains(words), "{words}: {reported}");
    }
    let jobs = world.json(&["jobs", "--store", "sqlite:demo.db", "--oldest"]);
    let jobs = jobs["items"].as_array().unwrap();
    let end_of = |kind: &str| {
        let job = jobs.iter().find(|job| job["kind"] == kind).unwrap_or_else(|| panic!("no {kind}"));
        (job["state"].as_str().unwrap(), job["reason"].as_str(), job["attempt"].as_u64().unwrap())
    };
    assert_eq!(end_of("welcome-email"), ("succeeded", None, 1));
    assert_eq!(end_of("resize-image"), ("succeeded", None, 3));
    assert_eq!(end_of("charge-card"), ("failed", Some("permanent"), 1));
    assert_eq!(end_of("sync-crm"), ("failed", Some("exhausted"), 4));
    assert_eq!(end_of("parse-report"), ("succeeded", None, 2));
    assert_eq!(end_of("send-sms"), ("failed", Some("at_most_once"), 1));
    assert_eq!(end_of("place-order"), ("succeeded", None, 1));
    assert_eq!(end_of("webhook"), ("succeeded", None, 5));
    assert!(jobs.iter().filter(|job| job["kind"] == "heartbeat").count() >= 2);
}

#[test]
fn the_demo_in_json_is_one_document() {
    let world = World::empty();
    let reported = world.json(&["demo"]);
    let jobs = reported["jobs"].as_array().unwrap();
    let sync = jobs.iter().find(|job| job["kind"] == "sync-crm").unwrap();
    let delays: Vec<&Value> = sync["history"].as_array().unwrap().iter().map(|line| &line["delayMs"]).collect();
    assert_eq!(delays.len(), 4);
    // Fibonacci: 1m, 1m, 2m ± 20 %, divided by sixty.
    for (delay, middle) in delays.iter().zip([1000, 1000, 2000]) {
        let ms = delay.as_u64().unwrap();
        assert!((middle * 4 / 5..=middle * 6 / 5).contains(&ms), "{ms}");
    }
    assert_eq!(reported["timeScale"], 60);
}
