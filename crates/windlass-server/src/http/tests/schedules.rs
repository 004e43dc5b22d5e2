use super::world::World;
use hyper::Method;
use serde_json::json;

const NIGHTLY: &str = r#"{"cron":"30 2 * * *","timezone":"Europe/Berlin","overlap":"allow","missed":"skip",
    "job":{"kind":"report","queue":"reports","payload":{"x":1}}}"#;

#[tokio::test]
async fn a_schedule_is_made_changed_and_removed() {
    let world = World::new();
    let answer = world.post("/api/v1/schedules", NIGHTLY).await;
    assert_eq!(answer.headers["location"], "/api/v1/schedules/1");
    let made = answer.is(201);
    assert_eq!((&made["cron"], &made["timezone"]), (&json!("30 2 * * *"), &json!("Europe/Berlin")));
    assert_eq!((&made["nextRunAt"], &made["overlap"]), (&json!("2026-01-02T01:30:00Z"), &json!("allow")));
    assert_eq!((&made["missed"], &made["recurring"]), (&json!("skip"), &json!(true)));
    let change = r#"{"every":"45s","overlap":"skip"}"#;
    let changed = world.send(Method::PATCH, "/api/v1/schedules/1", Some(change), &[]).await.is(200);
    assert_eq!((&changed["every"], &changed["cron"]), (&json!("45s"), &json!(null)));
    assert_eq!((&changed["nextFiringAt"], &changed["overlap"]), (&json!("2026-01-01T12:00:45Z"), &json!("skip")));
    assert_eq!(changed["job"]["kind"], "report");
    assert_eq!(world.get("/api/v1/schedules").await.is(200)["items"][0]["id"], 1);
    world.send(Method::DELETE, "/api/v1/schedules/1", None, &[]).await.is(204);
    for (method, path) in [
        (Method::DELETE, "/1"),
        (Method::GET, "/1"),
        (Method::GET, "/x"),
        (Method::POST, "/1/pause"),
        (Method::POST, "/1/resume"),
        (Method::POST, "/1/trigger"),
        (Method::GET, "/1/preview"),
    ] {
        world.send(method, &format!("/api/v1/schedules{path}"), None, &[]).await.is(404);
    }
}

#[tokio::test]
async fn a_paused_schedule_has_no_next_firing_until_it_resumes() {
    let world = World::new();
    world.post("/api/v1/schedules", NIGHTLY).await.is(201);
    let paused = world.post("/api/v1/schedules/1/pause", "").await.is(200);
    assert_eq!((&paused["paused"], &paused["nextRunAt"]), (&json!(true), &json!(null)));
    world.advance(86_400_000);
    let resumed = world.post("/api/v1/schedules/1/resume", "").await.is(200);
    assert_eq!((&resumed["paused"], &resumed["nextRunAt"]), (&json!(false), &json!("2026-01-03T01:30:00Z")));
}

