//! A server without sockets: a router on a store in memory.

use crate::http::{Access, App, Place, router};
use crate::token::{self, Grant};
use axum::Router;
use axum::body::Body;
use http_body_util::BodyExt;
use hyper::{Method, Request, StatusCode};
use serde_json::Value;
use std::sync::Arc;
use tower::ServiceExt as _;
use windlass::Clock;
use windlass::Options;
use windlass::Random;
use windlass::Windlass;
use windlass::alert::Operator;
use windlass::low_level::stores::Registry;
use windlass::low_level::stores::memory::MemoryStore;
use windlass::testing::FaultyStore;
use windlass_core::job::Tenant;
use windlass_core::{Millis, Timestamp};

pub(super) struct World {
    pub(super) store: Arc<MemoryStore>,
    pub(super) windlass: Windlass,
    router: Router,
    token: Option<String>,
}

/// A complete answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: hyper::HeaderMap,
    pub(super) text: String,
}

impl Answer {
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("not JSON ({error}): {}", self.text))
    }

    #[track_caller]
    pub(super) fn is(self, status: u16) -> Value {
        assert_eq!(self.status.as_u16(), status, "{}", self.text);
        if self.text.is_empty() { Value::Null } else { self.json() }
    }

    /// The pointers of the wrong fields of a problem.
    pub(super) fn pointers(&self) -> Vec<String> {
        let body = self.json();
        let errors = body["errors"].as_array().cloned().unwrap_or_default();
        errors.iter().map(|error| error["pointer"].as_str().unwrap_or_default().to_owned()).collect()
    }
}

impl World {
    pub(super) fn new() -> Self {
        Self::with_access(Access::OpenUntilFirstToken)
    }

    pub(super) fn with_access(access: Access) -> Self {
        let start = Timestamp::parse("2026-01-01T12:00:00Z").unwrap();
        let options = Options { clock: Clock::manual(start), random: Random::seeded(7), ..Options::default() };
        let store = MemoryStore::new(options);
        let windlass = Windlass::with_random(store.clone(), Random::seeded(8));
        let router = router(App::new(windlass.clone(), Place::new(access)));
        Self { store, windlass, router, token: None }
    }

    /// A server that notifies these URLs of alerts.
    pub(super) fn with_operators(urls: &[&str]) -> Self {
        let world = Self::new();
        let operators = urls.iter().map(|url| Operator::parse(url, None).unwrap()).collect();
        let place = Place { operators, ..Place::new(Access::OpenUntilFirstToken) };
        Self { router: router(App::new(world.windlass.clone(), place)), ..world }
    }

    /// A server that is stopping.
    pub(super) fn draining() -> Self {
        let world = Self::new();
        let app = App::new(world.windlass.clone(), Place::new(Access::OpenUntilFirstToken));
        app.draining().cancel();
        app.remote().stop();
        Self { router: router(app), ..world }
    }

    /// A server behind a proxy, under a path.
    pub(super) fn under(base_path: &str) -> Self {
        let world = Self::new();
        let place = Place { base_path: base_path.to_owned(), ..Place::new(Access::OpenUntilFirstToken) };
        let router = router(App::new(world.windlass.clone(), place));
        Self { router, ..world }
    }

    /// A server whose store fails as the test chooses.
    pub(super) fn faulty() -> (Self, Arc<FaultyStore>) {
        Self::faulty_with(Access::OpenUntilFirstToken)
    }

    pub(super) fn faulty_with(access: Access) -> (Self, Arc<FaultyStore>) {
        let world = Self::new();
        let faults = FaultyStore::new(world.store.clone());
        let windlass = Windlass::with_random(faults.clone(), Random::seeded(8));
        let router = router(App::new(windlass.clone(), Place::new(access)));
        (Self { windlass, router, ..world }, faults)
    }

    /// Another server on the same store.
    pub(super) fn another(&self) -> Self {
        let windlass = Windlass::with_random(self.store.clone(), Random::seeded(9));
        let router = router(App::new(windlass.clone(), Place::new(Access::OpenUntilFirstToken)));
        Self { store: self.store.clone(), windlass, router, token: None }
    }

