//! What one token may keep open, what strangers may cause, and what answers show of secrets.

use super::world::World;
use hyper::Method;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use windlass::testing::Fault;

#[tokio::test]
async fn a_token_has_twenty_streams_and_leaves_room_for_others() {
    let world = World::new();
    let greedy = world.with_token(&["read"], Some("acme")).await;
    let other = world.with_token(&["read"], Some("acme")).await;
    let mut open = Vec::new();
    for _ in 0..20 {
        open.push(greedy.stream("/api/v1/events").await);
    }
    let refused = greedy.get("/api/v1/events").await;
    assert_eq!(refused.headers["retry-after"], "1");
    assert_eq!(refused.is(429)["detail"], "this token already has 20 streams open");
    assert_eq!(other.head_of("/api/v1/events").await, 200);
    open.pop();
    assert_eq!(greedy.head_of("/api/v1/events").await, 200, "a stream that ended makes room");
}

#[tokio::test]
async fn a_tenants_tokens_together_have_a_bounded_number_of_streams() {
    let world = World::new();
    let mut open = Vec::new();
    for _ in 0..4 {
        let token = world.with_token(&["read"], Some("acme")).await;
        for _ in 0..16 {
            open.push(token.stream("/api/v1/events").await);
        }
    }
    let (same, another) =
        (world.with_token(&["read"], Some("acme")).await, world.with_token(&["read"], Some("other")).await);
    assert_eq!(same.get("/api/v1/events").await.is(429)["detail"], "this tenant already has 64 streams open");
    assert_eq!(another.head_of("/api/v1/events").await, 200);
}

#[tokio::test]
async fn strangers_cause_one_probe_of_the_store_a_second() {
    let (world, faults) = World::faulty();
    let probes = Arc::new(AtomicUsize::new(0));
    let counted = probes.clone();
    faults.choose(move |call| {
        counted.fetch_add(usize::from(call == "health"), Ordering::Relaxed);
        Fault::None
    });
    for _ in 0..50 {
        world.get("/readyz").await.is(200);
    }
    assert_eq!(probes.load(Ordering::Relaxed), 1);
    world.advance(1_000);
    world.get("/readyz").await.is(200);
    assert_eq!(probes.load(Ordering::Relaxed), 2);
    // A store that fails is reported as soon as it is probed again.
    faults.always(Fault::Unavailable);
    world.advance(1_000);
    world.get("/readyz").await.is(503);
}

#[tokio::test]
async fn answers_are_not_cached() {
    let world = World::new();
    let id = world.enqueue("email").await;
    for path in ["/api/v1/jobs", &format!("/api/v1/jobs/{id}"), "/api/v1/nothing", "/metrics", "/readyz", "/"] {
        assert_eq!(world.get(path).await.headers["cache-control"], "no-store", "{path}");
    }
}

#[tokio::test]
async fn secrets_in_urls_are_masked_in_every_view() {
    let world = World::new();
    let url = "https://example.com/hook?id=7&token=s3cret";
    let webhook = format!(r#"{{"webhook":{{"url":"{url}"}}}}"#);
    let job = format!(r#"{{"http":{{"url":"{url}"}},"webhook":{{"url":"{url}"}}}}"#);
    let schedule = format!(r#"{{"api":"{url}","schedule":"0 3 * * *"}}"#);
    let answers = [
        world.post("/api/v1/jobs", &job).await,
        world.post("/api/v1/jobs", &schedule).await,
        world.send(Method::PUT, "/api/v1/tenants/acme", Some(&webhook), &[]).await,
        world.get("/api/v1/jobs").await,
        world.get("/api/v1/jobs/1").await,
        world.get("/api/v1/schedules").await,
        world.get("/api/v1/tenants/acme").await,
        world.get("/api/v1/audit").await,
        world.get("/jobs/1").await,
    ];
    for answer in answers {
        assert!(answer.status.is_success(), "{}", answer.text);
        assert!(!answer.text.contains("s3cret"), "{}", answer.text);
    }
    let shown = world.get("/api/v1/jobs/1").await.is(200);
    assert_eq!(shown["http"]["url"], "https://example.com/hook?id=7&token=***");
}
