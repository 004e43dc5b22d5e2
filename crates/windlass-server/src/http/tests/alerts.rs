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
    assert_eq!(rules(&world).await.len(), 7, "the default rules");
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
        ("exhausted", r#"{"tenant":true}"#, "/tenant"),
        ("exhausted", r#"{"window":"1s"}"#, "/window"),
        ("exhausted", r#"{"notify":"oncall"}"#, "/notify"),
        ("exhausted", r#"{"remind":"1s"}"#, "/remind"),
        ("exhausted", r#"{"quiet":"at night"}"#, "/quiet"),
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
    assert_eq!(names, vec![json!("default"); 7]);
}

#[tokio::test]
async fn a_rule_says_whom_it_notifies_and_when() {
    let world = World::with_operators(&["oncall=https://a.example/x"]);
    let body =
        r#"{"tenant":"acme","window":"10m","notify":["oncall"],"remind":"4h","quiet":"22:00-07:00 Europe/Berlin"}"#;
    let set = put(&world, "exhausted", body).await.is(200);
    assert_eq!((&set["tenant"], &set["window"], &set["notify"]), (&json!("acme"), &json!("10m"), &json!(["oncall"])));
    assert_eq!((&set["remind"], &set["quiet"]), (&json!("4h"), &json!("22:00-07:00 Europe/Berlin")));
    let answer = put(&world, "exhausted", r#"{"notify":["nobody"]}"#).await;
    assert_eq!((answer.status.as_u16(), answer.pointers()), (422, vec!["/notify".to_owned()]));
    assert!(answer.text.contains("oncall"), "it says who is known: {}", answer.text);
}

#[tokio::test]
async fn a_test_sends_one_notice_to_each_operator() {
    let world = World::new();
    let refused = world.send(Method::POST, "/api/v1/alerts/test", None, &[]).await.is(409);
    assert!(refused["detail"].as_str().unwrap().contains("alerts.urls"), "{refused}");
    let world = World::with_operators(&[
        "https://a.example/x",
        "team=slack+https://hooks.slack.com/services/T/B/s3cret",
        "chat=slack+https://chat.example/s3cret/s3cret?s3cret",
    ]);
    let sent = world.send(Method::POST, "/api/v1/alerts/test", None, &[]).await.is(202);
    let url = "https://hooks.slack.com/***";
    assert_eq!(sent["items"][1], json!({"jobId": 2, "name": "team", "form": "slack", "url": url}));
    assert_eq!(sent["items"][2]["url"], "https://chat.example/***");
    for (id, url) in [(2, url), (3, "https://chat.example/***")] {
        let shown = world.get(&format!("/api/v1/jobs/{id}")).await.is(200);
        assert!(shown["payload"]["text"].as_str().unwrap().contains("nothing is wrong"), "{shown}");
        assert_eq!(shown["http"]["url"], url);
        let page = world.get(&format!("/jobs/{id}")).await;
        assert!(page.text.contains(url), "the dashboard says where it goes");
        for text in [shown.to_string(), page.text, world.get("/api/v1/jobs").await.text] {
            assert!(!text.contains("s3cret"), "{text}");
        }
    }
    let notice = world.get("/api/v1/jobs/1").await.is(200);
    assert_eq!((&notice["queue"], &notice["kind"]), (&json!("alerts"), &json!("alert")));
    assert_eq!(
        (&notice["payload"]["type"], &notice["payload"]["data"]["rule"]),
        (&json!("alert.test"), &json!("test"))
    );
}
