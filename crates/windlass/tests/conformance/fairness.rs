//! Fair shares under load: a worker with room for more jobs than one claim takes.

use super::world;
use crate::world::*;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tokio::sync::{Semaphore, watch};
use windlass::core::Executor;
use windlass::{Attempt, Failure, JobKind, Windlass, Worker};

const QUEUES: usize = 40;
/// Jobs of each queue, more than its fair share of the slots.
const JOBS: usize = 100;
/// More than one claim takes (2000), and divisible by the queues.
const SLOTS: usize = 3000;

#[derive(Debug, Serialize, Deserialize)]
#[serde(transparent)]
struct Email(serde_json::Value);

impl JobKind for Email {
    const KIND: &'static str = "email";
}

/// How many jobs of each queue have started.
type Started = Mutex<BTreeMap<String, usize>>;

#[tokio::test]
async fn a_worker_with_more_room_than_a_claim_takes_serves_all_queues_alike() {
    let w = world().await;
    for queue in 0..QUEUES {
        w.put_all((0..JOBS).map(|_| job_in(&format!("queue-{queue}"))).collect()).await;
    }
    let started = Arc::new(Started::default());
    let (count, mut counted) = watch::channel(0);
    let gate = Arc::new(Semaphore::new(0));
    let (starting, closed) = (started.clone(), gate.clone());
    // Handlers stay in their slots until the test has counted them.
    let handler = move |_: Email, attempt: Attempt| {
        let (starting, closed, count) = (starting.clone(), closed.clone(), count.clone());
        async move {
            *starting.lock().unwrap().entry(attempt.job().queue.to_string()).or_default() += 1;
            count.send_modify(|count| *count += 1);
            let _ = closed.acquire().await;
            Ok::<(), Failure>(())
        }
    };
    let windlass = Windlass::from_store(w.store.clone());
    let worker = Worker::new(&windlass).handle(handler).all_queues(Executor::Worker, SLOTS as u32);
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let running = tokio::spawn(worker.run(async { drop(stopped.await) }));
    counted.wait_for(|count| *count >= SLOTS).await.unwrap();
    let shares: Vec<usize> = started.lock().unwrap().values().copied().collect();
    stop.send(()).unwrap();
    gate.close();
    running.await.unwrap().unwrap();
    assert_eq!(shares, [SLOTS / QUEUES; QUEUES]);
}
