//! Replacing webhook secrets over the API.

use super::world::World;
use hyper::Method;
use serde_json::json;

const OLD: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const NEW: &str = "whsec_bmV3LW5ldy1uZXctbmV3LW5ldy1uZXctbmV3LW5ldw==";
const PLACE: &str = "/api/v1/tenants/acme/webhook/rotate";

#[tokio::test]
async fn the_tenants_a_jobs_and_a_schedules_secret_can_be_replaced() {
    let world = World::new();
    world.post(PLACE, "{}").await.is(409);
    let webhook = format!(r#"{{"webhook":{{"url":"https://example.com/x","secret":"{OLD}"}}}}"#);
    world.send(Method::PUT, "/api/v1/tenants/acme", Some(&webhook), &[]).await.is(200);
    assert_eq!(world.get("/api/v1/tenants/acme").await.is(200)["overlapUntil"], json!(null));
    let rotated = world.post(PLACE, r#"{"overlap":"2d"}"#).await.is(200);
    assert!(rotated["secret"].as_str().unwrap().starts_with("whsec_"), "{rotated}");
    assert_eq!(world.get("/api/v1/tenants/acme").await.is(200)["overlapUntil"], rotated["overlapUntil"]);

    let job =
        format!(r#"{{"tenantId":"acme","kind":"a","webhook":{{"url":"https://example.com/x","secret":"{NEW}"}}}}"#);
    let job = world.post("/api/v1/jobs", &job).await.is(201)["id"].clone();
    world.post(PLACE, &format!(r#"{{"jobId":{job}}}"#)).await.is(200);
    let schedule = format!(
        r#"{{"tenantId":"acme","every":"1h","kind":"a","webhook":{{"url":"https://example.com/x","secret":"{OLD}"}}}}"#
    );
    let schedule = world.post("/api/v1/schedules", &schedule).await.is(201)["id"].clone();
    world.post(PLACE, &format!(r#"{{"scheduleId":{schedule}}}"#)).await.is(200);
    let audit = world.get("/api/v1/audit").await;
    assert_eq!(audit.text.matches("rotate secret").count(), 3, "{}", audit.text);
    assert!(!audit.text.contains("whsec_"), "{}", audit.text);
}

#[tokio::test]
async fn wrong_rotations_change_nothing_and_name_the_field() {
    let world = World::new();
    for (body, status, pointer) in [
        (r#"{"secret":"whsec_"}"#.to_owned(), 409, ""),
        (format!(r#"{{"from":"{OLD}","secret":"whsec_"}}"#), 422, "/secret"),
        (format!(r#"{{"from":"{OLD}","secret":"{OLD}"}}"#), 422, "/secret"),
        (r#"{"from":"secret"}"#.into(), 422, "/from"),
        (format!(r#"{{"from":"{OLD}","jobId":1}}"#), 422, ""),
        (format!(r#"{{"from":"{OLD}","overlap":"91d"}}"#), 422, "/overlap"),
        (format!(r#"{{"from":"{OLD}","overlap":"soon"}}"#), 422, "/overlap"),
        (r#"{"jobId":99}"#.into(), 404, ""),
        (r#"{"scheduleId":99}"#.into(), 404, ""),
        (r#"{"scheduleId":0}"#.into(), 422, "/scheduleId"),
        (r#"{"old":"x"}"#.into(), 422, "/old"),
    ] {
        let answer = world.post(PLACE, &body).await.is(status);
        if !pointer.is_empty() {
            assert_eq!(answer["errors"][0]["pointer"], pointer, "{body}");
        }
    }
    world.post(PLACE, &format!(r#"{{"from":"{OLD}","secret":"{NEW}"}}"#)).await.is(200);
    let back = world.post(PLACE, &format!(r#"{{"from":"{NEW}","secret":"{OLD}"}}"#)).await.is(422);
    assert!(back["detail"].as_str().unwrap().contains("cannot come back"), "{back}");
}
