use super::world::World;
use hyper::Method;
use serde_json::json;

#[tokio::test]
async fn a_stored_job_is_returned_with_all_fields() {
    let world = World::new();
    let body = r#"{"kind":"email","queue":"email","payload":{"to":  "ann"},"tenantId":"acme","priority":"high","delay":"30s",
        "retry":"full-jitter","delivery":"AT_LEAST_ONCE","timeout":"5s","idempotencyKey":"k1"}"#;
    let answer = world.post("/api/v1/jobs", body).await;
    assert_eq!(answer.headers["location"], "/api/v1/jobs/1");
    assert!(answer.text.contains(r#""payload":{"to":  "ann"}"#), "the payload's bytes are kept: {}", answer.text);
    assert_eq!(
        answer.is(201),
        json!({
            "id": 1, "state": "queued", "tenantId": "acme", "queue": "email", "kind": "email", "priority": "high",
            "delivery": "AT_LEAST_ONCE", "attempt": 0, "failures": 0, "readCount": 0, "maxAttempts": 4, "replays": 0,
            "nextRunAt": "2026-01-01T12:00:30Z", "runAt": "2026-01-01T12:00:30Z", "startBy": null,
            "createdAt": "2026-01-01T12:00:00Z", "firstAttemptAt": null, "finishedAt": null,
            "retry": {
                "strategy": "exponential", "base": "500ms", "factor": 2.0, "maxDelay": "30s", "jitter": "full",
                "maxRetries": 3, "maxElapsed": null, "maxCrashes": 3, "maxRetryAfter": "1h",
                "giveUpOn": ["ValidationError", "NotFoundError", "UnauthorizedError", "ForbiddenError", "SyntaxError"],
            },
            "reason": null, "errorClass": null, "error": null, "timeoutMs": 5000, "idempotencyKey": "k1",
            "cancelRequested": false, "payload": {"to": "ann"}, "result": null, "http": null, "webhook": null,
            "scheduleId": null, "parentId": null, "discardedAt": null, "discardReason": null,
        })
    );
    assert_eq!(world.get("/api/v1/jobs/1").await.is(200)["state"], "queued");
}

#[tokio::test]
async fn a_limit_key_is_kept_by_jobs_batches_and_schedules() {
    let world = World::new();
    world.post("/api/v1/jobs", r#"{"kind":"email","limitKey":"customer-7"}"#).await.is(201);
    assert_eq!(world.get("/api/v1/jobs/1").await.is(200)["limitKey"], "customer-7");
    let batch = r#"{"jobs":[{"kind":"email","limitKey":"ä"},{"kind":"email"}]}"#;
    world.post("/api/v1/jobs/batch", batch).await.is(201);
    assert_eq!(world.get("/api/v1/jobs/2").await.is(200)["limitKey"], "ä");
    assert_eq!(world.get("/api/v1/jobs/3").await.is(200).get("limitKey"), None);
    let schedule = r#"{"every":"1h","job":{"kind":"email","limitKey":"customer-8"}}"#;
    let schedule = world.post("/api/v1/schedules", schedule).await.is(201)["id"].clone();
    world.send(Method::POST, &format!("/api/v1/schedules/{schedule}/trigger"), None, &[]).await;
    assert_eq!(
        world.get(&format!("/api/v1/jobs?schedule={schedule}")).await.is(200)["items"][0]["limitKey"],
        "customer-8"
    );
}

#[tokio::test]
async fn an_http_job_masks_secret_headers_and_a_webhook_its_secret() {
    let world = World::new();
    let body = r#"{"http":{"url":"https://example.com/x","headers":{"Authorization":"Bearer s3cret","X-Note":"hi"}},
        "webhook":{"url":"https://example.com/done","secret":"whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="}}"#;
    let answer = world.post("/api/v1/jobs", body).await;
    assert!(!answer.text.contains("s3cret") && !answer.text.contains("whsec_"), "{}", answer.text);
    let job = answer.is(201);
    assert_eq!((&job["kind"], &job["http"]["method"]), (&json!("http"), &json!("POST")));
    assert_eq!(job["http"]["headers"]["X-Note"], "hi");
    assert_eq!(job["webhook"]["signed"], true);
    assert_eq!(job["retry"]["maxDelay"], "5m", "HTTP jobs have the http policy");
}

#[tokio::test]
async fn a_repeated_key_returns_the_first_job_and_another_payload_is_refused() {
    let world = World::new();
    let first = r#"{"kind":"email","payload":{"a":1,"b":2},"idempotencyKey":"k"}"#;
    world.post("/api/v1/jobs", first).await.is(201);
    let again = r#"{"kind":"email","payload":{"b":2,"a":1}}"#;
    for key in ["k", "\"k\""] {
        let answer = world.send(Method::POST, "/api/v1/jobs", Some(again), &[("idempotency-key", key)]).await;
        assert_eq!(answer.is(200)["id"], 1);
    }
    let other = world.post("/api/v1/jobs", r#"{"kind":"email","payload":{"a":2},"idempotencyKey":"k"}"#).await;
    assert_eq!(other.is(409)["type"], "urn:windlass:problem:key-conflict");
    let both = world.send(Method::POST, "/api/v1/jobs", Some(first), &[("idempotency-key", "other")]).await;
    assert_eq!(both.is(400)["type"], "urn:windlass:problem:key-mismatch");
}

#[tokio::test]
async fn bodies_of_other_systems_are_accepted() {
    let world = World::new();
    let c = r#"{"jobName":"Critical Task","maxRetries":5,"retryDelay":30000,"useExponentialBackoff":true}"#;
    let job = world.post("/api/v1/jobs", c).await.is(201);
    assert_eq!((&job["kind"], &job["maxAttempts"]), (&json!("Critical Task"), &json!(6)));
    assert_eq!((&job["retry"]["base"], &job["retry"]["strategy"]), (&json!("30s"), &json!("exponential")));
    let d = r#"{"api":"https://example.com/run","type":"AT_MOST_ONCE","isRecurring":false,"maxRetryCount":3}"#;
    let job = world.post("/api/v1/jobs", d).await.is(201);
    assert_eq!((&job["http"]["url"], &job["delivery"]), (&json!("https://example.com/run"), &json!("AT_MOST_ONCE")));
    let d = r#"{"schedule":"*/10 * * * * *","api":"https://example.com","type":"AT_LEAST_ONCE","isRecurring":true,"maxRetryCount":2}"#;
    let schedule = world.post("/api/v1/jobs", d).await.is(201);
    assert_eq!((&schedule["cron"], &schedule["recurring"]), (&json!("*/10 * * * * *"), &json!(true)));
    assert_eq!((&schedule["job"]["maxAttempts"], &schedule["nextRunAt"]), (&json!(3), &json!("2026-01-01T12:00:10Z")));
}

#[tokio::test]
async fn a_batch_answers_for_each_job() {
    let world = World::new();
    let jobs = r#"[{"kind":"a"},{"kind":"a","queue":"UPPER"},{"kind":"b","idempotencyKey":"k"}]"#;
    let atomic = world.post("/api/v1/jobs/batch", &format!(r#"{{"jobs":{jobs}}}"#)).await;
    assert_eq!(atomic.pointers(), ["/jobs/1/queue"]);
    atomic.is(422);
    assert_eq!(world.get("/api/v1/jobs").await.is(200)["items"], json!([]));

    let each = world.post("/api/v1/jobs/batch", &format!(r#"{{"jobs":{jobs},"atomic":false}}"#)).await.is(200);
    let results: Vec<_> = each["results"].as_array().unwrap().iter().map(|r| r["result"].clone()).collect();
    assert_eq!((&each["created"], results), (&json!(2), vec![json!("created"), json!("refused"), json!("created")]));
    assert_eq!(each["results"][1]["errors"][0]["pointer"], "/jobs/1/queue");

    let conflict = r#"{"jobs":[{"kind":"c"},{"kind":"other","idempotencyKey":"k"}]}"#;
    assert_eq!(world.post("/api/v1/jobs/batch", conflict).await.is(409)["type"], "urn:windlass:problem:key-conflict");
    assert_eq!(world.get("/api/v1/jobs?kind=c").await.is(200)["items"], json!([]), "nothing was stored");
    let fine = world.post("/api/v1/jobs/batch", r#"{"jobs":[{"kind":"c"},{"kind":"c"}],"atomic":true}"#).await;
    assert_eq!(fine.is(201)["created"], 2);
}

#[tokio::test]
async fn a_list_is_paged_without_gaps_or_repeats() {
    let world = World::new();
    for _ in 0..5 {
        world.enqueue("email").await;
    }
    let mut seen = Vec::new();
    let mut path = "/api/v1/jobs?limit=2&queue=email&state=ready".to_owned();
    loop {
        let page = world.get(&path).await.is(200);
        seen.extend(page["items"].as_array().unwrap().iter().map(|job| job["id"].as_i64().unwrap()));
        let Some(next) = page["next"].as_str() else { break };
        path = format!("/api/v1/jobs?limit=2&queue=email&state=ready&cursor={next}");
    }
    assert_eq!(seen, [5, 4, 3, 2, 1]);
    let oldest = world.get("/api/v1/jobs?order=oldest&limit=1").await.is(200);
    assert_eq!(oldest["items"][0]["id"], 1);
}

#[tokio::test]
async fn states_are_found_by_other_systems_names() {
    let world = World::new();
    world.dead_letter("email").await;
    let live = world.enqueue("email").await;
    for (word, id) in [("fatal", 1), ("dead", 1), ("failed", 1), ("scheduled", live), ("ready", live), ("queued", live)]
    {
        let found = world.get(&format!("/api/v1/jobs?state={word}")).await.is(200);
        assert_eq!(found["items"][0]["id"], id, "{word}");
    }
    for word in ["completed", "retry", "running", "cancelled"] {
        assert_eq!(world.get(&format!("/api/v1/jobs?state={word}")).await.is(200)["items"], json!([]), "{word}");
    }
    assert_eq!(world.get("/api/v1/jobs?class=ValidationError").await.is(200)["items"][0]["id"], 1);
    assert_eq!(world.get("/api/v1/jobs?since=2027-01-01T00:00:00Z").await.is(200)["items"], json!([]));
}

#[tokio::test]
async fn a_waiting_job_can_be_changed_and_a_finished_one_cannot() {
    let world = World::new();
    let id = world.enqueue("email").await;
    let path = format!("/api/v1/jobs/{id}");
    let change = r#"{"priority":"highest","runAt":"2026-01-01T13:00:00Z"}"#;
    let changed = world.send(Method::PATCH, &path, Some(change), &[]).await.is(200);
    assert_eq!((&changed["priority"], &changed["nextRunAt"]), (&json!("highest"), &json!("2026-01-01T13:00:00Z")));
    world.send(Method::PATCH, &path, Some("{}"), &[]).await.is(422);
    let dead = world.dead_letter("other").await;
    world.send(Method::PATCH, &format!("/api/v1/jobs/{dead}"), Some(change), &[]).await.is(409);
    world.send(Method::PATCH, "/api/v1/jobs/999", Some(change), &[]).await.is(404);
}

#[tokio::test]
async fn cancelling_ends_a_waiting_job_and_asks_a_running_one() {
    let world = World::new();
    let waiting = world.enqueue("email").await;
    let ended = world.send(Method::DELETE, &format!("/api/v1/jobs/{waiting}"), None, &[]).await.is(200);
    assert_eq!(ended["state"], "cancelled");
    world.send(Method::DELETE, &format!("/api/v1/jobs/{waiting}"), None, &[]).await.is(409);
    let running = world.enqueue("email").await;
    let job = world.lease("email").await;
    let asked = world.send(Method::DELETE, &format!("/api/v1/jobs/{running}"), None, &[]).await.is(202);
    assert_eq!((&asked["state"], &asked["cancelRequested"]), (&json!("running"), &json!(true)));
    assert_eq!(world.fail(&job, "").await, "ok");
    assert_eq!(world.get(&format!("/api/v1/jobs/{running}")).await.is(200)["state"], "cancelled");
    world.send(Method::DELETE, "/api/v1/jobs/999", None, &[]).await.is(404);
}

#[tokio::test]
async fn a_replayed_job_keeps_its_id_and_history_and_a_running_one_answers_409() {
    let world = World::new();
    let id = world.dead_letter("email").await;
    let again = world.post(&format!("/api/v1/jobs/{id}/retry"), "").await.is(200);
    assert_eq!((&again["state"], &again["failures"], &again["replays"]), (&json!("queued"), &json!(0), &json!(1)));
    assert_eq!((&again["attempt"], &again["readCount"]), (&json!(1), &json!(1)));
    world.lease("email").await;
    world.post(&format!("/api/v1/jobs/{id}/retry"), "").await.is(409);
    world.post("/api/v1/jobs/999/retry", "").await.is(404);
}

#[tokio::test]
async fn history_lists_each_attempt() {
    let world = World::new();
    let id = world.enqueue("email").await;
    let job = world.lease("email").await;
    world.advance(20);
    world.fail(&job, r#","class":"Timeout","message":"took too long""#).await;
    world.advance(1_000);
    let job = world.lease("email").await;
    world.fail(&job, r#","message":"again\u0000""#).await;
    let history = world.get(&format!("/api/v1/jobs/{id}/history")).await.is(200);
    assert_eq!(
        history["items"],
        json!([
            {
                "attempt": 1, "replay": 0, "retryCount": 0, "label": "Initial", "status": "FAILED",
                "executionTime": "2026-01-01T12:00:00Z", "durationMs": 20, "errorClass": "Timeout",
                "error": "took too long", "note": null, "worker": "w1", "nextRunAt": "2026-01-01T12:00:01.020Z",
                "delayMs": 1000, "why": history["items"][0]["why"],
            },
            {
                "attempt": 2, "replay": 0, "retryCount": 1, "label": "Retry #1", "status": "FAILED",
                "executionTime": "2026-01-01T12:00:01.020Z", "durationMs": 0, "errorClass": "Error",
                "error": "again\u{FFFD}", "note": null, "worker": "w1", "nextRunAt": null, "delayMs": null,
                "why": "gave up: exhausted",
            },
        ])
    );
    let last = world.get(&format!("/api/v1/jobs/{id}/history?limit=1")).await.is(200);
    assert_eq!(last["items"][0]["attempt"], 2);
    assert_eq!(world.get(&format!("/api/v1/jobs/{id}")).await.is(200)["reason"], "exhausted");
    world.get("/api/v1/jobs/999/history").await.is(404);
    let fresh = world.enqueue("email").await;
    assert_eq!(world.get(&format!("/api/v1/jobs/{fresh}/history")).await.is(200)["items"], json!([]));
}

#[tokio::test]
async fn a_caller_may_prefer_an_answer_without_the_job() {
    let world = World::new();
    let body = r#"{"kind":"email","payload":{"to":"ann"},"idempotencyKey":"k1"}"#;
    let send =
        async |prefer: &'static str| world.send(Method::POST, "/api/v1/jobs", Some(body), &[("prefer", prefer)]).await;
    let first = send("respond-async, Return=Minimal; wait=10").await;
    assert_eq!(first.headers["preference-applied"], "return=minimal");
    let location = first.headers["location"].to_str().unwrap().to_owned();
    let first = first.is(201);
    assert_eq!(first, json!({"id": first["id"], "state": "queued"}));
    assert_eq!(location, format!("/api/v1/jobs/{}", first["id"]));
    // The same job again: 200, in the same form.
    assert_eq!(send("return=minimal").await.is(200), first);
    // Without the preference, or with another one, the answer is the whole job.
    let whole = send("return=representation").await;
    assert!(!whole.headers.contains_key("preference-applied"));
    assert_eq!(whole.is(200)["payload"], json!({"to": "ann"}));
}
