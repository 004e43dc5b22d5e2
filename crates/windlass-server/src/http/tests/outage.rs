//! Requests while the store is away, by clients that do not call this machine localhost.

use super::world::World;
use crate::http::Access;
use hyper::Method;
use windlass::testing::Fault;

const POD: (&str, &str) = ("host", "10.1.2.3:9463");
/// Copies of the tokens are older than they may be used.
const LONG: u64 = 60_000;

#[tokio::test]
async fn a_server_with_tokens_answers_503_while_its_store_is_away() {
    for access in [Access::OpenUntilFirstToken, Access::TokensOnly] {
        let (world, faults) = World::faulty_with(access);
        let caller = world.with_token(&["read"], None).await;
        caller.send(Method::GET, "/api/v1/jobs", None, &[POD]).await.is(200);
        faults.always(Fault::Unavailable);
        world.advance(LONG);
        for path in ["/api/v1/jobs", "/readyz"] {
            let answer = caller.send(Method::GET, path, None, &[POD]).await;
            assert!(answer.headers.contains_key("retry-after"), "{access:?} {path}: {}", answer.text);
            answer.is(503);
        }
    }
}

#[tokio::test]
async fn a_server_without_tokens_answers_no_foreign_name_while_its_store_is_away() {
    let (world, faults) = World::faulty();
    for _ in ["never loaded", "loaded before"] {
        faults.always(Fault::Unavailable);
        world.send(Method::GET, "/api/v1/jobs", None, &[("host", "evil.example")]).await.is(403);
        world.get("/api/v1/jobs").await.is(503);
        faults.always(Fault::None);
        world.get("/api/v1/jobs").await.is(200);
        world.advance(LONG);
    }
}

#[tokio::test]
async fn liveness_needs_no_store_and_no_name() {
    for access in [Access::OpenUntilFirstToken, Access::TokensOnly] {
        let (world, faults) = World::faulty_with(access);
        faults.choose(|call| panic!("{call} would wait for a store that hangs"));
        world.send(Method::GET, "/healthz", None, &[POD]).await.is(200);
        world.send(Method::GET, "/healthz", None, &[("host", "a"), ("host", "b")]).await.is(403);
    }
}
