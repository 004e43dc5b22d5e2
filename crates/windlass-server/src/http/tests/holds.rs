use super::world::World;
use hyper::Method;
use serde_json::json;

const HOLDS: &str = "/api/v1/holds";

#[tokio::test]
async fn a_hold_is_set_listed_explained_and_released() {
    let world = World::new();
    world.post("/api/v1/jobs", r#"{"kind":"charge","queue":"billing","limitKey":"stripe"}"#).await.is(201);
    let body = json!({"queue": "billing", "key": "stripe", "for": "10m", "reason": "maintenance"}).to_string();
    let held = world.send(Method::PUT, HOLDS, Some(&body), &[]).await.is(200);
    assert_eq!(held, json!({"held": 1, "until": "2026-01-01T12:10:00Z"}));
    let listed = world.get(HOLDS).await.is(200)["items"][0].clone();
    assert_eq!((&listed["queue"], &listed["key"]), (&json!("billing"), &json!("stripe")));
    assert_eq!((&listed["origin"], &listed["reason"]), (&json!("operator"), &json!("maintenance")));
    assert_eq!(listed["breaker"], "closed");

    let lease = r#"{"queues":["billing"],"worker":"w1","max":1}"#;
    assert_eq!(world.post("/api/v1/leases", lease).await.is(200)["jobs"], json!([]));
    let job = world.get("/api/v1/jobs/1").await.is(200);
    assert_eq!((&job["waitingFor"], &job["until"]), (&json!("hold"), &json!("2026-01-01T12:10:00Z")));
    assert_eq!(world.get("/api/v1/jobs").await.is(200)["items"][0]["waitingFor"], "hold");
    let why = world.get("/api/v1/jobs/1/why").await.is(200);
    assert!(
        why["sentences"][0].as_str().unwrap().contains("stops the key stripe of the queue billing (maintenance)"),
        "{why}"
    );

    let metrics = world.get("/metrics").await.text;
    for line in ["windlass_holds{queue=\"billing\"} 1", "windlass_waiting{queue=\"billing\",for=\"hold\"} 1"] {
        assert!(metrics.contains(line), "{metrics}");
    }

    let place = format!("{HOLDS}?queue=billing&key=stripe");
    assert_eq!(world.send(Method::DELETE, &place, None, &[]).await.is(200)["held"], 1);
    assert_eq!(world.send(Method::DELETE, &place, None, &[]).await.is(200)["held"], 0);
    assert_eq!(world.post("/api/v1/leases", lease).await.is(200)["jobs"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_wrong_hold_is_refused_and_names_the_field() {
    let world = World::new();
    for (body, pointer) in [
        (r#"{"for":"1m"}"#, "/queue"),
        (r#"{"queue":"A b","for":"1m"}"#, "/queue"),
        (r#"{"queue":"a"}"#, "/for"),
        (r#"{"queue":"a","for":"0s"}"#, "/for"),
        (r#"{"queue":"a","for":"soon"}"#, "/for"),
        (r#"{"queue":"a","until":"2020-01-01T00:00:00Z"}"#, "/until"),
        (r#"{"queue":"a","for":"1m","until":"2030-01-01T00:00:00Z"}"#, "/until"),
        (r#"{"queue":"a","for":"1m","key":""}"#, "/key"),
        (r#"{"queue":"a","for":"1m","why":"x"}"#, "/why"),
    ] {
        let answer = world.send(Method::PUT, HOLDS, Some(body), &[]).await;
        assert_eq!(answer.is(422)["errors"][0]["pointer"], pointer, "{body}");
    }
    assert_eq!(world.get(HOLDS).await.is(200)["items"], json!([]));
    world.send(Method::DELETE, HOLDS, None, &[]).await.is(400);
}

#[tokio::test]
async fn why_answers_for_every_state_in_two_sentences() {
    let world = World::new();
    let why = async |id: u64| {
        let why = world.get(&format!("/api/v1/jobs/{id}/why")).await.is(200);
        let said: Vec<String> =
            why["sentences"].as_array().unwrap().iter().map(|s| s.as_str().unwrap().into()).collect();
        assert!(said.len() == 2 && said.iter().all(|s| s.ends_with('.')), "{why}");
        (why["waitingFor"].clone(), said.join(" "))
    };
    world.post("/api/v1/jobs", r#"{"kind":"a","queue":"q","delay":"1h"}"#).await.is(201);
    assert_eq!(why(1).await.0, "runAt");
    world.post("/api/v1/jobs", r#"{"kind":"a","queue":"q"}"#).await.is(201);
    assert_eq!(why(2).await.0, "worker");
    world.send(Method::POST, "/api/v1/queues/q/pause", None, &[]).await.is(200);
    assert_eq!(why(2).await.0, "paused");
    world.send(Method::POST, "/api/v1/queues/q/resume", None, &[]).await.is(200);
    let job = world.lease("q").await;
    let (none, running) = why(2).await;
    assert!(none.is_null() && running.contains("holds its lease until"), "{running}");
    world.fail(&job, r#","class":"Timeout","message":"too slow""#).await;
    let (retry, said) = why(2).await;
    assert_eq!(retry, "retry");
    assert!(said.contains("It waits for retry 1 of 3") && said.contains("Timeout: too slow"), "{said}");
    world.send(Method::DELETE, "/api/v1/jobs/1", None, &[]).await.is(200);
    assert!(why(1).await.1.starts_with("It was cancelled"));
    world.get("/api/v1/jobs/99/why").await.is(404);
}
