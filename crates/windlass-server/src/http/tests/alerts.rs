use super::world::World;
use hyper::Method;
use serde_json::{Value, json};

async fn put(world: &World, name: &str, body: &str) -> super::world::Answer {
    world.send(Method::PUT, &format!("/api/v1/alerts/rules/{name}"), Some(body), &[]).await
}

async fn rules(world: &World) -> Vec<Value> {
    world.get("/api/v1/alerts/rules").await.is(200)["items"].as_array().unwrap().clone()
}

async fn rule(world: &World, name: &str) -> Option<Value> {
    rules(world).await.into_iter().find(|rule| rule["name"] == name)
}

#[tokio::test]
async fn rules_are_set_listed_turned_off_and_reset() {
    let world = World::new();
    assert_eq!(rules(&world).await.len(), 5, "the default rules");
    assert_eq!(rule(&world, "dead_letters").await.unwrap()["source"], "default");
    let set = put(&world, "dead_letters", r#"{"threshold":10,"for":"1m"}"#).await.is(200);
    assert_eq!((&set["threshold"], &set["for"], &set["source"]), (&json!(10), &json!("1m"), &json!("operator")));
    put(&world, "slow%20mail", r#"{"measure":"oldest_due","threshold":"2m","queue":"email"}"#).await.is(200);
    let slow = rule(&world, "slow mail").await.unwrap();
    assert_eq!((&slow["threshold"], &slow["queue"], &slow["off"]), (&json!("2m"), &json!("email"), &json!(false)));
    assert_eq!(put(&world, "backoff", r#"{"off":true}"#).await.is(200), json!({"name": "backoff", "off": true}));
    assert_eq!(rule(&world, "backoff").await.unwrap()["off"], true);
    let remove = async |name: &str| {
        world.send(Method::DELETE, &format!("/api/v1/alerts/rules/{name}"), None, &[]).await.status.as_u16()
    };
    assert_eq!(
        [remove("backoff").await, remove("dead_letters").await, remove("slow%20mail").await, remove("backoff").await],
        [204, 204, 204, 404]
    );
    assert_eq!(rule(&world, "slow mail").await, None);
    assert_eq!(rule(&world, "dead_letters").await.unwrap()["threshold"], 1);
    let audit = world.get("/api/v1/audit").await.is(200).to_string();
    assert!(audit.contains("set alert rule") && audit.contains("reset alert rule"), "{audit}");
}

#[tokio::test]
async fn a_wrong_rule_is_reported_where_it_is_wrong_and_changes_nothing() {
    let world = World::new();
    for (name, body, pointer) in [
        ("ours", "{}", "/measure"),
        ("ours", r#"{"measure":"moon"}"#, "/measure"),
        ("exhausted", r#"{"threshold":"many"}"#, "/threshold"),
        ("exhausted", r#"{"treshold":1}"#, "/treshold"),
        ("exhausted", r#"{"for":true}"#, "/for"),
        ("exhausted", r#"{"queue":"No Name"}"#, "/queue"),
        ("exhausted", r#"{"off":"yes"}"#, "/off"),
        ("exhausted", r#"{"off":true,"threshold":3}"#, "/off"),
        ("exhausted", "[]", ""),
    ] {
        let answer = put(&world, name, body).await;
        assert_eq!((answer.status.as_u16(), answer.pointers()), (422, vec![pointer.to_owned()]), "{body}");
    }
    put(&world, &"x".repeat(65), r#"{"measure":"exhausted"}"#).await.is(422);
    put(&world, "nothing", r#"{"off":true}"#).await.is(404);
    let names: Vec<Value> = rules(&world).await.iter().map(|rule| rule["source"].clone()).collect();
    assert_eq!(names, vec![json!("default"); 5]);
}

#[tokio::test]
async fn a_test_sends_one_notice_to_each_operator() {
    let world = World::new();
    let refused = world.send(Method::POST, "/api/v1/alerts/test", None, &[]).await.is(409);
    assert!(refused["detail"].as_str().unwrap().contains("alerts.urls"), "{refused}");
    let world = World::with_operators(&["https://a.example/x", "https://b.example/x"]);
    let sent = world.send(Method::POST, "/api/v1/alerts/test", None, &[]).await.is(202);
    assert_eq!(sent["items"][1], json!({"jobId": 2, "url": "https://b.example/x"}));
    let notice = world.get("/api/v1/jobs/1").await.is(200);
    assert_eq!((&notice["queue"], &notice["kind"]), (&json!("alerts"), &json!("alert")));
    assert_eq!(
        (&notice["payload"]["type"], &notice["payload"]["data"]["rule"]),
        (&json!("alert.test"), &json!("test"))
    );
}
