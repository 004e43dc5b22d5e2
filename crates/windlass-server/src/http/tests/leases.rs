use super::world::World;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use windlass::low_level::upkeep::Keeper;
use windlass::testing::Fault;

fn results(job: &Value, more: &str) -> String {
    let (id, attempt, lease) = (&job["id"], &job["attempt"], &job["lease"]);
    format!(r#"{{"worker":"w1","results":[{{"id":{id},"attempt":{attempt},"lease":{lease}{more}}}]}}"#)
}

#[tokio::test]
async fn a_remote_worker_takes_extends_and_completes_a_job() {
    let world = World::new();
    let body = r#"{"kind":"email","queue":"email","payload":{"to":"ann"},"idempotencyKey":"k"}"#;
    world.post("/api/v1/jobs", body).await.is(201);
    let job = world.lease("email").await;
    assert_eq!((&job["id"], &job["attempt"], &job["kind"]), (&json!(1), &json!(1), &json!("email")));
    assert_eq!((&job["payload"], &job["idempotencyKey"]), (&json!({"to": "ann"}), &json!("k")));
    let extended = world.post("/api/v1/leases/extend", &results(&job, "")).await.is(200);
    assert_eq!(extended["results"], json!([{"id": 1, "attempt": 1, "result": "ok"}]));
    let done = results(&job, r#","note":"sent","result":{"messageId":7}"#);
    assert_eq!(world.post("/api/v1/leases/complete", &done).await.is(200)["results"][0]["result"], "ok");
    let kept = world.get("/api/v1/jobs/1").await.is(200);
    assert_eq!((&kept["state"], &kept["result"]), (&json!("succeeded"), &json!({"messageId": 7})));
    assert_eq!(world.get("/api/v1/jobs/1/history").await.is(200)["items"][0]["note"], "sent");
    // Repeating an accepted report is ok; a different report is stale.
    assert_eq!(world.post("/api/v1/leases/complete", &done).await.is(200)["results"][0]["result"], "ok");
    assert_eq!(world.fail(&job, "").await, "stale");
    assert_eq!(world.post("/api/v1/leases/extend", &results(&job, "")).await.is(200)["results"][0]["result"], "stale");
}

#[tokio::test]
async fn a_wrong_lease_changes_nothing() {
    let world = World::new();
    world.enqueue("email").await;
    world.enqueue("email").await;
    let (first, second) = (world.lease("email").await, world.lease("email").await);
    // The lease of one job is reported for the other: neither changes, and the lease stays valid.
    let mixed = json!({"id": first["id"], "attempt": first["attempt"], "lease": second["lease"]});
    assert_eq!(
        world.post("/api/v1/leases/complete", &results(&mixed, "")).await.is(200)["results"][0]["result"],
        "stale"
    );
    let nowhere = json!({"id": 99, "attempt": 1, "lease": "0000000000000001"});
    assert_eq!(
        world.post("/api/v1/leases/complete", &results(&nowhere, "")).await.is(200)["results"][0]["result"],
        "stale"
    );
    for job in [first, second] {
        assert_eq!(world.post("/api/v1/leases/extend", &results(&job, "")).await.is(200)["results"][0]["result"], "ok");
        assert_eq!(
            world.post("/api/v1/leases/complete", &results(&job, "")).await.is(200)["results"][0]["result"],
            "ok"
        );
    }
}

#[tokio::test]
async fn failures_ask_for_what_they_need() {
    for (more, state, class, count) in [
        (r#","class":"Timeout""#, "retrying", Some("Timeout"), 1),
        (r#","class":"NotFoundError""#, "failed", Some("NotFoundError"), 1),
        (r#","permanent":true,"message":"no""#, "failed", Some("Error"), 1),
        (r#","retryAfter":"90s""#, "retrying", Some("Error"), 1),
        (r#","retryIn":5000"#, "retrying", Some("Error"), 1),
        (r#","snooze":"1m""#, "queued", None, 0),
        (r#","release":true,"started":false"#, "queued", None, 0),
        (r#","cancel":true"#, "cancelled", Some("Cancelled"), 0),
    ] {
        let world = World::new();
        let id = world.enqueue("email").await;
        let job = world.lease("email").await;
        assert_eq!(world.fail(&job, more).await, "ok", "{more}");
        let job = world.get(&format!("/api/v1/jobs/{id}")).await.is(200);
        assert_eq!(
            (&job["state"], &job["errorClass"], &job["failures"]),
            (&json!(state), &json!(class), &json!(count)),
            "{more}"
        );
    }
    let world = World::new();
    world.enqueue("email").await;
    let job = world.lease("email").await;
    let body = results(&job, r#","permanent":true,"snooze":"1m""#);
    assert_eq!(world.post("/api/v1/leases/fail", &body).await.pointers(), ["/results/0/snooze"]);
}

#[tokio::test]
async fn a_worker_learns_of_a_cancel_when_it_extends() {
    let world = World::new();
    let id = world.enqueue("email").await;
    let job = world.lease("email").await;
    world.send(hyper::Method::DELETE, &format!("/api/v1/jobs/{id}"), None, &[]).await.is(202);
    assert_eq!(world.post("/api/v1/leases/extend", &results(&job, "")).await.is(200)["results"][0]["result"], "cancel");
    // If the attempt still succeeds, it stays succeeded.
    assert_eq!(world.post("/api/v1/leases/complete", &results(&job, "")).await.is(200)["results"][0]["result"], "ok");
    assert_eq!(world.get(&format!("/api/v1/jobs/{id}")).await.is(200)["state"], "succeeded");
}

#[tokio::test]
async fn a_waiting_worker_is_woken_by_a_job_and_by_its_time() {
    let world = World::new();
    let wait = r#"{"worker":"w1","queues":["email"],"waitMs":60000}"#;
    let (leased, ()) = tokio::join!(world.post("/api/v1/leases", wait), async {
        tokio::task::yield_now().await;
        world.enqueue("email").await;
    });
    assert_eq!(leased.is(200)["jobs"][0]["id"], 1);
    let later = r#"{"kind":"email","queue":"email","delay":"300ms"}"#;
    world.post("/api/v1/jobs", later).await.is(201);
    let (leased, ()) = tokio::join!(world.post("/api/v1/leases", wait), async {
        for _ in 0..30 {
            tokio::task::yield_now().await;
            world.advance(10);
        }
    });
    assert_eq!(leased.is(200)["jobs"][0]["id"], 2);
    let (leased, ()) = tokio::join!(world.post("/api/v1/leases", wait), async {
        tokio::task::yield_now().await;
        world.advance(60_000);
    });
    assert_eq!(leased.is(200)["jobs"], json!([]), "the wait ends when its time is up");
}

#[tokio::test]
async fn jobs_of_a_claim_that_commits_after_the_check_are_given_back() {
    let (world, faults) = World::faulty();
    let id = world.enqueue("email").await;
    faults.choose(|call| if call == "claim" { Fault::UnknownLate } else { Fault::None });
    world.post("/api/v1/leases", r#"{"worker":"w1","queues":["email"],"max":5,"leaseMs":30000}"#).await.is(503);
    let keeper = Keeper::of(&world.windlass);
    for _ in 0..600 {
        world.advance(100);
        tokio::task::yield_now().await;
        keeper.tick().await;
    }
    let history = world.get(&format!("/api/v1/jobs/{id}/history")).await.is(200);
    assert_eq!(history["items"][0]["status"], "RELEASED", "{history}");
    assert_eq!(world.get(&format!("/api/v1/jobs/{id}")).await.is(200)["failures"], 0);
}

#[tokio::test]
async fn claimed_jobs_are_returned_when_the_store_fails_before_the_rest_is_claimed() {
    for fault in [Fault::Unavailable, Fault::UnknownNotDone, Fault::UnknownDone] {
        let (world, faults) = World::faulty();
        for queue in ["email", "email", "email", "sms"] {
            world.enqueue(queue).await;
        }
        // The first claim takes each queue's share, and the second one the rest.
        let shares = Arc::new(AtomicUsize::new(1));
        faults.choose(move |call| match call {
            "claim" if shares.swap(0, Ordering::Relaxed) == 0 => fault,
            _ => Fault::None,
        });
        let leased = world.post("/api/v1/leases", r#"{"worker":"w1","queues":["email","sms"],"max":4}"#).await.is(200);
        let jobs = leased["jobs"].as_array().unwrap().clone();
        assert_eq!(jobs.len(), 3, "{fault:?}: {leased}");
        for _ in 0..20 {
            world.advance(100);
            tokio::task::yield_now().await;
        }
        let states: Vec<Value> = world.get("/api/v1/jobs").await.is(200)["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|job| job["state"].clone())
            .collect();
        assert_eq!(states.iter().filter(|state| *state == "running").count(), 3, "{fault:?}: {states:?}");
        assert_eq!(states.iter().filter(|state| *state == "queued").count(), 1, "{fault:?}: {states:?}");
    }
}

#[tokio::test]
async fn a_remote_worker_whose_results_the_store_refuses_loses_nothing() {
    let (world, faults) = World::faulty();
    let id = world.enqueue("email").await;
    let job = world.lease("email").await;
    // A full disk: reads succeed, and so does a reap that finds nothing; no result can be written.
    faults.choose(|call| if call == "commit" { Fault::Unavailable } else { Fault::None });
    let keeper = Keeper::of(&world.windlass);
    for _ in 0..120 {
        world.advance(1000);
        keeper.tick().await;
        world.post("/api/v1/leases/complete", &results(&job, "")).await.is(503);
    }
    faults.always(Fault::None);
    assert_eq!(world.post("/api/v1/leases/complete", &results(&job, "")).await.is(200)["results"][0]["result"], "ok");
    let history = world.get(&format!("/api/v1/jobs/{id}/history")).await.is(200);
    assert_eq!(history["items"].as_array().map(Vec::len), Some(1), "{history}");
}

#[tokio::test]
async fn jobs_of_an_unknown_claim_are_given_back_after_a_long_outage_of_the_store() {
    let (world, faults) = World::faulty();
    let id = world.enqueue("email").await;
    faults.choose(|call| match call {
        "claim" => Fault::UnknownDone,
        "renew" | "held" => Fault::Unavailable,
        _ => Fault::None,
    });
    world.post("/api/v1/leases", r#"{"worker":"w1","queues":["email"],"max":5}"#).await.is(503);
    let pass = async || {
        for _ in 0..600 {
            world.advance(100);
            tokio::task::yield_now().await;
        }
        world.get(&format!("/api/v1/jobs/{id}")).await.is(200)
    };
    assert_eq!(pass().await["state"], "running", "the claim is unknown and no worker has the job");
    faults.always(Fault::None);
    let job = pass().await;
    assert_eq!((&job["state"], &job["attempt"], &job["failures"]), (&json!("queued"), &json!(1), &json!(0)));
    assert_eq!(world.get(&format!("/api/v1/jobs/{id}/history")).await.is(200)["items"][0]["status"], "RELEASED");
}

#[tokio::test]
async fn queues_and_tenants_get_a_fair_share() {
    let world = World::new();
    for tenant in ["a", "b"] {
        for _ in 0..5 {
            let body = format!(r#"{{"kind":"email","queue":"email","tenantId":"{tenant}"}}"#);
            world.post("/api/v1/jobs", &body).await.is(201);
        }
    }
    let leased = world.post("/api/v1/leases", r#"{"worker":"w1","queues":["email"],"max":4}"#).await.is(200);
    let tenants: Vec<_> = leased["jobs"].as_array().unwrap().iter().map(|job| job["tenantId"].clone()).collect();
    assert_eq!(tenants.iter().filter(|t| **t == "a").count(), 2, "{tenants:?}");
    let rest = world.post("/api/v1/leases", r#"{"worker":"w1","max":100}"#).await.is(200);
    assert_eq!(rest["jobs"].as_array().unwrap().len(), 6);
    let workers = world.get("/api/v1/workers").await.is(200);
    assert_eq!(workers["items"][0]["worker"], "w1");
}

#[tokio::test]
async fn a_worker_takes_only_the_kinds_that_it_knows() {
    let world = World::new();
    for kind in ["resize", "email"] {
        world.post("/api/v1/jobs", &format!(r#"{{"kind":"{kind}","queue":"work"}}"#)).await.is(201);
    }
    let take = async |kinds: &str| {
        let body = format!(r#"{{"worker":"w1","queues":["work"],"max":10{kinds}}}"#);
        world.post("/api/v1/leases", &body).await
    };
    let leased = take(r#","kinds":["email","sms"]"#).await.is(200);
    assert_eq!((&leased["jobs"][0]["kind"], leased["jobs"].as_array().unwrap().len()), (&json!("email"), 1));
    let left = world.get("/api/v1/jobs/1").await.is(200);
    assert_eq!((&left["state"], &left["attempt"]), (&json!("queued"), &json!(0)), "no attempt is used up");
    for (wrong, pointer) in [
        (r#","kinds":[]"#, "/kinds"),
        (r#","kinds":"email""#, "/kinds"),
        (r#","kinds":["email",""]"#, "/kinds/1"),
        (r#","kinds":["email",3]"#, "/kinds/1"),
    ] {
        assert_eq!(take(wrong).await.pointers(), [pointer], "{wrong}");
    }
    assert_eq!(take("").await.is(200)["jobs"][0]["kind"], "resize", "without the field: any kind");
}

#[tokio::test]
async fn a_stopping_server_tells_workers_to_come_back_later() {
    let world = World::draining();
    let answer = world.post("/api/v1/leases", r#"{"worker":"w1","waitMs":5000}"#).await;
    assert_eq!(answer.headers.get("retry-after").unwrap(), "1");
    assert_eq!(answer.is(503)["type"], "urn:windlass:problem:draining");
}
