//! Tokens, scopes and tenants over every route. A route of the OpenAPI document that is missing here fails the test.

use super::world::World;
use crate::http::Access;
use crate::token::Grant;
use http_body_util::BodyExt;
use hyper::Method;
use serde_json::json;
use std::collections::BTreeSet;
use windlass_core::Millis;
use windlass_core::job::QueueName;

/// Who may call a route.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Needs {
    Nothing,
    Scope(&'static str),
    /// The scope, for all tenants.
    AllTenants(&'static str),
}
use Needs::{AllTenants, Nothing, Scope};

/// The answer to a token of another tenant on our data.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Foreign {
    /// The route is not about a single resource.
    NotAsked,
    /// The resource does not exist for that tenant.
    NotFound,
}
use Foreign::{NotAsked, NotFound};

const JOB: &str = r#"{"kind":"a"}"#;
const RESULTS: &str = r#"{"worker":"w","results":[]}"#;

/// Method, path, body, scope, and what another tenant finds (`{id}` is our job, `{schedule}` our schedule, `{dead}` our
/// dead letter).
pub(super) const ROUTES: &[(&str, &str, &str, Needs, Foreign)] = &[
    ("GET", "/api/v1/jobs", "", Scope("read"), NotAsked),
    ("POST", "/api/v1/jobs", JOB, Scope("enqueue"), NotAsked),
    ("POST", "/api/v1/jobs/batch", r#"{"jobs":[{"kind":"a"}]}"#, Scope("enqueue"), NotAsked),
    ("GET", "/api/v1/jobs/{id}", "", Scope("read"), NotFound),
    ("PATCH", "/api/v1/jobs/{id}", r#"{"priority":"low"}"#, Scope("manage"), NotFound),
    ("DELETE", "/api/v1/jobs/{id}", "", Scope("manage"), NotFound),
    ("POST", "/api/v1/jobs/{id}/retry", "", Scope("manage"), NotFound),
    ("GET", "/api/v1/jobs/{id}/history", "", Scope("read"), NotFound),
    ("GET", "/api/v1/jobs/{id}/why", "", Scope("read"), NotFound),
    ("GET", "/api/v1/holds", "", Scope("read"), NotAsked),
    ("PUT", "/api/v1/holds", r#"{"queue":"ours","for":"1m"}"#, Scope("manage"), NotAsked),
    ("DELETE", "/api/v1/holds?queue=ours", "", Scope("manage"), NotAsked),
    ("GET", "/api/v1/kinds", "", Scope("read"), NotAsked),
    ("PUT", "/api/v1/kinds/{rule}", "{}", AllTenants("admin"), NotAsked),
    ("GET", "/api/v1/schedules", "", Scope("read"), NotAsked),
    ("POST", "/api/v1/schedules", r#"{"every":"1h","kind":"a"}"#, Scope("manage"), NotAsked),
    ("POST", "/api/v1/schedules/preview", r#"{"every":"1h"}"#, Scope("read"), NotAsked),
    ("GET", "/api/v1/schedules/{schedule}", "", Scope("read"), NotFound),
    ("PATCH", "/api/v1/schedules/{schedule}", r#"{"overlap":"skip"}"#, Scope("manage"), NotFound),
    ("POST", "/api/v1/schedules/{schedule}/pause", "", Scope("manage"), NotFound),
    ("POST", "/api/v1/schedules/{schedule}/resume", "", Scope("manage"), NotFound),
    ("POST", "/api/v1/schedules/{schedule}/trigger", "", Scope("manage"), NotFound),
    ("GET", "/api/v1/schedules/{schedule}/preview", "", Scope("read"), NotFound),
    ("DELETE", "/api/v1/schedules/{schedule}", "", Scope("manage"), NotFound),
    ("GET", "/api/v1/queues", "", Scope("read"), NotAsked),
    ("PUT", "/api/v1/queues/{name}", r#"{"policy":"http"}"#, Scope("admin"), NotAsked),
    ("POST", "/api/v1/queues/{name}/pause", "", Scope("manage"), NotFound),
    ("POST", "/api/v1/queues/{name}/resume", "", Scope("manage"), NotFound),
    ("POST", "/api/v1/queues/{name}/purge", "", Scope("admin"), NotFound),
    ("GET", "/api/v1/dead-letters", "", Scope("read"), NotAsked),
    ("GET", "/api/v1/dead-letters/{dead}", "", Scope("read"), NotFound),
    ("POST", "/api/v1/dead-letters/replay", r#"{"filter":{"queue":"nowhere"}}"#, Scope("manage"), NotAsked),
    ("POST", "/api/v1/dead-letters/discard", r#"{"filter":{"queue":"nowhere"}}"#, Scope("manage"), NotAsked),
    ("POST", "/api/v1/leases", r#"{"worker":"w","queues":["nowhere"]}"#, Scope("work"), NotAsked),
    ("POST", "/api/v1/leases/extend", RESULTS, Scope("work"), NotAsked),
    ("POST", "/api/v1/leases/complete", RESULTS, Scope("work"), NotAsked),
    ("POST", "/api/v1/leases/fail", RESULTS, Scope("work"), NotAsked),
    ("GET", "/api/v1/policies", "", Scope("read"), NotAsked),
    ("GET", "/api/v1/policies/{policy}", "", Scope("read"), NotAsked),
    ("POST", "/api/v1/policies/preview", r#"{"policy":"http"}"#, Scope("read"), NotAsked),
    ("GET", "/api/v1/tenants/{tenant}", "", Scope("read"), NotFound),
    ("PUT", "/api/v1/tenants/{tenant}", "{}", Scope("admin"), NotFound),
    ("PUT", "/api/v1/tenants/{tenant}/quotas", r#"{"waiting":5}"#, AllTenants("admin"), NotAsked),
    (
        "POST",
        "/api/v1/tenants/{tenant}/webhook/rotate",
        r#"{"from":"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}"#,
        Scope("admin"),
        NotFound,
    ),
    ("GET", "/api/v1/stats", "", Scope("read"), NotAsked),
    ("GET", "/api/v1/workers", "", AllTenants("read"), NotAsked),
    ("GET", "/api/v1/alerts", "", AllTenants("read"), NotAsked),
    ("GET", "/api/v1/alerts/rules", "", AllTenants("read"), NotAsked),
    ("PUT", "/api/v1/alerts/rules/{rule}", r#"{"measure":"exhausted"}"#, AllTenants("admin"), NotAsked),
    ("DELETE", "/api/v1/alerts/rules/{rule}", "", AllTenants("admin"), NotAsked),
    ("POST", "/api/v1/alerts/test", "", AllTenants("admin"), NotAsked),
    ("GET", "/api/v1/faktory/workers", "", AllTenants("read"), NotAsked),
    ("POST", "/api/v1/faktory/workers/{wid}/quiet", "", AllTenants("admin"), NotAsked),
    ("POST", "/api/v1/faktory/workers/{wid}/terminate", "", AllTenants("admin"), NotAsked),
    ("GET", "/api/v1/audit", "", AllTenants("read"), NotAsked),
    ("GET", "/api/v1/events", "", Scope("read"), NotAsked),
    ("GET", "/metrics", "", AllTenants("read"), NotAsked),
    ("GET", "/healthz", "", Nothing, NotAsked),
    ("GET", "/readyz", "", Nothing, NotAsked),
];

/// A world in which the tenant `ours` has a waiting job, a schedule and a dead letter.
struct Ours {
    world: World,
    job: i64,
    dead: i64,
    schedule: i64,
}

impl Ours {
    async fn new() -> Self {
        let world = World::with_operators(&["https://ops.example/x"]);
        let rule = Some(r#"{"measure":"exhausted"}"#);
        world.send(Method::PUT, "/api/v1/alerts/rules/ours", rule, &[]).await.is(200);
        let job = |body: &'static str| async { world.post("/api/v1/jobs", body).await.is(201)["id"].as_i64().unwrap() };
        let dead = job(r#"{"kind":"canary","queue":"ours-dead","tenantId":"ours"}"#).await;
        let leased = world.lease("ours-dead").await;
        world.fail(&leased, r#","permanent":true,"message":"canary""#).await;
        let id = job(r#"{"kind":"canary","queue":"ours","tenantId":"ours","payload":"canary","delay":"1h"}"#).await;
        let body = r#"{"every":"1h","kind":"canary","queue":"ours","tenantId":"ours"}"#;
        let schedule = world.post("/api/v1/schedules", body).await.is(201)["id"].as_i64().unwrap();
        Self { world, job: id, dead, schedule }
    }

    fn path(&self, path: &str) -> String {
        path.replace("{id}", &self.job.to_string())
            .replace("{dead}", &self.dead.to_string())
            .replace("{schedule}", &self.schedule.to_string())
            .replace("{name}", "ours")
            .replace("{policy}", "http")
            .replace("{tenant}", "ours")
            .replace("{wid}", "nobody")
            .replace("{rule}", "ours")
    }
}

async fn call(world: &World, method: &str, path: &str, body: &str) -> (u16, String) {
    // Streams do not end: the head of the answer is enough.
    if path.contains("/events") {
        return (world.head_of(path).await, String::new());
    }
    let body = (!body.is_empty()).then_some(body);
    let answer = world.send(Method::from_bytes(method.as_bytes()).unwrap(), path, body, &[]).await;
    (answer.status.as_u16(), answer.text)
}

#[tokio::test]
async fn the_table_names_every_route_of_the_document() {
    let document = World::new().get("/openapi.json").await.is(200);
    let mut documented = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for method in item.as_object().unwrap().keys() {
            documented.insert((method.to_uppercase(), path.clone()));
        }
    }
    let without_query = |path: &str| path.split('?').next().unwrap_or_default().to_owned();
    let plain = |path: &str| {
        without_query(path)
            .replace("{schedule}", "{id}")
            .replace("{dead}", "{id}")
            .replace("{policy}", "{name}")
            .replace("{rule}", "{name}")
    };
    let listed = ROUTES.iter().map(|(method, path, ..)| ((*method).to_owned(), plain(path))).collect();
    assert_eq!(documented, listed);
}

#[tokio::test]
async fn each_route_needs_its_scope_and_admin_may_do_everything() {
    for (method, path, body, needs, _) in ROUTES {
        for given in ["enqueue", "manage", "work", "read", "admin"] {
            let ours = Ours::new().await;
            let caller = ours.world.with_token(&[given], None).await;
            // A queue's name belongs to a tenant; a token for all tenants has to name the tenant.
            let whose = if path.contains("{name}") { "?tenant=ours" } else { "" };
            let (status, text) = call(&caller, method, &format!("{}{whose}", ours.path(path)), body).await;
            let may = match needs {
                Nothing => true,
                Scope(scope) | AllTenants(scope) => *scope == given || given == "admin",
            };
            let reported = format!("{method} {path} with {given}: {status} {text}");
            if may && path.contains("{wid}") {
                assert_eq!(status, 404, "no such worker is connected: {reported}");
            } else if may {
                assert!((200..300).contains(&status), "{reported}");
            } else {
                assert_eq!(status, 403, "{reported}");
            }
            let (status, _) = call(&ours.world, method, &ours.path(path), body).await;
            assert_eq!(status == 401, *needs != Nothing, "{method} {path} without a token: {status}");
        }
    }
}

#[tokio::test]
async fn another_tenant_finds_nothing_of_ours_on_any_route() {
    for (method, path, body, needs, foreign) in ROUTES {
        let ours = Ours::new().await;
        let stranger = ours.world.with_token(&["admin"], Some("theirs")).await;
        let (status, text) = call(&stranger, method, &ours.path(path), body).await;
        let reported = format!("{method} {path}: {status} {text}");
        match (needs, foreign) {
            (AllTenants(_), _) => assert_eq!(status, 403, "{reported}"),
            (_, NotFound) => assert_eq!(status, 404, "{reported}"),
            (_, NotAsked) => assert!((200..300).contains(&status), "{reported}"),
        }
        assert!(!text.contains("canary"), "{reported}");
        // None of the calls changed our data.
        let owner = ours.world.with_token(&["admin"], Some("ours")).await;
        let job = owner.get(&format!("/api/v1/jobs/{}", ours.job)).await.is(200);
        assert_eq!((&job["state"], &job["priority"]), (&json!("queued"), &json!("normal")), "{reported}");
        assert_eq!(
            owner.get(&format!("/api/v1/schedules/{}", ours.schedule)).await.is(200)["paused"],
            false,
            "{reported}"
        );
        assert_eq!(owner.get("/api/v1/dead-letters").await.is(200)["items"].as_array().unwrap().len(), 1, "{reported}");
    }
}

#[tokio::test]
async fn naming_another_tenant_is_forbidden() {
    let ours = Ours::new().await;
    let stranger = ours.world.with_token(&["admin"], Some("theirs")).await;
    for (method, path, body) in [
        ("POST", "/api/v1/jobs", r#"{"kind":"a","tenantId":"ours"}"#),
        ("POST", "/api/v1/jobs/batch", r#"{"jobs":[{"kind":"a","tenantId":"ours"}]}"#),
        ("POST", "/api/v1/schedules", r#"{"every":"1h","kind":"a","tenantId":"ours"}"#),
        ("POST", "/api/v1/schedules", r#"{"every":"1h","job":{"kind":"a","tenantId":"ours"}}"#),
        ("GET", "/api/v1/jobs?tenant=ours", ""),
        ("GET", "/api/v1/queues?tenant=ours", ""),
        ("GET", "/api/v1/stats?tenant=ours", ""),
        ("GET", "/api/v1/events?tenant=ours", ""),
        ("GET", "/api/v1/dead-letters?tenant=ours", ""),
        ("POST", "/api/v1/dead-letters/replay", r#"{"filter":{"tenant":"ours"}}"#),
        ("PUT", "/api/v1/queues/email?tenant=ours", r#"{"policy":"http"}"#),
        ("PUT", "/api/v1/queues/email?tenant=*", r#"{"policy":"http"}"#),
        ("POST", "/api/v1/queues/ours/pause?tenant=ours", ""),
    ] {
        assert_eq!(call(&stranger, method, path, body).await.0, 403, "{method} {path}");
    }
    let own = stranger.post("/api/v1/jobs", r#"{"kind":"a","tenantId":"theirs"}"#).await.is(201);
    assert_eq!(own["tenantId"], "theirs");
    assert_eq!(stranger.post("/api/v1/jobs", JOB).await.is(201)["tenantId"], "theirs");
}

#[tokio::test]
async fn a_revoked_or_wrong_token_is_refused_within_five_seconds() {
    let world = World::new();
    let caller = world.with_token(&["read"], None).await;
    caller.get("/api/v1/jobs").await.is(200);
    let id = windlass::low_level::stores::Registry::tokens(&*world.store).await.unwrap()[0].id.clone();
    assert!(windlass::low_level::stores::Registry::revoke_token(&*world.store, &id).await.unwrap());
    world.advance(5_000);
    let refused = caller.get("/api/v1/jobs").await;
    assert_eq!(refused.headers["www-authenticate"], "Bearer realm=\"windlass\"");
    refused.is(401);
    // Revoking the last token does not give access to everyone.
    world.get("/api/v1/jobs").await.is(401);
    for given in [
        "",
        "Bearer",
        "Bearer ",
        "Basic abc",
        "Bearer wl_x",
        "Bearer wl__",
        "Bearer wl_a_b",
        &format!("Bearer wl_{id}_00"),
    ] {
        world.send(Method::GET, "/api/v1/jobs", None, &[("authorization", given)]).await.is(401);
    }
}

#[tokio::test]
async fn every_route_refuses_an_expired_and_a_revoked_token() {
    for ended in ["expired", "revoked"] {
        for (method, path, body, needs, _) in ROUTES {
            let ours = Ours::new().await;
            let now = ours.world.windlass.clock().now();
            let expires_at = (ended == "expired").then(|| now + Millis::from_secs(60));
            let caller = ours.world.with_grant(Grant { expires_at, ..grant(&["admin"]) }).await;
            assert_ne!(call(&caller, method, &ours.path(path), body).await.0, 401, "{method} {path} before");
            if ended == "revoked" {
                let id = &caller.token().split('_').nth(1).unwrap().to_owned();
                assert!(ours.world.windlass.tokens().revoke(id).await.unwrap());
            }
            ours.world.advance(60_000);
            let (status, text) = call(&caller, method, &ours.path(path), body).await;
            assert_eq!(status == 401, *needs != Nothing, "{method} {path} {ended}: {status} {text}");
        }
    }
}

fn grant(scopes: &[&str]) -> Grant {
    let scopes = scopes.iter().map(|scope| (*scope).to_owned()).collect();
    Grant { name: "test".into(), scopes, tenant: None, queues: None, expires_at: None }
}

#[tokio::test]
async fn a_token_for_some_queues_enqueues_and_works_only_there() {
    let world = World::new();
    world.post("/api/v1/jobs", r#"{"kind":"a","queue":"theirs"}"#).await.is(201);
    let queues = Some(vec![QueueName::new("email").unwrap()]);
    let caller = world.with_grant(Grant { queues, ..grant(&["enqueue", "work"]) }).await;
    let own = caller.post("/api/v1/jobs", r#"{"kind":"a","queue":"email"}"#).await.is(201);
    for (path, body) in [
        ("/api/v1/jobs", r#"{"kind":"a","queue":"theirs"}"#),
        ("/api/v1/jobs", r#"{"kind":"a"}"#),
        ("/api/v1/jobs/batch", r#"{"jobs":[{"kind":"a","queue":"email"},{"kind":"a","queue":"theirs"}]}"#),
    ] {
        let refused = caller.post(path, body).await.is(403);
        assert!(refused["detail"].as_str().unwrap().contains("only for the queues `email`"), "{refused}");
    }
    for queues in [r#"["theirs"]"#, r#"["email","theirs"]"#] {
        let refused = caller.post("/api/v1/leases", &format!(r#"{{"worker":"w","queues":{queues}}}"#)).await.is(403);
        assert!(refused["detail"].as_str().unwrap().contains("`email`, not for `theirs`"), "{refused}");
    }
    let leased = caller.post("/api/v1/leases", r#"{"worker":"w","queues":[],"max":10}"#).await.is(200);
    let ids: Vec<_> = leased["jobs"].as_array().unwrap().iter().map(|job| job["id"].clone()).collect();
    assert_eq!(ids, [own["id"].clone()]);
}

#[tokio::test]
async fn every_route_refuses_a_token_for_another_queue() {
    for (method, path, body, needs, _) in ROUTES {
        let ours = Ours::new().await;
        let queues = Some(vec![QueueName::new("elsewhere").unwrap()]);
        let caller = ours.world.with_grant(Grant { queues, ..grant(&["enqueue", "work"]) }).await;
        let (status, text) = call(&caller, method, &ours.path(path), body).await;
        // These name leases, not queues: `work_scope` checks that foreign ones are stale.
        let names_leases = path.starts_with("/api/v1/leases/");
        let expected = if *needs == Nothing || names_leases { 200 } else { 403 };
        assert_eq!(status, expected, "{method} {path}: {text}");
    }
}

/// After this time a caller loads the tokens again. `http::cached` bounds how long others may use the old copy.
const RELOAD: u64 = 1_000;

#[tokio::test]
async fn every_route_asks_for_a_token_soon_after_another_node_created_the_first_one() {
    for (method, path, body, needs, _) in ROUTES {
        let ours = Ours::new().await;
        let (status, _) = call(&ours.world, method, &ours.path(path), body).await;
        assert_ne!(status, 401, "{method} {path} before the first token");
        ours.world.store_token(grant(&["read"])).await;
        ours.world.advance(RELOAD);
        let (status, text) = call(&ours.world, method, &ours.path(path), body).await;
        assert_eq!(status == 401, *needs != Nothing, "{method} {path}: {status} {text}");
    }
}

#[tokio::test]
async fn what_was_opened_without_a_token_ends_after_the_first_token() {
    let world = World::new();
    let mut stream = world.stream("/api/v1/events").await;
    let poll = world.post("/api/v1/leases", r#"{"worker":"w","queues":["nowhere"],"waitMs":20000}"#);
    let create = async {
        world.store_token(grant(&["read"])).await;
        world.advance(RELOAD);
    };
    let (poll, ()) = tokio::join!(poll, create);
    poll.is(401);
    assert!(stream.frame().await.is_none(), "the stream ends");
}

#[tokio::test]
async fn without_the_scope_read_a_change_answers_id_and_state_only() {
    let ours = Ours::new().await;
    let caller = ours.world.with_token(&["enqueue", "manage"], None).await;
    let job = ours.path("/api/v1/jobs/{id}");
    let body = r#"{"kind":"canary","payload":"canary","idempotencyKey":"k"}"#;
    for answer in [
        caller.post("/api/v1/jobs", body).await.is(201),
        caller.post("/api/v1/jobs", body).await.is(200),
        caller.send(Method::PATCH, &job, Some(r#"{"priority":"low"}"#), &[]).await.is(200),
        caller.post(&format!("{job}/retry"), "").await.is(200),
        caller.send(Method::DELETE, &job, None, &[]).await.is(200),
    ] {
        assert_eq!(answer.as_object().unwrap().keys().collect::<Vec<_>>(), ["id", "state"]);
    }
}

#[tokio::test]
async fn only_manage_makes_a_schedule_through_the_route_for_jobs() {
    let world = World::new();
    let body = r#"{"schedule":"*/10 * * * *","kind":"a"}"#;
    world.with_token(&["enqueue"], None).await.post("/api/v1/jobs", body).await.is(403);
    world.with_token(&["enqueue", "manage"], None).await.post("/api/v1/jobs", body).await.is(201);
}

#[tokio::test]
async fn a_revoked_token_loses_its_open_streams_and_long_polls() {
    let world = World::new();
    let caller = world.with_token(&["read", "work"], None).await;
    let mut stream = caller.stream("/api/v1/events").await;
    let body = r#"{"worker":"w","queues":["nowhere"],"waitMs":20000}"#;
    let poll = caller.post("/api/v1/leases", body);
    let revoke = async {
        let id = caller.token().split('_').nth(1).unwrap().to_owned();
        assert!(world.windlass.tokens().revoke(&id).await.unwrap());
        // The copy of the tokens is loaded again after this time.
        world.advance(1_000);
    };
    let (poll, ()) = tokio::join!(poll, revoke);
    poll.is(401);
    assert!(stream.frame().await.is_none(), "the stream ends");
}

#[tokio::test]
async fn a_listener_reachable_by_others_needs_a_token() {
    let world = World::with_access(Access::TokensOnly);
    world.get("/api/v1/jobs").await.is(401);
    world.get("/healthz").await.is(200);
}

#[tokio::test]
async fn pages_of_other_sites_cannot_use_a_browser_against_an_open_server() {
    let world = World::new();
    for (headers, status) in [
        (&[("host", "localhost:9463")][..], 201),
        (&[("host", "127.0.0.1:9463")], 201),
        (&[("host", "[::1]:9463")], 201),
        (&[("host", "evil.example")], 403),
        (&[("host", "127.0.0.1.evil.example:9463")], 403),
        (&[("host", "localhost:9463"), ("origin", "http://localhost:9463")], 201),
        (&[("host", "localhost:9463"), ("origin", "http://evil.example")], 403),
        (&[("host", "localhost:9463"), ("origin", "null")], 403),
        (&[("host", "localhost:9463"), ("sec-fetch-site", "cross-site")], 403),
        (&[("host", "localhost:9463"), ("sec-fetch-site", "same-site")], 403),
        (&[("host", "localhost:9463"), ("sec-fetch-site", "same-origin")], 201),
    ] {
        let answer = world.send(Method::POST, "/api/v1/jobs", Some(JOB), headers).await;
        assert_eq!(answer.status.as_u16(), status, "{headers:?}: {}", answer.text);
    }
    world.send(Method::GET, "/api/v1/jobs", None, &[("host", "evil.example")]).await.is(403);
    // With tokens there is no risk: a browser does not send them by itself.
    let caller = world.with_token(&["enqueue"], None).await;
    caller.send(Method::POST, "/api/v1/jobs", Some(JOB), &[("host", "jobs.example.com")]).await.is(201);
}