    /// The same server, called with a new token.
    pub(super) async fn with_token(&self, scopes: &[&str], tenant: Option<&str>) -> Self {
        let scopes = scopes.iter().map(|s| (*s).to_owned()).collect();
        let tenant = tenant.map(|name| Tenant::new(name).unwrap());
        self.with_grant(Grant { name: "test".into(), scopes, tenant, queues: None, expires_at: None }).await
    }

    /// The same server, called with a new token of these rights.
    pub(super) async fn with_grant(&self, grant: Grant) -> Self {
        let shown = self.store_token(grant).await;
        // Copies of the tokens are at most this old.
        self.advance(6_000);
        Self {
            store: self.store.clone(),
            windlass: self.windlass.clone(),
            router: self.router.clone(),
            token: Some(shown),
        }
    }

    /// Stores a token, as another process does: nothing tells the server.
    pub(super) async fn store_token(&self, grant: Grant) -> String {
        let (token, shown) = token::mint(&Random::system(), grant, self.store.clock().now());
        self.store.put_token(&token).await.unwrap();
        shown
    }

    /// The token of all calls.
    pub(super) fn token(&self) -> &str {
        self.token.as_deref().expect("this world calls with a token")
    }

    pub(super) fn advance(&self, ms: u64) {
        self.store.clock().advance(Millis::new(ms));
    }

    pub(super) async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, None, &[]).await
    }

    pub(super) async fn post(&self, path: &str, body: &str) -> Answer {
        self.send(Method::POST, path, Some(body), &[]).await
    }

    pub(super) async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&str>,
        headers: &[(&str, &str)],
    ) -> Answer {
        let mut request = Request::builder().method(method).uri(path);
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        if body.is_some() && !headers.iter().any(|(name, _)| *name == "content-type") {
            request = request.header("content-type", "application/json");
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = body.map_or_else(Body::empty, |text| Body::from(text.to_owned()));
        self.answer(request.body(body).unwrap()).await
    }

    pub(super) async fn answer(&self, request: Request<Body>) -> Answer {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (head, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        Answer { status: head.status, headers: head.headers, text }
    }

    /// The status of an answer, without waiting for its body, which may never end.
    pub(super) async fn head_of(&self, path: &str) -> u16 {
        self.open(path).await.status().as_u16()
    }

    /// An answer's body, which may never end.
    pub(super) async fn stream(&self, path: &str) -> Body {
        self.open(path).await.into_body()
    }

    async fn open(&self, path: &str) -> hyper::Response<Body> {
        let mut request = Request::get(path);
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        self.router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap()
    }

    /// Enqueues a plain job and returns its id.
    pub(super) async fn enqueue(&self, queue: &str) -> i64 {
        let body = format!(r#"{{"kind":"email","queue":"{queue}","retry":"fixed:base=1s,jitter=none,retries=1"}}"#);
        self.post("/api/v1/jobs", &body).await.is(201)["id"].as_i64().unwrap()
    }

    /// Leases one job of a queue: id, attempt, lease.
    pub(super) async fn lease(&self, queue: &str) -> Value {
        let body = format!(r#"{{"worker":"w1","queues":["{queue}"]}}"#);
        let mut leased = self.post("/api/v1/leases", &body).await.is(200);
        leased.pointer_mut("/jobs/0").map(Value::take).unwrap_or_default()
    }

    /// Fails a leased job.
    pub(super) async fn fail(&self, job: &Value, more: &str) -> Value {
        let body = format!(
            r#"{{"worker":"w1","results":[{{"id":{},"attempt":{},"lease":{}{more}}}]}}"#,
            job["id"], job["attempt"], job["lease"]
        );
        self.post("/api/v1/leases/fail", &body).await.is(200)["results"][0]["result"].take()
    }

    /// Creates a dead letter: a job whose only attempt failed permanently.
    pub(super) async fn dead_letter(&self, queue: &str) -> i64 {
        let id = self.enqueue(queue).await;
        let job = self.lease(queue).await;
        assert_eq!(self.fail(&job, r#","class":"ValidationError","message":"no such user 17""#).await, "ok");
        id
    }
}
