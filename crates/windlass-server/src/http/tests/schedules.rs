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
        (r#"{"every":"1m","job":{"kind":"a b"}}"#, "/job/kind"),
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
