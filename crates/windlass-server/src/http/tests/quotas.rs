//! Quotas of tenants: set over the API, enforced for single jobs, batches and streams, shown in stats and metrics.

use super::world::World;
use hyper::Method;
use serde_json::json;

const PLACE: &str = "/api/v1/tenants/acme/quotas";

fn jobs(count: usize) -> String {
    let jobs: Vec<_> = (0..count).map(|_| json!({"tenantId": "acme", "kind": "a"})).collect();
    serde_json::to_string(&jobs).unwrap()
}

async fn set(world: &World, quotas: &str) {
    world.send(Method::PUT, PLACE, Some(quotas), &[]).await.is(200);
}

#[tokio::test]
async fn no_more_jobs_wait_than_the_quota_allows() {
    let world = World::new();
    set(&world, r#"{"waiting":5}"#).await;
    assert_eq!(world.get("/api/v1/tenants/acme").await.is(200)["quotas"]["waiting"], 5);
    let atomic = format!(r#"{{"jobs":{}}}"#, jobs(6));
    let refused = world.post("/api/v1/jobs/batch", &atomic).await;
    assert_eq!(refused.headers["retry-after"], "5");
    assert_eq!(refused.is(429)["type"], "urn:windlass:problem:over-quota");

    let each = format!(r#"{{"jobs":{},"atomic":false}}"#, jobs(7));
    let stored = world.post("/api/v1/jobs/batch", &each).await;
    assert_eq!(stored.headers["retry-after"], "5");
    assert_eq!(stored.is(200)["created"], 5);
    let one = world.post("/api/v1/jobs", r#"{"tenantId":"acme","kind":"a"}"#).await;
    assert_eq!(one.headers["retry-after"], "5");
    let detail = one.is(429)["detail"].as_str().unwrap().to_owned();
    assert_eq!(detail, "the tenant's quota of 5 waiting jobs is used up");

    // Others are not affected, and what is taken makes room, within a second.
    world.post("/api/v1/jobs", r#"{"tenantId":"other","kind":"a"}"#).await.is(201);
    world.post("/api/v1/leases", r#"{"worker":"w","queues":["default"],"max":2}"#).await.is(200);
    world.advance(1_000);
    world.post("/api/v1/jobs", r#"{"tenantId":"acme","kind":"a"}"#).await.is(201);

    let stats = world.get("/api/v1/stats?tenant=acme").await.is(200);
    assert_eq!(stats["quotas"][0]["refused"]["waiting"], 3, "{stats}");
    assert_eq!(stats["quotas"][0]["quotas"]["waiting"], 5, "{stats}");
    let metrics = world.get("/metrics").await.text;
    assert!(metrics.contains(r#"windlass_quota_refusals_total{quota="waiting"} 3"#), "{metrics}");
    set(&world, "{}").await;
    world.post("/api/v1/jobs/batch", &atomic).await.is(201);
}

#[tokio::test]
async fn a_rate_lets_a_batch_run_ahead_and_then_says_when() {
    let world = World::new();
    set(&world, r#"{"enqueueRate":"2/s"}"#).await;
    let batch = format!(r#"{{"jobs":{}}}"#, jobs(10));
    world.post("/api/v1/jobs/batch", &batch).await.is(201);
    let refused = world.post("/api/v1/jobs", r#"{"tenantId":"acme","kind":"a"}"#).await;
    assert_eq!(refused.headers["retry-after"], "5", "8 jobs ahead of a rate of 2 per second, and one more");
    refused.is(429);
    world.advance(5_000);
    world.post("/api/v1/jobs", r#"{"tenantId":"acme","kind":"a"}"#).await.is(201);
}

#[tokio::test]
async fn streams_have_a_quota_too() {
    let world = World::new();
    set(&world, r#"{"streams":1}"#).await;
    let acme = world.with_token(&["read"], Some("acme")).await;
    let open = acme.stream("/api/v1/events").await;
    assert_eq!(acme.get("/api/v1/events").await.is(429)["type"], "urn:windlass:problem:over-quota");
    drop(open);
}

#[tokio::test]
async fn wrong_quotas_name_the_field_and_change_nothing() {
    let world = World::new();
    for (body, pointer) in [
        (r#"{"waiting":0}"#, "/waiting"),
        (r#"{"enqueueRate":"fast"}"#, "/enqueueRate"),
        (r#"{"streams":-1}"#, "/streams"),
        (r#"{"polls":1}"#, "/polls"),
        ("[]", ""),
    ] {
        let answer = world.send(Method::PUT, PLACE, Some(body), &[]).await.is(422);
        assert_eq!(answer["errors"][0]["pointer"], pointer, "{answer}");
    }
    assert_eq!(world.get("/api/v1/tenants/acme").await.is(200)["quotas"]["waiting"], json!(null));
}
