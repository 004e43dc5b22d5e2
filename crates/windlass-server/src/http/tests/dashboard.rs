//! The dashboard without a browser: pages, sign-in, forms, roles, tenants.

use super::world::{Answer, World};
use http_body_util::BodyExt as _;
use hyper::Method;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use windlass::testing::Fault;

/// Pages without data of their own.
const PAGES: [&str; 12] = [
    "/",
    "/?span=5m",
    "/?span=24h",
    "/queues",
    "/jobs",
    "/jobs?q=nothing",
    "/dead-letters",
    "/schedules",
    "/policies",
    "/workers",
    "/alerts",
    "/audit",
];
const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");
const OWN: (&str, &str) = ("sec-fetch-site", "same-origin");

/// A browser that has signed in.
struct Browser<'a> {
    world: &'a World,
    cookie: String,
    csrf: String,
}

impl<'a> Browser<'a> {
    async fn sign_in(world: &'a World) -> Self {
        let body = format!("token={}&next=%2Fqueues", world.token());
        let answer = world.send(Method::POST, "/sign-in", Some(&body), &[FORM, OWN]).await;
        assert_eq!((answer.status.as_u16(), answer.headers["location"].to_str().unwrap()), (303, "/queues"));
        let set = answer.headers["set-cookie"].to_str().unwrap().to_owned();
        assert!(set.contains("HttpOnly") && set.contains("SameSite=Strict") && set.contains("Path=/;"), "{set}");
        let cookie = set.split(';').next().unwrap().to_owned();
        let mut browser = Self { world, cookie, csrf: String::new() };
        browser.csrf = csrf_in(&browser.get("/").await.text);
        browser
    }

    async fn get(&self, path: &str) -> Answer {
        self.world.send(Method::GET, path, None, &[("cookie", &self.cookie)]).await
    }

    async fn post(&self, path: &str, fields: &str) -> Answer {
        let body = format!("csrf={}&{fields}", self.csrf);
        self.world.send(Method::POST, path, Some(&body), &[FORM, OWN, ("cookie", &self.cookie)]).await
    }
}

fn csrf_in(page: &str) -> String {
    let after = page.split_once("name=\"csrf\" value=\"").map(|(_, after)| after).unwrap_or_default();
    after.split('"').next().unwrap_or_default().to_owned()
}

fn is_page(answer: &Answer) {
    assert_eq!(answer.status, 200, "{}", answer.text);
    let policy = answer.headers["content-security-policy"].to_str().unwrap();
    assert!(policy.contains("script-src 'self'") && !policy.contains("unsafe"), "{policy}");
    for inline in [" style=\"", "<style", "<script>", " onclick", "javascript:"] {
        assert!(!answer.text.contains(inline), "{inline} in {}", answer.text);
    }
}

