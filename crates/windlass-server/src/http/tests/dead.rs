use super::world::World;
use serde_json::json;

#[tokio::test]
async fn dead_letters_are_listed_grouped_and_shown() {
    let world = World::new();
    let (a, b) = (world.dead_letter("email").await, world.dead_letter("email").await);
    world.enqueue("email").await;
    let list = world.get("/api/v1/dead-letters").await.is(200);
    let ids: Vec<_> = list["items"].as_array().unwrap().iter().map(|job| job["id"].as_i64().unwrap()).collect();
    assert_eq!(ids, [b, a]);
    let groups = world.get("/api/v1/dead-letters?group=true").await.is(200);
    assert_eq!(
        (&groups["items"][0]["count"], &groups["items"][0]["errorClass"]),
        (&json!(2), &json!("ValidationError"))
    );
    let print = groups["items"][0]["fingerprint"].as_str().unwrap();
    let of = world.get(&format!("/api/v1/dead-letters?fingerprint={print}")).await.is(200);
    assert_eq!(of["items"].as_array().unwrap().len(), 2);
    let one = world.get(&format!("/api/v1/dead-letters/{a}")).await.is(200);
    assert_eq!((&one["reason"], &one["history"][0]["label"]), (&json!("permanent"), &json!("Initial")));
    world.get("/api/v1/dead-letters/3").await.is(404);
}

#[tokio::test]
async fn dead_letters_are_replayed_by_id_and_by_filter_at_a_rate() {
    let world = World::new();
    let a = world.dead_letter("email").await;
    let b = world.dead_letter("email").await;
    let c = world.dead_letter("sms").await;
    let body = format!(r#"{{"ids":[{c},999]}}"#);
    let replayed = world.post("/api/v1/dead-letters/replay", &body).await.is(200);
    assert_eq!(replayed["results"], json!([{"id": c, "result": "queued"}, {"id": 999, "result": "not_found"}]));
    let rated = r#"{"filter":{"queue":"email"},"rate":2}"#;
    let replayed = world.post("/api/v1/dead-letters/replay", rated).await.is(200);
    assert_eq!((&replayed["done"], &replayed["more"]), (&json!(2), &json!(false)));
    let due = |id: i64| format!("/api/v1/jobs/{id}");
    assert_eq!(world.get(&due(a)).await.is(200)["nextRunAt"], "2026-01-01T12:00:00Z");
    assert_eq!(world.get(&due(b)).await.is(200)["nextRunAt"], "2026-01-01T12:00:00.500Z");
    let again = world.post("/api/v1/dead-letters/replay", rated).await.is(200);
    assert_eq!(again["done"], 0, "repeating it is harmless");
}

#[tokio::test]
async fn a_repeated_replay_continues_where_the_last_one_ended() {
    let world = World::new();
    let rated = r#"{"filter":{"queue":"email"},"rate":2}"#;
    let first_id = world.dead_letter("email").await;
    for _ in 0..2 {
        world.dead_letter("email").await;
    }
    let first = world.post("/api/v1/dead-letters/replay", rated).await.is(200);
    assert_eq!((&first["done"], &first["lastDueAt"]), (&json!(3), &json!("2026-01-01T12:00:01Z")));
    let job = world.lease("email").await;
    assert_eq!(job["id"], first_id, "the others are not due yet");
    world.fail(&job, r#","permanent":true"#).await;
    let other = world.dead_letter("sms").await;
    let again = world.post("/api/v1/dead-letters/replay", rated).await.is(200);
    assert_eq!((&again["done"], &again["lastDueAt"]), (&json!(1), &json!("2026-01-01T12:00:01.500Z")));
    let job = world.get(&format!("/api/v1/jobs/{first_id}")).await.is(200);
    assert_eq!(job["nextRunAt"], "2026-01-01T12:00:01.500Z");
    let by_id = format!(r#"{{"ids":[{other}],"rate":2}}"#);
    let by_id = world.post("/api/v1/dead-letters/replay", &by_id).await.is(200);
    assert_eq!(by_id["lastDueAt"], "2026-01-01T12:00:00Z", "ids are a sequence of their own");
    let audit = world.get("/api/v1/audit?limit=3").await.is(200);
    let reported: Vec<_> =
        audit["items"].as_array().unwrap().iter().map(|line| (&line["action"], &line["count"])).collect();
    assert_eq!(reported, [(&json!("replay"), &json!(1)), (&json!("replay"), &json!(1)), (&json!("replay"), &json!(3))]);
    let detail = audit["items"][2]["detail"].as_str().unwrap();
    assert_eq!(detail, "dead letters queue=\"email\", one every 500ms, goes on at 2026-01-01T12:00:01.500Z");
    let nothing = world.post("/api/v1/dead-letters/replay", rated).await.is(200);
    assert_eq!(nothing, json!({"done": 0, "more": false}));
}

#[tokio::test]
async fn jobs_that_are_not_dead_letters_are_reported_and_unchanged() {
    let world = World::new();
    let dead = world.dead_letter("email").await;
    let waiting = world.enqueue("email").await;
    let discard = format!(r#"{{"ids":[{dead}]}}"#);
    world.post("/api/v1/dead-letters/discard", &discard).await.is(200);
    let body = format!(r#"{{"ids":[{dead},{waiting},999]}}"#);
    let reported = world.post("/api/v1/dead-letters/replay", &body).await.is(200);
    let words: Vec<_> = reported["results"].as_array().unwrap().iter().map(|r| r["result"].as_str().unwrap()).collect();
    assert_eq!((words, &reported["done"]), (vec!["not_dead", "already_live", "not_found"], &json!(0)));
}

#[tokio::test]
async fn discarded_dead_letters_leave_the_list_and_stay_in_the_archive() {
    let world = World::new();
    let id = world.dead_letter("email").await;
    let body = r#"{"filter":{"class":"ValidationError"},"reason":"known"}"#;
    assert_eq!(world.post("/api/v1/dead-letters/discard", body).await.is(200)["done"], 1);
    assert_eq!(world.get("/api/v1/dead-letters").await.is(200)["items"], json!([]));
    let job = world.get(&format!("/api/v1/jobs/{id}")).await.is(200);
    assert_eq!((&job["state"], &job["discardReason"]), (&json!("failed"), &json!("known")));
    for (body, pointer) in [
        ("{}", "/ids"),
        (r#"{"ids":[1],"filter":{}}"#, "/ids"),
        (r#"{"ids":["x"]}"#, "/ids/0"),
        (r#"{"filter":{"queu":"a"}}"#, "/filter/queu"),
        (r#"{"filter":[]}"#, "/filter"),
        (r#"{"filter":{}}"#, "/filter"),
        (r#"{"filter":{},"all":false}"#, "/filter"),
        (r#"{"ids":[1],"reason":"a\u0000b"}"#, "/reason"),
    ] {
        assert_eq!(world.post("/api/v1/dead-letters/discard", body).await.pointers(), [pointer], "{body}");
    }
    assert_eq!(world.post("/api/v1/dead-letters/replay", r#"{"ids":[1],"rate":0}"#).await.pointers(), ["/rate"]);
}
