//! The OpenAPI document, pages, health, policies, stats.

use super::world::World;
use crate::http::input::draft::JOB_FIELDS;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use windlass_core::policy::FAMILY_FIELDS;

#[tokio::test]
async fn the_document_is_openapi_3_1_and_every_reference_in_it_resolves() {
    let world = World::new();
    let document = world.get("/openapi.json").await.is(200);
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
    let mut references = Vec::new();
    collect(&document, &mut references);
    assert!(references.len() > 50);
    for reference in references {
        assert!(document.pointer(reference.trim_start_matches('#')).is_some(), "{reference}");
    }
}

fn collect(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            found.extend(fields.get("$ref").and_then(Value::as_str).map(str::to_owned));
            fields.values().for_each(|value| collect(value, found));
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[tokio::test]
async fn the_document_and_the_reader_know_the_same_fields_of_a_job() {
    let world = World::new();
    let document = world.get("/openapi.json").await.is(200);
    let properties = document.pointer("/components/schemas/NewJob/properties").unwrap().as_object().unwrap();
    let documented: BTreeSet<&str> = properties.keys().map(String::as_str).collect();
    let read = [JOB_FIELDS, FAMILY_FIELDS, &["schedule", "isRecurring"]].concat();
    assert_eq!(documented, read.into_iter().collect());
}

#[tokio::test]
async fn every_operation_has_its_own_id_and_everything_is_described() {
    let world = World::new();
    let document = world.get("/openapi.json").await.is(200);
    let mut ids = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let id = operation["operationId"].as_str().unwrap();
            assert!(ids.insert(id), "{id} twice");
            assert!(operation["summary"].as_str().is_some_and(|text| !text.is_empty()), "{method} {path}");
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                assert!(is_described(parameter), "{id}: parameter {}", parameter["name"]);
            }
            for (status, response) in operation["responses"].as_object().unwrap() {
                assert!(response.get("$ref").is_some() || is_described(response), "{id}: {status}");
            }
        }
    }
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        assert!(is_described(schema), "{name}");
        let parts = schema["allOf"].as_array().into_iter().flatten().chain([schema]);
        for (field, property) in parts.filter_map(|part| part["properties"].as_object()).flatten() {
            assert!(is_described(property), "{name}.{field}");
        }
    }
}

fn is_described(value: &Value) -> bool {
    value["description"].as_str().is_some_and(|text| !text.trim().is_empty())
}

#[tokio::test]
async fn the_reference_is_searched_by_the_server() {
    let world = World::new();
    let all = world.get("/docs").await.text;
    assert!(
        all.contains("id=\"enqueueJob\"") && all.contains("id=\"schema-Policy\"") && all.contains("ann@example.com")
    );
    let found = world.get("/docs?q=DEAD+letters+discard").await;
    assert!(found.text.contains("id=\"discardDeadLetters\"") && !found.text.contains("id=\"enqueueJob\""));
    assert!(found.headers["content-security-policy"].to_str().unwrap().contains("form-action 'self'"));
    let nothing = world.get("/docs?q=%3Cscript%3Enothing").await.text;
    assert!(nothing.contains("Nothing matches") && !nothing.contains("<script"));
}

#[tokio::test]
async fn pages_work_without_scripts_and_name_every_path() {
    let world = World::new();
    let docs = world.get("/docs").await;
    assert!(docs.status.is_success() && !docs.text.contains("<script") && !docs.text.contains("http://"));
    let document = world.get("/openapi.json").await.is(200);
    for path in document["paths"].as_object().unwrap().keys() {
        assert!(docs.text.contains(&format!("<code>{path}</code>")), "{path}");
    }
    let status = world.get("/").await;
    assert!(status.text.contains("Windlass") && status.text.contains("/docs"));
    assert!(status.headers["content-security-policy"].to_str().unwrap().contains("frame-ancestors 'none'"));
}

#[tokio::test]
async fn health_and_metrics_answer() {
    let world = World::new();
    world.dead_letter("email").await;
    assert_eq!(world.get("/healthz").await.is(200)["status"], "ok");
    assert_eq!(world.get("/readyz").await.is(200)["store"], "memory");
    let metrics = world.get("/metrics").await;
    assert!(
        metrics.text.contains("windlass_dead_letters{queue=\"email\"} 1") && metrics.text.ends_with("# EOF\n"),
        "{}",
        metrics.text
    );
    assert_eq!(world.get("/api/v1/alerts").await.is(200)["items"], json!([]));
}

#[tokio::test]
async fn policies_are_listed_shown_and_previewed() {
    let world = World::new();
    let list = world.get("/api/v1/policies").await.is(200);
    let names: Vec<_> = list["items"].as_array().unwrap().iter().map(|p| p["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"full-jitter") && names.contains(&"stepped"));
    let one = world.get("/api/v1/policies/http").await.is(200);
    assert_eq!((&one["preset"], &one["policy"]["maxDelay"]), (&json!(true), &json!("5m")));
    world.get("/api/v1/policies/nothing").await.is(404);
    let preview = world.post("/api/v1/policies/preview", r#"{"policy":"full-jitter"}"#).await.is(200);
    assert_eq!(
        preview["delays"],
        json!([
            {"retry": 1, "delayMs": 500, "minMs": 0, "maxMs": 500, "totalMs": 500},
            {"retry": 2, "delayMs": 1000, "minMs": 0, "maxMs": 1000, "totalMs": 1500},
            {"retry": 3, "delayMs": 2000, "minMs": 0, "maxMs": 2000, "totalMs": 3500},
        ])
    );
    for (body, pointer) in [
        ("{}", "/policy"),
        (r#"{"policy":"exponential:bse=1s"}"#, "/policy"),
        (r#"{"policy":{"maxRetries":-1}}"#, "/policy/maxRetries"),
        (r#"{"policy":"http","count":1001}"#, "/count"),
    ] {
        assert_eq!(world.post("/api/v1/policies/preview", body).await.pointers(), [pointer], "{body}");
    }
}

#[tokio::test]
async fn stats_count_retries_and_how_they_ended() {
    let world = World::new();
    world.enqueue("email").await;
    let job = world.lease("email").await;
    world.fail(&job, "").await;
    world.advance(1_000);
    let job = world.lease("email").await;
    let body = format!(
        r#"{{"worker":"w1","results":[{{"id":{},"attempt":{},"lease":{}}}]}}"#,
        job["id"], job["attempt"], job["lease"]
    );
    world.post("/api/v1/leases/complete", &body).await.is(200);
    world.dead_letter("sms").await;
    let stats = world.get("/api/v1/stats").await.is(200);
    let total = &stats["windows"]["5m"]["total"];
    assert_eq!((&total["totalRetries"], &total["successfulRetries"]), (&json!(1), &json!(1)));
    assert_eq!((&total["retrySuccessRate"], &total["attempts"]), (&json!(1.0), &json!(3)));
    assert_eq!((&total["exhausted"], &total["failed"]), (&json!(0), &json!(1)));
    assert_eq!(total["latency"]["backoffMs"], json!(1000.0));
    assert_eq!(stats["windows"]["1h"]["queues"]["sms"]["failed"], 1);
    assert_eq!(stats["windows"]["24h"]["kinds"]["email"]["succeeded"], 1);
    assert_eq!(stats["windows"]["24h"]["tenants"]["default"]["retryRate"], json!(0.5));
}
