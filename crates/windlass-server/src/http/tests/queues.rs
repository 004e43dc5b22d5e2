use super::world::World;
use hyper::Method;
use serde_json::json;

#[tokio::test]
async fn a_queue_reports_how_full_it_is() {
    let world = World::new();
    world.enqueue("email").await;
    world.enqueue("email").await;
    world.lease("email").await;
    world.post("/api/v1/jobs", r#"{"kind":"a","queue":"email","delay":"1h"}"#).await.is(201);
    world.dead_letter("sms").await;
    world.advance(4_000);
    let queues = world.get("/api/v1/queues").await.is(200);
    let email = &queues["items"][0];
    assert_eq!((&email["name"], &email["depth"]), (&json!("email"), &json!(3)));
    assert_eq!((&email["due"], &email["later"], &email["running"]), (&json!(1), &json!(1), &json!(1)));
    assert_eq!((&email["oldestDueAt"], &email["oldestDueMs"]), (&json!("2026-01-01T12:00:00Z"), &json!(4000)));
    assert_eq!(email["rates"]["enqueued"], json!(0.01));
    assert_eq!(queues["items"][1]["dead"], 1);
}

#[tokio::test]
async fn a_queues_policy_applies_to_jobs_stored_after_it() {
    let world = World::new();
    let body =
        r#"{"policy":{"policy":"queue-worker","maxAttempts":7},"retention":{"succeeded":"0","failed":"forever"}}"#;
    let put = world.send(Method::PUT, "/api/v1/queues/email", Some(body), &[]).await.is(200);
    assert_eq!((&put["tenantId"], &put["settings"]["retention"]["failed"]), (&json!("default"), &json!("forever")));
    let job = world.post("/api/v1/jobs", r#"{"kind":"a","queue":"email"}"#).await.is(201);
    assert_eq!((&job["maxAttempts"], &job["retry"]["jitter"]), (&json!(7), &json!("additive(0.3)")));
    let queue = &world.get("/api/v1/queues").await.is(200)["items"][0];
    assert_eq!((&queue["retention"]["succeeded"], &queue["policy"]["maxAttempts"]), (&json!("0"), &json!(7)));
    for (body, pointer) in [
        (r#"{"policy":"expnential"}"#, "/policy"),
        (r#"{"policy":{"bse":"1s"}}"#, "/policy/bse"),
        (r#"{"retention":{"failed":"soon"}}"#, "/retention/failed"),
        (r#"{"retention":7}"#, "/retention"),
        (r#"{"retenton":{}}"#, "/retenton"),
    ] {
        let answer = world.send(Method::PUT, "/api/v1/queues/email", Some(body), &[]).await;
        assert_eq!(answer.pointers(), [pointer], "{body}");
    }
}

#[tokio::test]
async fn a_paused_queue_gives_no_work_and_a_purged_one_keeps_what_runs() {
    let world = World::new();
    world.enqueue("email").await;
    world.enqueue("email").await;
    let paused = world.post("/api/v1/queues/email/pause", "").await.is(200);
    assert_eq!((&paused["paused"], &paused["queues"]), (&json!(true), &json!(1)));
    assert_eq!(world.lease("email").await, json!(null));
    world.post("/api/v1/queues/email/resume", "").await.is(200);
    let job = world.lease("email").await;
    assert_eq!(world.post("/api/v1/queues/email/purge", "").await.is(200)["cancelled"], 1);
    assert_eq!(world.get(&format!("/api/v1/jobs/{}", job["id"])).await.is(200)["state"], "running");
    for action in ["pause", "resume", "purge"] {
        world.post(&format!("/api/v1/queues/nowhere/{action}"), "").await.is(404);
        world.post(&format!("/api/v1/queues/NO%20NAME/{action}"), "").await.is(404);
    }
}

#[tokio::test]
async fn a_purge_can_continue_in_portions() {
    let world = World::new();
    for _ in 0..5 {
        world.enqueue("email").await;
    }
    let first = world.post("/api/v1/queues/email/purge?limit=2", "").await.is(200);
    assert_eq!((&first["cancelled"], &first["next"]), (&json!(2), &json!("2-5")));
    // A purge does not apply to jobs that are enqueued while it runs.
    world.enqueue("email").await;
    let rest = world.post("/api/v1/queues/email/purge?limit=9&cursor=2-5", "").await.is(200);
    assert_eq!((&rest["cancelled"], &rest["next"]), (&json!(3), &json!(null)));
    world.post("/api/v1/queues/email/purge?cursor=2", "").await.is(400);
    world.post("/api/v1/queues/email/purge?limit=0", "").await.is(400);
    world.post("/api/v1/queues/email/pause?limit=2", "").await.is(400);
}

#[tokio::test]
async fn a_tenants_setting_keeps_the_shared_retention() {
    let world = World::new();
    world.enqueue("email").await;
    let put = async |path: &str, body: &str| world.send(Method::PUT, path, Some(body), &[]).await.is(200);
    put("/api/v1/queues/email?tenant=*", r#"{"policy":"stepped","retention":{"succeeded":"1d","failed":"30d"}}"#).await;
    put("/api/v1/queues/email", r#"{"policy":"full-jitter","retention":{"failed":"forever"}}"#).await;
    let queue = &world.get("/api/v1/queues").await.is(200)["items"][0];
    assert_eq!(queue["retention"], json!({ "succeeded": "1d", "cancelled": "7d", "failed": "forever" }));
    assert_eq!(queue["policy"], json!("full-jitter"));
    put("/api/v1/queues/email", r#"{"retention":{"cancelled":"2d"}}"#).await;
    let queue = &world.get("/api/v1/queues").await.is(200)["items"][0];
    assert_eq!(queue["retention"], json!({ "succeeded": "1d", "cancelled": "2d", "failed": "30d" }));
    assert_eq!(queue["policy"], json!("stepped"), "the shared policy applies to a tenant without one");
}

#[tokio::test]
async fn every_preset_is_valid_for_every_queue_and_applies_to_jobs_and_deliveries() {
    let world = World::new();
    let url = r#""webhook":{"url":"https://a.example/done"}"#;
    for preset in windlass_core::policy::PRESETS {
        let name = preset.name;
        let own = world.post("/api/v1/jobs", &format!(r#"{{"kind":"a","retry":"{name}"}}"#)).await.is(201);
        for whose in ["", "?tenant=*"] {
            for queue in ["plain", "webhooks"] {
                let body = format!(r#"{{"policy":"{name}"}}"#);
                let path = format!("/api/v1/queues/{queue}{whose}");
                world.send(Method::PUT, &path, Some(&body), &[]).await.is(200);
            }
            let job = world.post("/api/v1/jobs", &format!(r#"{{"kind":"a","queue":"plain",{url}}}"#)).await.is(201);
            assert_eq!(job["retry"], own["retry"], "{name}{whose}");
            let delivery = &job["webhook"]["policy"];
            assert_eq!(
                (&delivery["strategy"], &delivery["maxRetries"]),
                (&own["retry"]["strategy"], &own["retry"]["maxRetries"])
            );
            for queue in ["plain", "webhooks"] {
                world.send(Method::PUT, &format!("/api/v1/queues/{queue}{whose}"), Some("{}"), &[]).await.is(200);
            }
        }
    }
}

#[tokio::test]
async fn limits_breaker_budget_and_rules_are_set_shown_and_removed() {
    let world = World::new();
    world.post("/api/v1/jobs", r#"{"kind":"a","queue":"email"}"#).await.is(201);
    let settings = json!({
        "limits": {"concurrency": 10, "rate": "100/1m", "burst": 5, "perKey": {"concurrency": 2}, "keyBy": "tenant"},
        "breaker": {"minimum": 5}, "retryBudget": "20%", "honorRetryAfter": "job", "maxHold": "1m",
        "rules": [{"match": {"class": "Stripe*"}, "then": "hold", "for": "30s"}],
    });
    let put = world.send(Method::PUT, "/api/v1/queues/email", Some(&settings.to_string()), &[]).await;
    assert_eq!(put.is(200)["settings"], settings);
    let shown = world.get("/api/v1/queues").await.is(200)["items"][0].clone();
    for (name, value) in settings.as_object().unwrap() {
        assert_eq!(shown[name], *value, "{name}");
    }
    world.send(Method::PUT, "/api/v1/queues/email", Some("{}"), &[]).await.is(200);
    assert_eq!(world.get("/api/v1/queues").await.is(200)["items"][0].get("limits"), None);
}

#[tokio::test]
async fn a_wrong_flow_setting_is_named_by_its_pointer_and_changes_nothing() {
    let world = World::new();
    world.post("/api/v1/jobs", r#"{"kind":"a","queue":"email"}"#).await.is(201);
    for (body, pointer) in [
        (r#"{"limits":{"concurrency":0}}"#, "/limits/concurrency"),
        (r#"{"limits":{"perKey":{"rate":"fast"}}}"#, "/limits/perKey/rate"),
        (r#"{"limits":{"perkey":{}}}"#, "/limits/perkey"),
        (r#"{"breaker":"maybe"}"#, "/breaker"),
        (r#"{"retryBudget":"200%"}"#, "/retryBudget"),
        (r#"{"honorRetryAfter":"all"}"#, "/honorRetryAfter"),
        (r#"{"maxHold":"1ms"}"#, "/maxHold"),
        (r#"{"rules":[{"match":{"message":"/(/"},"then":"retry"}]}"#, "/rules/0/match/message"),
        (r#"{"rules":[{"match":{"class":"A"},"then":"retry","policy":"nope"}]}"#, "/rules/0/policy"),
        (r#"{"limit":{}}"#, "/limit"),
    ] {
        let answer = world.send(Method::PUT, "/api/v1/queues/email", Some(body), &[]).await;
        assert_eq!(answer.is(422)["errors"][0]["pointer"], pointer, "{body}");
    }
    assert_eq!(world.get("/api/v1/queues").await.is(200)["items"][0].get("limits"), None);
}

#[tokio::test]
async fn error_rules_of_a_queue_apply_as_they_are_when_the_attempt_ends() {
    let world = World::new();
    world.enqueue("email").await;
    let job = world.lease("email").await;
    let rules = r#"{"rules":[{"match":{"message":"/busy/i"},"then":"snooze","for":"30s"},
        {"match":{"class":"Gone*"},"then":"discard"}]}"#;
    world.send(Method::PUT, "/api/v1/queues/email", Some(rules), &[]).await.is(200);
    world.fail(&job, r#","class":"Error","message":"Busy now""#).await;
    let snoozed = world.get("/api/v1/jobs/1").await.is(200);
    assert_eq!((&snoozed["state"], &snoozed["failures"]), (&json!("queued"), &json!(0)));
    let last = world.get("/api/v1/jobs/1/history").await.is(200)["items"][0].clone();
    assert_eq!(last["why"], "snoozed by rule 1 of the queue");

    world.enqueue("email").await;
    let job = world.lease("email").await;
    world.fail(&job, r#","class":"GoneForever","message":"no""#).await;
    let gone = world.get("/api/v1/jobs/2").await.is(200);
    assert_eq!((&gone["state"], &gone["reason"]), (&json!("failed"), &json!("permanent")));
    assert!(gone["discardedAt"].is_string(), "{gone}");
    assert_eq!(world.get("/api/v1/dead-letters").await.is(200)["items"], json!([]));
}
