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
        (r#"{"queue":null,"for":"1m"}"#, "/queue"),
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
    world.send(Method::DELETE, HOLDS, None, &[]).await.is(422);
    let long = format!("{HOLDS}?key={}", "k".repeat(129));
    world.send(Method::DELETE, &long, None, &[]).await.is(400);
}

#[tokio::test]
async fn a_key_alone_is_held_in_every_queue() {
    let world = World::new();
    for queue in ["billing", "mail"] {
        let job = format!(r#"{{"kind":"charge","queue":"{queue}","limitKey":"customer-7"}}"#);
        world.post("/api/v1/jobs", &job).await.is(201);
    }
    let held = world.send(Method::PUT, HOLDS, Some(r#"{"key":"customer-7","for":"10m"}"#), &[]).await.is(200);
    assert_eq!(held["held"], 2);
    for queue in ["billing", "mail"] {
        let lease = format!(r#"{{"queues":["{queue}"],"worker":"w1","max":1}}"#);
        assert_eq!(world.post("/api/v1/leases", &lease).await.is(200)["jobs"], json!([]), "{queue}");
    }
    assert_eq!(world.get("/api/v1/stats").await.is(200)["waiting"], json!({ "hold": 2 }));
    let released = world.send(Method::DELETE, &format!("{HOLDS}?key=customer-7"), None, &[]).await.is(200);
    assert_eq!(released["held"], 2);
    assert_eq!(world.get(HOLDS).await.is(200)["items"], json!([]));
}

#[tokio::test]
async fn the_rules_of_a_kind_decide_about_its_failures() {
    let world = World::new();
    let rules = json!([{ "match": { "class": "Teapot" }, "then": "giveUp" }]);
    let body = json!({ "rules": rules }).to_string();
    let set = world.send(Method::PUT, "/api/v1/kinds/charge", Some(&body), &[]).await.is(200);
    assert_eq!((&set["name"], &set["settings"]["rules"][0]["then"]), (&json!("charge"), &json!("giveUp")));
    assert_eq!(world.get("/api/v1/kinds").await.is(200)["items"][0]["name"], "charge");
    world.post("/api/v1/jobs", r#"{"kind":"charge","queue":"q"}"#).await.is(201);
    let job = world.lease("q").await;
    world.fail(&job, r#","class":"Teapot","message":"short and stout""#).await;
    let job = world.get("/api/v1/jobs/1").await.is(200);
    assert_eq!((&job["state"], &job["reason"]), (&json!("failed"), &json!("permanent")));
    let why = world.get("/api/v1/jobs/1/why").await.is(200)["sentences"][0].clone();
    assert!(why.as_str().unwrap().contains("an error rule ended it"), "{why}");
    for (body, pointer) in [
        (r#"{"rules":[{"match":{},"then":"moon"}]}"#, "/rules/0/then"),
        (r#"{"rules":"all"}"#, "/rules"),
        (r#"{"policy":"no such policy"}"#, "/policy"),
        (r#"{"limits":{}}"#, "/limits"),
    ] {
        let answer = world.send(Method::PUT, "/api/v1/kinds/charge", Some(body), &[]).await;
        assert_eq!(answer.is(422)["errors"][0]["pointer"], pointer, "{body}");
    }
    world.send(Method::PUT, "/api/v1/kinds/charge", Some("{}"), &[]).await.is(200);
    assert_eq!(world.get("/api/v1/kinds").await.is(200)["items"], json!([]));
}

/// Everything a job can wait for, everything that can run it, and every way it can end.
#[tokio::test]
#[expect(clippy::too_many_lines, reason = "one list of all reasons, which is checked to be complete")]
async fn why_answers_for_every_reason_in_two_sentences() {
    let world = World::new();
    let mut answered = std::collections::BTreeSet::new();
    let why = async |id: u64| {
        let why = world.get(&format!("/api/v1/jobs/{id}/why")).await.is(200);
        let said: Vec<String> =
            why["sentences"].as_array().unwrap().iter().map(|s| s.as_str().unwrap().into()).collect();
        assert!(said.len() == 2 && said.iter().all(|s| s.ends_with('.') && !s.contains("..")), "{why}");
        (why["waitingFor"].as_str().unwrap_or_default().to_owned(), said.join(" "))
    };
    let enqueue = async |body: &str| world.post("/api/v1/jobs", body).await.is(201)["id"].as_u64().unwrap();
    let set = async |queue: &str, body: &str| {
        world.send(Method::PUT, &format!("/api/v1/queues/{queue}"), Some(body), &[]).await.is(200);
    };
    let lease = async |queue: &str, most: u32| {
        let body = format!(r#"{{"queues":["{queue}"],"worker":"w-{queue}","max":{most}}}"#);
        world.post("/api/v1/leases", &body).await.is(200)["jobs"].as_array().unwrap().clone()
    };
    let report = async |action: &str, job: &serde_json::Value, more: &str| {
        let body = format!(
            r#"{{"worker":"w-{}","results":[{{"id":{},"attempt":{},"lease":{}{more}}}]}}"#,
            job["queue"].as_str().unwrap(),
            job["id"],
            job["attempt"],
            job["lease"]
        );
        let answer = world.post(&format!("/api/v1/leases/{action}"), &body).await.is(200);
        assert_eq!(answer["results"][0]["result"], "ok", "{answer}");
    };
    let mut expect = async |id: u64, reason: &str, words: &str| {
        let (found, said) = why(id).await;
        assert_eq!(found, reason, "{said}");
        assert!(said.contains(words), "{said}");
        answered.insert(reason.to_owned());
    };

    let later = enqueue(r#"{"kind":"a","queue":"later","delay":"1h"}"#).await;
    expect(later, "runAt", "It waits for its time").await;
    let alone = enqueue(r#"{"kind":"a","queue":"alone"}"#).await;
    expect(alone, "worker", "No worker serves the queue alone").await;
    world.send(Method::POST, "/api/v1/queues/alone/pause", None, &[]).await.is(200);
    expect(alone, "paused", "Its queue alone is paused").await;
    world.send(Method::POST, "/api/v1/queues/alone/resume", None, &[]).await.is(200);

    // A worker of the queue that knows other kinds only.
    let other = enqueue(r#"{"kind":"resize","queue":"kinds"}"#).await;
    let body = r#"{"queues":["kinds"],"worker":"w2","max":1,"kinds":["upload"]}"#;
    assert_eq!(world.post("/api/v1/leases", body).await.is(200)["jobs"], json!([]));
    expect(other, "worker", "has a handler for the kind resize").await;

    // At its limit, with a place in its key.
    set("full", r#"{"limits":{"perKey":{"concurrency":1}}}"#).await;
    for _ in 0..3 {
        enqueue(r#"{"kind":"a","queue":"full","limitKey":"k"}"#).await;
    }
    let running = lease("full", 9).await;
    assert_eq!(running.len(), 1);
    let first = running[0]["id"].as_u64().unwrap();
    expect(first, "", "holds its lease until").await;
    expect(first + 1, "concurrency", "1 of at most 1 attempts of the key k of the queue full are running").await;
    expect(first + 2, "concurrency", "after 1 that wait before it").await;
    world.send(Method::DELETE, &format!("/api/v1/jobs/{first}"), None, &[]).await.is(202);
    expect(first, "", "was asked to stop because the job is cancelled").await;

    set("fast", r#"{"limits":{"rate":"1/1m"}}"#).await;
    enqueue(r#"{"kind":"a","queue":"fast"}"#).await;
    let second = enqueue(r#"{"kind":"a","queue":"fast"}"#).await;
    assert_eq!(lease("fast", 9).await.len(), 1);
    expect(second, "rate", "The rate of 1/1m of the queue fast is used up").await;

    let held = enqueue(r#"{"kind":"a","queue":"held"}"#).await;
    world.send(Method::PUT, HOLDS, Some(r#"{"queue":"held","for":"10m","reason":"repairs"}"#), &[]).await.is(200);
    expect(held, "hold", "stops the queue held (repairs)").await;

    set("broken", r#"{"breaker":{"minimum":1}}"#).await;
    enqueue(r#"{"kind":"a","queue":"broken","limitKey":"b"}"#).await;
    let behind = enqueue(r#"{"kind":"a","queue":"broken","limitKey":"b"}"#).await;
    let job = lease("broken", 1).await[0].clone();
    report("fail", &job, r#","class":"Timeout","message":"no answer""#).await;
    lease("broken", 9).await;
    expect(behind, "breaker", "The circuit breaker of the key b of the queue broken has opened").await;

    // Backoff, and then the budget of retries.
    set("thrifty", r#"{"retryBudget":{"share":"1%","minimum":1}}"#).await;
    let mut failed = Vec::new();
    for _ in 0..12 {
        failed.push(enqueue(r#"{"kind":"a","queue":"thrifty","retry":"fixed:base=1s,jitter=none"}"#).await);
    }
    for job in lease("thrifty", 20).await {
        report("fail", &job, r#","class":"Timeout","message":"too slow""#).await;
    }
    expect(failed[0], "retry", "It waits for retry 1 of 3").await;
    world.advance(2000);
    lease("thrifty", 20).await;
    let last = *failed.last().unwrap();
    expect(last, "budget", "The retry budget of the queue thrifty is used up").await;

    for reason in windlass_core::gate::WaitingFor::ALL {
        assert!(answered.contains(reason.as_str()), "{reason} was not answered");
    }

    // Every end.
    world.send(Method::DELETE, &format!("/api/v1/jobs/{later}"), None, &[]).await.is(200);
    assert!(why(later).await.1.starts_with("It was cancelled"));
    for (retry, delivery, fault, words) in [
        ("once", "AT_LEAST_ONCE", r#","class":"Timeout""#, "(exhausted)"),
        ("stepped", "AT_LEAST_ONCE", r#","class":"ValidationError""#, "(permanent)"),
        ("stepped", "AT_MOST_ONCE", r#","class":"Timeout""#, "(at_most_once)"),
        (
            "fixed:base=1h,jitter=none,retries=3,maxElapsed=1m,cap=1h",
            "AT_LEAST_ONCE",
            r#","class":"Timeout""#,
            "(deadline)",
        ),
    ] {
        let body = format!(r#"{{"kind":"a","queue":"ends","retry":"{retry}","delivery":"{delivery}"}}"#);
        let id = enqueue(&body).await;
        let job = lease("ends", 1).await[0].clone();
        report("fail", &job, &format!("{fault},\"message\":\"x\"")).await;
        let (_, said) = why(id).await;
        assert!(said.starts_with("It gave up") && said.contains(words), "{said}");
    }
    let done = enqueue(r#"{"kind":"a","queue":"ends"}"#).await;
    let job = lease("ends", 1).await[0].clone();
    report("complete", &job, "").await;
    assert!(why(done).await.1.starts_with("It succeeded"));
    let late = enqueue(r#"{"kind":"a","queue":"late","startBy":"2026-01-01T12:00:30Z"}"#).await;
    world.advance(60_000);
    assert!(why(late).await.1.contains("It had to start by"), "{}", why(late).await.1);
    world.get("/api/v1/jobs/999/why").await.is(404);
}