#[tokio::test]
async fn a_triggered_run_belongs_to_its_schedule_and_shows_its_retry_time() {
    let world = World::new();
    world.post("/api/v1/schedules", NIGHTLY).await.is(201);
    let run = world.post("/api/v1/schedules/1/trigger", "").await.is(201);
    assert_eq!((&run["scheduleId"], &run["id"], &run["kind"]), (&json!(1), &json!(2), &json!("report")));
    let job = world.lease("reports").await;
    world.fail(&job, r#","retryIn":"5m""#).await;
    let schedule = world.get("/api/v1/schedules/1").await.is(200);
    assert_eq!((&schedule["nextRunAt"], &schedule["lastJobId"]), (&json!("2026-01-01T12:05:00Z"), &json!(2)));
    assert_eq!(schedule["nextFiringAt"], "2026-01-02T01:30:00Z");
    let history = world.get("/api/v1/jobs/1/history").await.is(200);
    assert_eq!((&history["items"][0]["jobId"], &history["items"][0]["label"]), (&json!(2), &json!("Initial")));
    let runs = world.get("/api/v1/jobs?schedule=1").await.is(200);
    assert_eq!(runs["items"][0]["id"], 2);
}

#[tokio::test]
async fn firings_are_previewed_for_schedules_and_for_lines() {
    let world = World::new();
    world.post("/api/v1/schedules", NIGHTLY).await.is(201);
    let next = world.get("/api/v1/schedules/1/preview?count=2").await.is(200);
    assert_eq!(next["firings"], json!(["2026-01-02T01:30:00Z", "2026-01-03T01:30:00Z"]));
    let line = world.post("/api/v1/schedules/preview", r#"{"cron":"*/20 * * * * *","count":3}"#).await.is(200);
    assert_eq!(line["firings"], json!(["2026-01-01T12:00:20Z", "2026-01-01T12:00:40Z", "2026-01-01T12:01:00Z"]));
    assert_eq!(world.post("/api/v1/schedules/preview", "{}").await.pointers(), ["/cron"]);
}

#[tokio::test]
async fn a_wrong_schedule_is_reported_where_it_is_wrong() {
    let world = World::new();
    for (body, pointer) in [
        (r#"{"cron":"61 * * * *","job":{"kind":"a"}}"#, "/cron"),
        (r#"{"cron":"* * *","job":{"kind":"a"}}"#, "/cron"),
        (r#"{"cron":"0 0 30 2 *","job":{"kind":"a"}}"#, "/cron"),
        (r#"{"cron":"* * * * *","timezone":"Mars/Base","job":{"kind":"a"}}"#, "/timezone"),
        (r#"{"every":"10ms","job":{"kind":"a"}}"#, "/every"),
        (r#"{"every":"1m","cron":"* * * * *","job":{"kind":"a"}}"#, "/every"),
        (r#"{"every":"1m","job":{"kind":"a","runAt":"2026-01-01T00:00:00Z"}}"#, "/job/runAt"),
        (r#"{"every":"1m","job":{"kind":"a\tb"}}"#, "/job/kind"),
        (r#"{"every":"1m","job":{"kind":"a"},"kind":"b"}"#, "/kind"),
        (r#"{"every":"1m"}"#, "/kind"),
        (r#"{"job":{"kind":"a"}}"#, "/cron"),
        (r#"{"every":"1m","overlap":"maybe","job":{"kind":"a"}}"#, "/overlap"),
        (r#"{"every":"1m","misssed":"one","job":{"kind":"a"}}"#, "/misssed"),
    ] {
        let answer = world.post("/api/v1/schedules", body).await;
        assert_eq!(answer.pointers(), [pointer], "{body}");
        answer.is(422);
    }
    assert_eq!(world.get("/api/v1/schedules").await.is(200)["items"], json!([]));
}

const FAMILY_D: &str = r#"{"schedule":"*/10 * * * * *","api":"https://example.com/x","type":"AT_LEAST_ONCE","isRecurring":true,
    "maxRetryCount":3}"#;

#[tokio::test]
async fn what_post_jobs_made_by_a_schedule_is_managed_by_the_id_it_returned() {
    let world = World::new();
    let answer = world.post("/api/v1/jobs", FAMILY_D).await;
    assert_eq!(answer.headers["location"], "/api/v1/jobs/1");
    let made = answer.is(201);
    let shown = world.get("/api/v1/jobs/1").await.is(200);
    for found in [&made, &shown] {
        assert_eq!((&found["id"], &found["cron"]), (&json!(1), &json!("*/10 * * * * *")));
        assert_eq!((&found["api"], &found["type"]), (&json!("https://example.com/x"), &json!("AT_LEAST_ONCE")));
        assert_eq!((&found["isRecurring"], &found["maxRetryCount"]), (&json!(true), &json!(3)));
        assert_eq!((&found["deadLetters"], &found["job"]["maxAttempts"]), (&json!("latest"), &json!(4)));
    }
    let change = async |body: &str| world.send(Method::PATCH, "/api/v1/jobs/1", Some(body), &[]).await;
    let before = shown["job"]["retry"].clone();
    let changed = change(r#"{"maxRetryCount":5}"#).await.is(200);
    assert_eq!((&changed["maxRetryCount"], &changed["job"]["retry"]["maxRetries"]), (&json!(5), &json!(5)));
    assert_eq!(changed["job"]["retry"]["base"], before["base"], "nothing else of the policy changes");
    let body = r#"{"schedule":"0 3 * * *","api":"https://example.com/y","type":"AT_MOST_ONCE","isRecurring":false}"#;
    let changed = change(body).await.is(200);
    assert_eq!((&changed["cron"], &changed["api"]), (&json!("0 3 * * *"), &json!("https://example.com/y")));
    assert_eq!((&changed["type"], &changed["isRecurring"]), (&json!("AT_MOST_ONCE"), &json!(false)));
    assert_eq!((&changed["job"]["maxAttempts"], &changed["maxRetryCount"]), (&json!(1), &json!(0)));
    assert_eq!(change(r#"{"deadLetters":"all","paused":true}"#).await.is(200)["deadLetters"], "all");
    for (wrong, pointer) in [
        (r#"{"maxRetryCount":1001}"#, "/maxRetryCount"),
        (r#"{"maxRetryCount":"many"}"#, "/maxRetryCount"),
        (r#"{"api":"ftp://example.com"}"#, "/api"),
        (r#"{"type":"TWICE"}"#, "/type"),
        (r#"{"schedule":"never"}"#, "/schedule"),
        (r#"{"deadLetters":"some"}"#, "/deadLetters"),
        (r#"{"kind":"other"}"#, "/kind"),
    ] {
        let answer = change(wrong).await;
        assert_eq!((answer.status.as_u16(), answer.pointers()), (422, vec![pointer.to_owned()]), "{wrong}");
    }
    assert_eq!(world.get("/api/v1/jobs/1").await.is(200)["maxRetryCount"], 0, "wrong changes change nothing");
    world.send(Method::DELETE, "/api/v1/jobs/1", None, &[]).await.is(204);
    for method in [Method::GET, Method::DELETE] {
        world.send(method, "/api/v1/jobs/1", None, &[]).await.is(404);
    }
    change(r#"{"maxRetryCount":5}"#).await.is(404);
}

#[tokio::test]
async fn a_job_in_the_same_shape_without_a_schedule_echoes_its_fields() {
    let world = World::new();
    let body = r#"{"api":"https://example.com/x","type":"AT_MOST_ONCE","maxRetryCount":3}"#;
    let made = world.post("/api/v1/jobs", body).await.is(201);
    for job in [made, world.get("/api/v1/jobs/1").await.is(200)] {
        assert_eq!((&job["api"], &job["type"]), (&json!("https://example.com/x"), &json!("AT_MOST_ONCE")));
        assert_eq!((&job["isRecurring"], &job["maxAttempts"]), (&json!(false), &json!(1)));
    }
    let plain = world.post("/api/v1/jobs", r#"{"kind":"a"}"#).await.is(201);
    assert!(plain.get("api").is_none() && plain.get("isRecurring").is_none(), "{plain}");
}

#[tokio::test]
async fn another_tenant_does_not_find_a_schedule_among_its_jobs() {
    let world = World::new();
    world.post("/api/v1/jobs", FAMILY_D).await.is(201);
    let foreign = world.with_token(&["read", "manage"], Some("other")).await;
    foreign.get("/api/v1/jobs/1").await.is(404);
    foreign.send(Method::PATCH, "/api/v1/jobs/1", Some(r#"{"maxRetryCount":5}"#), &[]).await.is(404);
    foreign.send(Method::DELETE, "/api/v1/jobs/1", None, &[]).await.is(404);
}

#[tokio::test]
async fn the_latest_failed_run_takes_the_place_of_the_one_before() {
    let world = World::new();
    let body = r#"{"every":"1h","job":{"kind":"report","queue":"reports"}}"#;
    world.post("/api/v1/schedules", body).await.is(201);
    for _ in 0..3 {
        world.send(Method::POST, "/api/v1/schedules/1/trigger", None, &[]).await.is(201);
        let leased = world.lease("reports").await;
        world.fail(&leased, r#","permanent":true"#).await;
    }
    let dead = world.get("/api/v1/dead-letters").await.is(200);
    assert_eq!(dead["items"].as_array().unwrap().iter().map(|job| &job["id"]).collect::<Vec<_>>(), [&json!(4)]);
    let older = world.get("/api/v1/jobs/2").await.is(200);
    assert_eq!((&older["state"], &older["discardReason"]), (&json!("failed"), &json!("superseded")));
}
