//! Bad input of every kind gets a clear 4xx answer and never a 5xx, and nothing is stored.

use super::world::World;
use axum::body::Body;
use hyper::{Method, Request};
use serde_json::{Value, json};
use windlass::http::{HttpExecutor, HttpOptions};

const BODIES: &[(&str, u16, &str)] = &[
    ("", 400, ""),
    ("{", 400, ""),
    ("{\"kind\":\"a\"}}", 400, ""),
    ("nul", 400, ""),
    ("null", 422, ""),
    ("[]", 422, ""),
    ("\"email\"", 422, ""),
    ("{}", 422, "/kind"),
    (r#"{"kind":7}"#, 422, "/kind"),
    (r#"{"kind":""}"#, 422, "/kind"),
    (r#"{"kind":"a "}"#, 422, "/kind"),
    (r#"{"kind":"a\tb"}"#, 422, "/kind"),
    (r#"{"kind":"a\u202eb"}"#, 422, "/kind"),
    (r#"{"kind":"a\u0000"}"#, 422, "/kind"),
    (r#"{"kind":"\ud800"}"#, 422, "/kind"),
    (r#"{"kind":"a","kind":"b"}"#, 422, ""),
    (r#"{"kind":"a","queue":"Email"}"#, 422, "/queue"),
    (r#"{"kind":"a","queue":["x"]}"#, 422, "/queue"),
    (r#"{"kind":"a","tenantId":"../x"}"#, 422, "/tenantId"),
    (r#"{"kind":"a","priority":"urgent"}"#, 422, "/priority"),
    (r#"{"kind":"a","priority":3}"#, 422, "/priority"),
    (r#"{"kind":"a","priority":1.5}"#, 422, "/priority"),
    (r#"{"kind":"a","runAt":"tomorrow"}"#, 422, "/runAt"),
    (r#"{"kind":"a","runAt":1767268800000}"#, 422, "/runAt"),
    (r#"{"kind":"a","runAt":"1950-01-01T00:00:00Z"}"#, 422, "/runAt"),
    (r#"{"kind":"a","delay":"-1s"}"#, 422, "/delay"),
    (r#"{"kind":"a","delay":-1}"#, 422, "/delay"),
    (r#"{"kind":"a","delay":{}}"#, 422, "/delay"),
    (r#"{"kind":"a","delay":"1s","runAt":"2026-01-01T00:00:00Z"}"#, 422, "/delay"),
    (r#"{"kind":"a","retry":7}"#, 422, "/retry"),
    (r#"{"kind":"a","retry":"expo"}"#, 422, "/retry"),
    (r#"{"kind":"a","retry":"exponential:base=x"}"#, 422, "/retry"),
    (r#"{"kind":"a","retry":{"base":"x"}}"#, 422, "/retry/base"),
    (r#"{"kind":"a","retry":{"maxRetries":1001}}"#, 422, "/retry/maxRetries"),
    (r#"{"kind":"a","retry":{"maxRetries":3,"maxAttempts":9}}"#, 422, "/retry/maxRetries"),
    (r#"{"kind":"a","retry":{"jitter":"spread(7)"}}"#, 422, "/retry/jitter"),
    (r#"{"kind":"a","maxRetryCount":"three"}"#, 422, "/maxRetryCount"),
    (r#"{"kind":"a","retryDelay":-5}"#, 422, "/retryDelay"),
    (r#"{"kind":"a","delivery":"EXACTLY_ONCE"}"#, 422, "/delivery"),
    (r#"{"kind":"a","delivery":"AT_LEAST_ONCE","type":"AT_MOST_ONCE"}"#, 422, "/type"),
    (r#"{"kind":"a","timeout":"soon"}"#, 422, "/timeout"),
    (r#"{"kind":"a","startBy":true}"#, 422, "/startBy"),
    (r#"{"kind":"a","idempotencyKey":""}"#, 422, "/idempotencyKey"),
    (r#"{"kind":"a","idempotencyKey":"a\nb"}"#, 422, "/idempotencyKey"),
    (r#"{"kind":"a","idempotencyWindow":"1h"}"#, 422, "/idempotencyWindow"),
    (r#"{"kind":"a","limitKey":""}"#, 422, "/limitKey"),
    (r#"{"kind":"a","limitKey":7}"#, 422, "/limitKey"),
    (r#"{"kind":"a","limitKey":"a\u0007"}"#, 422, "/limitKey"),
    (r#"{"kind":"a","payload":"\ud800"}"#, 422, "/payload"),
    (r#"{"kind":"a","payload":{"n":1e400}}"#, 422, "/payload"),
    (r#"{"kind":"a","payload":"windlass:sealed:1:-:k1:AAAA"}"#, 422, "/payload"),
    (r#"{"kind":"a","payload":"windlass:sealed:1:broken"}"#, 422, "/payload"),
    (
        r#"{"kind":"a","webhook":{"url":"https://example.com","secret":"windlass:sealed:1:-:k1:AAAA"}}"#,
        422,
        "/webhook/secret",
    ),
    (r#"{"kind":"a","webhook":{"url":"https://example.com?windlass-sealed=x"}}"#, 422, "/webhook/url"),
    (r#"{"http":{"url":"https://example.com?windlass-sealed=x"}}"#, 422, "/http/url"),
    (r#"{"http":{"url":"https://example.com","headers":{"Windlass-Sealed":"x"}}}"#, 422, "/http/headers"),
    (r#"{"kind":"a","paylod":1}"#, 422, "/paylod"),
    (r#"{"kind":"a","jobName":"b"}"#, 422, "/jobName"),
    (r#"{"kind":"a","isRecurring":true}"#, 422, "/isRecurring"),
    (r#"{"kind":"a","webhook":"https://example.com"}"#, 422, "/webhook"),
    (r#"{"kind":"a","webhook":{}}"#, 422, "/webhook/url"),
    (r#"{"kind":"a","webhook":{"url":"ftp://example.com"}}"#, 422, "/webhook/url"),
    (r#"{"kind":"a","webhook":{"url":"https://u:p@example.com"}}"#, 422, "/webhook/url"),
    (r#"{"kind":"a","webhook":{"url":"https://example.com","secret":"x"}}"#, 422, "/webhook/secret"),
    (r#"{"kind":"a","webhook":{"url":"https://example.com","events":["started"]}}"#, 422, "/webhook/events"),
    (r#"{"kind":"a","webhook":{"url":"https://exa mple.com"}}"#, 422, "/webhook/url"),
    (r#"{"kind":"a","webhook":{"url":"https://example.com:0/"}}"#, 422, "/webhook/url"),
    (r#"{"http":{"url":"https://example.com"},"timeout":"61m"}"#, 422, "/timeout"),
    (r#"{"api":"https://example.com","schedule":"* * * * *","timeout":"100d"}"#, 422, "/timeout"),
    (r#"{"http":{}}"#, 422, "/http/url"),
    (r#"{"http":"https://example.com"}"#, 422, "/http"),
    (r#"{"http":{"url":"example.com"}}"#, 422, "/http/url"),
    (r#"{"http":{"url":"file:///etc/passwd"}}"#, 422, "/http/url"),
    (r#"{"http":{"url":"https://user:pw@example.com/"}}"#, 422, "/http/url"),
    (r#"{"http":{"url":"https://example.com","method":"FETCH"}}"#, 422, "/http/method"),
    (r#"{"http":{"url":"https://example.com","headers":{"Host":"x"}}}"#, 422, "/http/headers"),
    (r#"{"http":{"url":"https://example.com","headers":{"A":"b\r\nc"}}}"#, 422, "/http/headers"),
    (r#"{"http":{"url":"https://example.com","headers":{"A":7}}}"#, 422, "/http/headers/A"),
    (r#"{"http":{"url":"https://example.com","headrs":{}}}"#, 422, "/http/headrs"),
    (r#"{"api":"nowhere"}"#, 422, "/api"),
    (r#"{"api":"https://example.com","schedule":"every day"}"#, 422, "/schedule"),
    (r#"{"api":"https://example.com","schedule":"* * * * *","isRecurring":"yes"}"#, 422, "/isRecurring"),
];

#[tokio::test]
async fn a_wrong_job_is_reported_where_it_is_wrong_and_not_stored() {
    let world = World::new();
    for (body, status, pointer) in BODIES {
        let answer = world.post("/api/v1/jobs", body).await;
        assert_eq!(answer.status.as_u16(), *status, "{body}: {}", answer.text);
        assert_eq!(answer.headers["content-type"], "application/problem+json");
        if *status == 422 {
            assert!(answer.pointers().iter().any(|p| p == pointer), "{body}: {}", answer.text);
        }
    }
    nothing_is_stored(&world).await;
}

/// URLs that show a target which calls may not reach.
const DENIED: &[&str] = &[
    "http://127.0.0.1/",
    "http://2130706433/",
    "https://[::1]:8443/x",
    "http://169.254.169.254/latest/meta-data",
    "http://[::ffff:10.0.0.1]/",
    "http://localhost:9463/api/v1/jobs",
    "http://metadata.google.internal/",
];

#[tokio::test]
async fn a_target_that_calls_may_not_reach_is_refused_at_every_way_in() {
    let world = World::new();
    HttpExecutor::new(HttpOptions::default(), world.windlass.clock().clone()).guard(&world.windlass);
    for url in DENIED {
        let jobs = [
            (format!(r#"{{"http":{{"url":"{url}"}}}}"#), "/http/url"),
            (format!(r#"{{"api":"{url}"}}"#), "/api"),
            (format!(r#"{{"api":"{url}","schedule":"* * * * *"}}"#), "/api"),
            (format!(r#"{{"kind":"a","webhook":{{"url":"{url}"}}}}"#), "/webhook/url"),
        ];
        for (body, pointer) in jobs {
            let answer = world.post("/api/v1/jobs", &body).await;
            assert_eq!((answer.status.as_u16(), answer.pointers()), (422, vec![pointer.to_owned()]), "{body}");
            let batch = world.post("/api/v1/jobs/batch", &format!(r#"{{"jobs":[{body}],"atomic":true}}"#)).await;
            assert!(batch.status.is_client_error(), "{body}: {}", batch.text);
        }
        let schedule = format!(r#"{{"schedule":"* * * * *","job":{{"http":{{"url":"{url}"}}}}}}"#);
        assert_eq!(world.post("/api/v1/schedules", &schedule).await.status.as_u16(), 422, "{schedule}");
        let webhook = format!(r#"{{"webhook":{{"url":"{url}"}}}}"#);
        let put = world.send(Method::PUT, "/api/v1/tenants/acme", Some(&webhook), &[]).await;
        assert_eq!(put.status.as_u16(), 422, "{}", put.text);
    }
    nothing_is_stored(&world).await;
    world.post("/api/v1/jobs", r#"{"http":{"url":"https://example.com/"}}"#).await.is(201);
}

#[tokio::test]
async fn a_body_too_deep_too_large_or_not_json_is_refused() {
    let world = World::new();
    let deep = format!(r#"{{"kind":"a","payload":{}{}}}"#, "[".repeat(64), "]".repeat(64));
    world.post("/api/v1/jobs", &deep).await.is(400);
    let very_deep = "[".repeat(1_000_000);
    world.post("/api/v1/jobs", &very_deep).await.is(400);
    let large = format!(r#"{{"kind":"a","payload":"{}"}}"#, "x".repeat(256 * 1024));
    assert_eq!(world.post("/api/v1/jobs", &large).await.pointers(), ["/payload"]);
    let huge = format!(r#"{{"kind":"a","payload":"{}"}}"#, "x".repeat(8 * 1024 * 1024));
    assert_eq!(world.post("/api/v1/jobs", &huge).await.is(413)["type"], "urn:windlass:problem:too-large");
    let declared = [("content-length", "99999999999")];
    world.send(Method::POST, "/api/v1/jobs", Some("{}"), &declared).await.is(413);
    for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""] {
        let headers = [("content-type", kind)];
        world.send(Method::POST, "/api/v1/jobs", Some(r#"{"kind":"a"}"#), &headers).await.is(415);
    }
    let bytes = Request::post("/api/v1/jobs").header("content-type", "application/json");
    let answer = world.answer(bytes.body(Body::from(&b"{\"kind\":\"\xff\"}"[..])).unwrap()).await;
    assert!(answer.status.is_client_error(), "{}", answer.text);
    nothing_is_stored(&world).await;
    let json = [("content-type", "application/vnd.x+json; charset=utf-8")];
    world.send(Method::POST, "/api/v1/jobs", Some(r#"{"kind":"a"}"#), &json).await.is(201);
}

#[tokio::test]
async fn wrong_routes_methods_and_queries_are_reported() {
    let world = World::new();
    world.get("/api/v2/jobs").await.is(404);
    world.get("/api/v1/jobs/abc").await.is(404);
    world.get("/api/v1/jobs/-1").await.is(404);
    world.get("/api/v1/jobs/99999999999999999999").await.is(404);
    world.get("/api/v1/jobs/%FF").await.is(404);
    let wrong = world.send(Method::PUT, "/api/v1/jobs", None, &[]).await;
    assert_eq!(wrong.headers["allow"], "GET,HEAD,POST");
    assert_eq!(wrong.is(405)["type"], "urn:windlass:problem:method-not-allowed");
    for query in [
        "state=done",
        "limit=0",
        "limit=1001",
        "limit=x",
        "cursor=x",
        "since=yesterday",
        "queue=A",
        "tenant=a%20b",
        "kind=a%09b",
        "order=up",
        "colour=red",
        "executor=x",
        "schedule=x",
        "class=%00",
        "state=,",
        "state=queued,,failed",
        &format!("class={}", "x".repeat(201)),
    ] {
        let answer = world.get(&format!("/api/v1/jobs?{query}")).await;
        assert_eq!(answer.status.as_u16(), 400, "{query}: {}", answer.text);
    }
    let hint = world.get("/api/v1/jobs?sate=failed").await.is(400);
    assert!(hint["detail"].as_str().unwrap().contains("did you mean `state`?"));
    let own = world.send(Method::GET, "/nope", None, &[("x-request-id", "abc-1")]).await;
    assert_eq!((own.headers["x-request-id"].to_str().unwrap(), &own.json()["requestId"]), ("abc-1", &json!("abc-1")));
}

/// The document says so too: no schema of a query parameter accepts an empty text.
#[tokio::test]
async fn every_route_refuses_each_of_its_query_parameters_when_it_is_empty() {
    let world = World::new();
    let document = world.get("/openapi.json").await.is(200);
    let mut asked = 0;
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            for parameter in parameters.filter(|parameter| parameter["in"] == "query") {
                let name = parameter["name"].as_str().unwrap();
                let path = path.replace("{id}", "1").replace("{name}", "default").replace("{policy}", "http");
                let method = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
                let body = (method == Method::PUT).then_some("{}");
                let answer = world.send(method.clone(), &format!("{path}?{name}="), body, &[]).await;
                assert_eq!(answer.pointers(), [format!("?{name}")], "{method} {path}: {}", answer.text);
                answer.is(400);
                assert!(!accepts_empty(&parameter["schema"]), "{method} {path}: {parameter}");
                asked += 1;
            }
        }
    }
    assert!(asked > 30, "only {asked} query parameters in the document");
}

#[tokio::test]
async fn a_query_with_too_many_parameters_is_refused_whole() {
    let world = World::new();
    let query = |count: usize| format!("/api/v1/jobs?{}", vec!["kind=a"; count].join("&"));
    world.get(&query(100)).await.is(200);
    let refused = world.get(&query(101)).await.is(400);
    assert!(refused["detail"].as_str().unwrap().contains("more than 100 parameters"), "{refused}");
}

fn accepts_empty(schema: &Value) -> bool {
    let is_text = schema["type"] == "string" && !schema["enum"].is_array();
    is_text && schema["pattern"].as_str().is_none_or(|pattern| regex::Regex::new(pattern).unwrap().is_match(""))
}

#[tokio::test]
async fn wrong_leases_are_reported() {
    let world = World::new();
    for (path, body, pointer) in [
        ("", "{}", "/worker"),
        ("", r#"{"worker":""}"#, "/worker"),
        ("", r#"{"worker":"w","max":0}"#, "/max"),
        ("", r#"{"worker":"w","max":1001}"#, "/max"),
        ("", r#"{"worker":"w","waitMs":60001}"#, "/waitMs"),
        ("", r#"{"worker":"w","leaseMs":10}"#, "/leaseMs"),
        ("", r#"{"worker":"w","queues":"email"}"#, "/queues"),
        ("", r#"{"worker":"w","queues":["A"]}"#, "/queues/0"),
        ("/complete", r#"{"worker":"w"}"#, "/results"),
        ("/complete", r#"{"worker":"w","results":[7]}"#, "/results/0"),
        ("/complete", r#"{"worker":"w","results":[{"id":1,"attempt":1,"lease":"zz"}]}"#, "/results/0/lease"),
        ("/complete", r#"{"worker":"w","results":[{"id":0,"attempt":1,"lease":"0000000000000001"}]}"#, "/results/0/id"),
        (
            "/complete",
            r#"{"worker":"w","results":[{"id":1,"attempt":1,"lease":"0000000000000001","class":"X"}]}"#,
            "/results/0/class",
        ),
        (
            "/fail",
            r#"{"worker":"w","results":[{"id":1,"attempt":1,"lease":"0000000000000001","retryAfter":"x"}]}"#,
            "/results/0/retryAfter",
        ),
        ("/extend", r#"{"worker":"w","results":[{"id":1,"attempt":1}]}"#, "/results/0/lease"),
    ] {
        let answer = world.post(&format!("/api/v1/leases{path}"), body).await;
        assert_eq!(answer.pointers(), [pointer], "{path} {body}: {}", answer.text);
        answer.is(422);
    }
    let large = format!(
        r#"{{"worker":"w","results":[{{"id":1,"attempt":1,"lease":"0000000000000001","result":"{}"}}]}}"#,
        "x".repeat(65 * 1024)
    );
    assert_eq!(world.post("/api/v1/leases/complete", &large).await.pointers(), ["/results/0/result"]);
}

async fn nothing_is_stored(world: &World) {
    assert_eq!(world.get("/api/v1/jobs").await.is(200)["items"], json!([]));
    assert_eq!(world.get("/api/v1/schedules").await.is(200)["items"], json!([]));
    assert_eq!(world.get("/api/v1/queues").await.is(200)["items"], json!([]));
}