/// A world with a job in every state, a schedule and a dead letter.
async fn filled(world: &World) {
    world.enqueue("mail").await;
    world.dead_letter("orders").await;
    let retrying = world.enqueue("slow").await;
    let job = world.lease("slow").await;
    assert_eq!(job["id"], retrying);
    world.fail(&job, r#","class":"Timeout","message":"no answer""#).await;
    let schedule = r#"{"cron":"0 9 * * *","timezone":"Europe/Berlin","job":{"kind":"report"}}"#;
    world.post("/api/v1/schedules", schedule).await.is(201);
}

#[tokio::test]
async fn every_page_renders_empty_and_with_data() {
    let world = World::new();
    for path in PAGES {
        is_page(&world.get(path).await);
    }
    filled(&world).await;
    let more =
        ["/jobs/1", "/jobs/2", "/jobs/3", "/schedules/4", "/queues/default/orders", "/jobs?state=failed&queue=orders"];
    for path in PAGES.into_iter().chain(more) {
        let answer = world.get(path).await;
        is_page(&answer);
        assert!(answer.text.contains("anyone on this machine"), "an open server says so on {path}");
    }
    let job = world.get("/jobs/3").await.text;
    assert!(job.contains("retry 1/1: backoff 1s") && job.contains("class=\"track\""), "{job}");
    let confirm = world.get("/jobs/bulk/cancel?queue=mail").await.text;
    assert!(confirm.contains("Cancel 1 job?"), "{confirm}");
    assert_eq!(world.get("/jobs/99").await.status, 404);
}

#[tokio::test]
async fn a_browser_signs_in_with_a_token_and_out_again() {
    let world = World::new().with_token(&["admin"], None).await;
    let answer = world.send(Method::GET, "/jobs?state=failed", None, &[]).await;
    assert_eq!(answer.status, 303);
    assert_eq!(answer.headers["location"], "/sign-in?next=%2Fjobs%3Fstate%3Dfailed");
    for wrong in ["token=", "token=wl_abc_def", "token=hello", "token=wl_abc_def&next=//evil.example"] {
        let answer = world.send(Method::POST, "/sign-in", Some(wrong), &[FORM, OWN]).await;
        assert_eq!(answer.status, 401, "{wrong}");
        assert!(!answer.text.contains("evil.example"));
    }
    let browser = Browser::sign_in(&world).await;
    is_page(&browser.get("/").await);
    assert_eq!(browser.post("/sign-out", "").await.status, 303);
    assert_eq!(browser.get("/").await.status, 303, "the secret is worth nothing after the sign-out");
}

#[tokio::test]
async fn a_session_ends_with_its_time_and_with_its_token() {
    let world = World::new().with_token(&["admin"], None).await;
    let browser = Browser::sign_in(&world).await;
    world.advance(12 * 3600 * 1000 - 1);
    assert_eq!(browser.get("/").await.status, 200);
    world.advance(1);
    assert_eq!(browser.get("/").await.status, 303);
    let browser = Browser::sign_in(&world).await;
    let id = world.token().split('_').nth(1).unwrap();
    assert!(world.windlass.tokens().revoke(id).await.unwrap());
    world.advance(6_000);
    assert_eq!(browser.get("/").await.status, 303);
}

#[tokio::test]
async fn a_change_needs_the_sessions_own_form() {
    let world = World::new().with_token(&["admin"], None).await;
    let id = world.enqueue("mail").await;
    let browser = Browser::sign_in(&world).await;
    let path = format!("/jobs/{id}/cancel");
    let cookie = ("cookie", browser.cookie.as_str());
    let own = format!("csrf={}", browser.csrf);
    let refused: [(&str, &[(&str, &str)]); 4] = [
        ("csrf=wrong", &[FORM, OWN, cookie]),
        ("", &[FORM, OWN, cookie]),
        (&own, &[FORM, ("sec-fetch-site", "cross-site"), cookie]),
        (&own, &[FORM, ("origin", "https://evil.example"), ("host", "jobs.example"), cookie]),
    ];
    for (body, headers) in refused {
        let answer = world.send(Method::POST, &path, Some(body), headers).await;
        assert_eq!(answer.status, 403, "{body} {headers:?}");
    }
    assert_eq!(world.get(&format!("/api/v1/jobs/{id}")).await.is(200)["state"], "queued");
    assert_eq!(browser.post(&path, "").await.status, 303);
    assert_eq!(world.get(&format!("/api/v1/jobs/{id}")).await.is(200)["state"], "cancelled");
}

#[tokio::test]
async fn a_read_only_token_sees_and_cannot_act() {
    let admin = World::new().with_token(&["admin"], None).await;
    let body = r#"{"kind":"email","queue":"mail","payload":{"to":"ann","password":"canary-9"}}"#;
    let id = admin.post("/api/v1/jobs", body).await.is(201)["id"].as_i64().unwrap();
    let world = admin.with_token(&["read"], None).await;
    let browser = Browser::sign_in(&world).await;
    let page = browser.get(&format!("/jobs/{id}")).await;
    is_page(&page);
    assert!(page.text.contains("ann") && !page.text.contains("canary-9") && !page.text.contains("formaction"));
    for path in ["/jobs/1/cancel", "/dead-letters/replay", "/queues/default/mail/pause", "/operations/a/undo"] {
        assert_eq!(browser.post(path, "confirm=replay").await.status, 403, "{path}");
    }
    assert_eq!(browser.post("/sign-out", "").await.status, 303);
}

#[tokio::test]
async fn a_tenants_token_sees_its_tenant() {
    let admin = World::new().with_token(&["admin"], None).await;
    for (tenant, kind) in [("acme", "ours"), ("other", "theirs-canary")] {
        let body = json!({ "kind": kind, "queue": format!("queue-{kind}"), "tenantId": tenant });
        admin.post("/api/v1/jobs", &body.to_string()).await.is(201);
    }
    let world = admin.with_token(&["admin"], Some("acme")).await;
    let browser = Browser::sign_in(&world).await;
    for path in ["/", "/queues", "/jobs", "/jobs?q=canary", "/dead-letters", "/schedules", "/jobs/1"] {
        let answer = browser.get(path).await;
        is_page(&answer);
        assert!(!answer.text.contains("theirs-canary"), "{path}");
    }
    for path in ["/jobs/2", "/queues/other/queue-theirs-canary"] {
        assert_eq!(browser.get(path).await.status, 404, "{path}");
    }
    for path in ["/workers", "/alerts", "/audit", "/jobs?tenant=other"] {
        assert_eq!(browser.get(path).await.status, 403, "{path}");
    }
    assert_eq!(browser.post("/jobs/2/cancel", "").await.status, 404);
    assert_eq!(browser.post("/queues/other/queue-theirs-canary/pause", "").await.status, 404);
}

#[tokio::test]
async fn text_of_jobs_stays_text() {
    let world = World::new();
    let nasty = "<img src=x onerror=alert(1)>\"'><!--/live jobs-->";
    let body = json!({ "kind": "email", "queue": "mail", "payload": { nasty: nasty }, "idempotencyKey": nasty,
        "retry": "fixed:base=1s,jitter=none,retries=0" });
    let id = world.post("/api/v1/jobs", &body.to_string()).await.is(201)["id"].as_i64().unwrap();
    let job = world.lease("mail").await;
    world.fail(&job, &format!(",\"class\":{},\"message\":{}", json!(nasty), json!(nasty))).await;
    for path in
        ["/jobs", "/dead-letters", &format!("/jobs/{id}"), "/jobs?q=%3Cimg", "/policies?line=%3Cimg%20src%3Dx%3E"]
    {
        let answer = world.get(path).await;
        is_page(&answer);
        assert!(
            !answer.text.contains("<img") && !answer.text.contains("><!--/live jobs-->\""),
            "{path}: {}",
            answer.text
        );
    }
}

#[tokio::test]
async fn an_open_server_checks_its_forms_too() {
    let world = World::new();
    let id = world.enqueue("mail").await;
    let csrf = csrf_in(&world.get("/").await.text);
    let path = format!("/jobs/{id}/cancel");
    let foreign = [FORM, ("host", "localhost"), ("sec-fetch-site", "cross-site")];
    let body = format!("csrf={csrf}");
    assert_eq!(world.send(Method::POST, &path, Some(&body), &foreign).await.status, 403);
    assert_eq!(world.send(Method::POST, &path, Some("csrf=x"), &[FORM, OWN]).await.status, 403);
    assert_eq!(world.send(Method::POST, &path, Some(&body), &[FORM, OWN]).await.status, 303);
}

#[tokio::test]
async fn a_proxy_may_serve_it_under_a_path() {
    let world = World::under("/ops/jobs");
    for path in ["/ops/jobs", "/ops/jobs/", "/ops/jobs/queues?done=x", "/", "/queues"] {
        let answer = world.get(path).await;
        is_page(&answer);
        assert!(
            answer.text.contains("href=\"/ops/jobs/queues\"") && !answer.text.contains("href=\"/queues\""),
            "{path}"
        );
    }
    let page = world.get("/ops/jobs/").await.text;
    let style = page.split('"').find(|part| part.ends_with("style.css")).unwrap();
    assert_eq!(world.get(style).await.status, 200);
    assert_eq!(world.get("/ops/jobs/api/v1/jobs").await.status, 200);
    assert_eq!(world.get("/ops/jobsandmore").await.status, 404);
    let missing = world.get("/ops/jobs/jobs/99").await;
    assert!(missing.status == 404 && missing.text.contains("/ops/jobs/assets/"), "{}", missing.text);
}

#[tokio::test]
async fn a_watched_page_sends_the_regions_that_change() {
    let world = World::new();
    assert_eq!(world.head_of("/live?page=%2Fqueues").await, 200);
    assert_eq!(world.head_of("/live?page=%2Fjobs%3Fq%3Dx").await, 422);
    let world = world.with_token(&["read"], None).await;
    assert_eq!(world.send(Method::GET, "/live?page=%2F", None, &[]).await.status, 303);
}

/// The store is read for a page, not for those who look at it.
#[tokio::test]
async fn many_open_dashboards_cost_the_store_as_much_as_one() {
    let mut counts = Vec::new();
    for viewers in [1, 200] {
        let (world, faults) = World::faulty();
        let mut open = tokio::task::JoinSet::new();
        for _ in 0..viewers {
            let mut body = world.stream("/live?page=%2F").await;
            open.spawn(async move { while body.frame().await.is_some() {} });
        }
        all_wait().await;
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = calls.clone();
        faults.choose(move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
            Fault::None
        });
        for _ in 0..5 {
            world.advance(1000);
            all_wait().await;
        }
        counts.push(calls.load(Ordering::Relaxed));
    }
    assert!(counts[0] > 0 && counts[0] == counts[1], "{counts:?}");
}

/// Lets all tasks run until they wait.
async fn all_wait() {
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
}
