//! Batches: all or none, or each by itself; options for all and for one.

use serde::{Deserialize, Serialize};
use std::time::Duration;
use windlass::low_level::stores::memory::MemoryStore;
use windlass::low_level::stores::{Options, StoreError};
use windlass::testing::{Fault, FaultyStore};
use windlass::{EnqueueError, JobKind, Priority, Windlass};

#[derive(Serialize, Deserialize, JobKind)]
#[job(queue = "email")]
struct Email(u32);

#[derive(Serialize, Deserialize, JobKind)]
struct Report;

async fn count(windlass: &Windlass) -> usize {
    let mut count = 0;
    for id in 1.. {
        match windlass.jobs().get(windlass::JobId(id)).await.unwrap() {
            Some(_) => count += 1,
            None => break,
        }
    }
    count
}

#[tokio::test]
async fn options_of_a_batch_hold_for_all_its_jobs() {
    let windlass = Windlass::open("memory:").await.unwrap();
    let batch = windlass.enqueue_many((0..3).map(Email)).priority(Priority::High).retry("once");
    let ids = batch.delay(Duration::from_secs(60)).tenant("acme").await.unwrap();
    assert_eq!(ids.len(), 3);
    for (number, id) in ids.into_iter().enumerate() {
        let job = windlass.jobs().get(id).await.unwrap().unwrap();
        assert_eq!((job.queue.as_str(), job.tenant.as_str()), ("email", "acme"));
        assert_eq!((job.priority, job.policy.max_retries), (Priority::High, 0));
        assert_eq!(job.due_at.since(job.created_at), Duration::from_secs(60).into());
        assert_eq!(&*job.payload, number.to_string(), "ids are in the order of the jobs");
    }
    assert_eq!(windlass.enqueue_many(Vec::<Email>::new()).await.unwrap(), []);
}

#[tokio::test]
async fn jobs_of_one_batch_may_differ() {
    let windlass = Windlass::open("memory:").await.unwrap();
    let batch = [windlass.enqueue(Email(1)).retry("once"), windlass.enqueue(Report).queue("slow")];
    let ids = windlass.enqueue_all(batch).await.unwrap();
    let email = windlass.jobs().get(ids[0]).await.unwrap().unwrap();
    let report = windlass.jobs().get(ids[1]).await.unwrap().unwrap();
    assert_eq!((email.kind.as_str(), email.queue.as_str(), email.policy.max_retries), ("email", "email", 0));
    assert_eq!((report.kind.as_str(), report.queue.as_str()), ("report", "slow"));
    assert_ne!(report.policy.max_retries, 0);
}

#[tokio::test]
async fn a_batch_with_a_refused_job_stores_none_and_says_why() {
    let windlass = Windlass::open("memory:").await.unwrap();
    windlass.enqueue(Email(0)).idempotency_key("k").await.unwrap();
    let conflict = [windlass.enqueue(Email(1)), windlass.enqueue(Email(2)).idempotency_key("k")];
    let error = windlass.enqueue_all(conflict).await.unwrap_err();
    assert!(matches!(error, EnqueueError::KeyConflict(_)), "{error:?}");
    let wrong = [windlass.enqueue(Email(1)), windlass.enqueue(Email(2)).queue("NO NAME")];
    let error = windlass.enqueue_all(wrong).await.unwrap_err();
    assert!(error.to_string().starts_with("queue `NO NAME` is not a name"), "{error}");
    let error = windlass.enqueue_many([Email(1)]).retry("no-such-policy").await.unwrap_err();
    assert!(error.to_string().starts_with("retry: "), "{error}");
    assert_eq!(count(&windlass).await, 1);
}

#[tokio::test]
async fn each_job_of_a_batch_can_be_stored_or_refused_by_itself() {
    let windlass = Windlass::open("memory:").await.unwrap();
    let first = windlass.enqueue(Email(0)).idempotency_key("k").await.unwrap();
    let jobs = [
        windlass.enqueue(Email(1)),
        windlass.enqueue(Email(2)).retry("no-such-policy"),
        windlass.enqueue(Email(0)).idempotency_key("k"),
        windlass.enqueue(Email(3)).idempotency_key("k"),
        windlass.enqueue(Email(4)),
    ];
    let results = windlass.enqueue_all(jobs).each().await;
    assert!(results[0].is_ok() && results[4].is_ok(), "{results:?}");
    assert!(matches!(results[1], Err(EnqueueError::Draft(_))), "{results:?}");
    assert_eq!(*results[2].as_ref().unwrap(), first);
    assert!(matches!(results[3], Err(EnqueueError::KeyConflict(id)) if id == first), "{results:?}");
}

#[tokio::test]
async fn each_job_of_a_batch_reports_an_unavailable_store() {
    let faulty = FaultyStore::new(MemoryStore::new(Options::default()));
    faulty.choose(|_| Fault::Unavailable);
    let windlass = Windlass::from_store(faulty);
    let results = windlass.enqueue_many([Email(1), Email(2)]).each().await;
    let away = |one: &Result<_, _>| matches!(one, Err(EnqueueError::Store(StoreError::Unavailable(_))));
    assert!(results.len() == 2 && results.iter().all(away), "{results:?}");
}
