//! A token for one tenant works for that tenant alone: it takes, extends, completes and fails no other tenant's jobs.

use super::world::World;
use serde_json::{Value, json};

/// A server with one job of the tenant `ours` and one of `theirs`, in queues of the same name.
struct Two {
    operator: World,
    ours: World,
    theirs: World,
    our_job: i64,
}

impl Two {
    async fn new(scope: &str) -> Self {
        let operator = World::new().with_token(&["admin"], None).await;
        let mut ids = Vec::new();
        for tenant in ["ours", "theirs"] {
            let body = format!(r#"{{"kind":"canary-{tenant}","queue":"email","tenantId":"{tenant}"}}"#);
            ids.push(operator.post("/api/v1/jobs", &body).await.is(201)["id"].as_i64().unwrap());
        }
        let ours = operator.with_token(&[scope], Some("ours")).await;
        let theirs = operator.with_token(&[scope], Some("theirs")).await;
        Self { operator, ours, theirs, our_job: ids[0] }
    }

    async fn our_state(&self) -> Value {
        let job = self.operator.get(&format!("/api/v1/jobs/{}", self.our_job)).await.is(200);
        json!([job["state"], job["failures"]])
    }
}

async fn take(world: &World, body: &str) -> Vec<Value> {
    world.post("/api/v1/leases", body).await.is(200)["jobs"].as_array().unwrap().clone()
}

/// What the server answers for one item of an action.
async fn answer(world: &World, action: &str, job: &Value) -> Value {
    let (id, attempt, lease) = (&job["id"], &job["attempt"], &job["lease"]);
    let body = format!(r#"{{"worker":"w1","results":[{{"id":{id},"attempt":{attempt},"lease":{lease}}}]}}"#);
    world.post(&format!("/api/v1/leases/{action}"), &body).await.is(200)["results"][0]["result"].take()
}

const SCOPES: [&str; 2] = ["work", "admin"];

#[tokio::test]
async fn a_tenants_token_takes_its_own_jobs_only() {
    for scope in SCOPES {
        let two = Two::new(scope).await;
        for body in [r#"{"worker":"w1","max":10}"#, r#"{"worker":"w1","queues":["email"],"max":10}"#] {
            let jobs = take(&two.theirs, body).await;
            assert!(jobs.iter().all(|job| job["tenantId"] == "theirs"), "{scope}: {jobs:?}");
        }
        assert_eq!(two.our_state().await, json!(["queued", 0]), "{scope}");
        let jobs = take(&two.ours, r#"{"worker":"w1","queues":["email"],"max":10}"#).await;
        assert_eq!(jobs.len(), 1, "{scope}: {jobs:?}");
        assert_eq!(jobs[0]["id"], two.our_job, "{scope}");
    }
}

#[tokio::test]
async fn a_foreign_lease_is_stale_and_nothing_changes() {
    for scope in SCOPES {
        let two = Two::new(scope).await;
        let job = take(&two.ours, r#"{"worker":"w1","leaseMs":30000}"#).await.remove(0);
        for action in ["extend", "complete", "fail"] {
            assert_eq!(answer(&two.theirs, action, &job).await, "stale", "{scope} {action}");
            assert_eq!(two.our_state().await, json!(["running", 0]), "{scope} {action}");
        }
        assert_eq!(answer(&two.ours, "extend", &job).await, "ok", "{scope}");
        assert_eq!(answer(&two.ours, "complete", &job).await, "ok", "{scope}");
        // A finished job is as foreign as a running one.
        assert_eq!(answer(&two.theirs, "complete", &job).await, "stale", "{scope}");
        assert_eq!(answer(&two.ours, "complete", &job).await, "ok", "{scope}: repeated");
        assert_eq!(two.our_state().await, json!(["succeeded", 0]), "{scope}");
    }
}

#[tokio::test]
async fn a_foreign_renewal_does_not_keep_a_lease_alive() {
    let two = Two::new("work").await;
    let job = take(&two.ours, r#"{"worker":"w1","leaseMs":30000}"#).await.remove(0);
    let keeper = windlass::low_level::upkeep::Keeper::of(&two.operator.windlass);
    for _ in 0..120 {
        two.operator.advance(1000);
        assert_eq!(answer(&two.theirs, "extend", &job).await, "stale");
        keeper.tick().await;
    }
    assert_eq!(two.our_state().await, json!(["retrying", 1]), "its lease ran out");
}

#[tokio::test]
async fn foreign_items_do_not_spoil_their_neighbours() {
    let two = Two::new("work").await;
    let ours = take(&two.ours, r#"{"worker":"w1"}"#).await.remove(0);
    let theirs = take(&two.theirs, r#"{"worker":"w1"}"#).await.remove(0);
    for action in ["extend", "complete"] {
        let item = |job: &Value| json!({"id": job["id"], "attempt": job["attempt"], "lease": job["lease"]});
        let body = json!({"worker": "w1", "results": [item(&ours), item(&theirs)]});
        let answers = two.theirs.post(&format!("/api/v1/leases/{action}"), &body.to_string()).await.is(200);
        let words: Vec<_> = answers["results"].as_array().unwrap().iter().map(|a| a["result"].clone()).collect();
        assert_eq!(words, ["stale", "ok"], "{action}");
    }
    assert_eq!(two.our_state().await, json!(["running", 0]));
}

#[tokio::test]
async fn worker_names_are_per_tenant() {
    let two = Two::new("work").await;
    for world in [&two.ours, &two.theirs, &two.operator] {
        take(world, r#"{"worker":"w1","queues":["email"],"max":1}"#).await;
    }
    let workers = two.operator.get("/api/v1/workers").await.is(200);
    let mut names: Vec<_> = workers["items"].as_array().unwrap().iter().map(|w| w["worker"].clone()).collect();
    names.sort_by_key(ToString::to_string);
    assert_eq!(names, ["ours/w1", "theirs/w1", "w1"]);
}

#[tokio::test]
async fn a_note_with_a_nul_is_kept_and_the_result_counts() {
    let world = World::new();
    let id = world.enqueue("email").await;
    let job = world.lease("email").await;
    let (attempt, lease) = (&job["attempt"], &job["lease"]);
    let body = format!(
        r#"{{"worker":"w1","results":[{{"id":{id},"attempt":{attempt},"lease":{lease},"note":"a\u0000b","result":{{"text":"a\u0000b"}}}}]}}"#
    );
    assert_eq!(world.post("/api/v1/leases/complete", &body).await.is(200)["results"][0]["result"], "ok");
    assert_eq!(world.get(&format!("/api/v1/jobs/{id}/history")).await.is(200)["items"][0]["note"], "a\u{FFFD}b");
    assert_eq!(world.get(&format!("/api/v1/jobs/{id}")).await.is(200)["result"], json!({"text": "a\0b"}));
}
