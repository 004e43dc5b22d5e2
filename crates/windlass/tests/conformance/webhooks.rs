use super::world;
use crate::world::*;
use windlass::core::job::{QueueName, Tenant};
use windlass::core::{Executor, Failure, Millis, Outcome, State};
use windlass::low_level::job::{Job, NewJob, Webhook};
use windlass::low_level::stores::{Committed, JobFilter, Scope, Share};

fn reported(events: &[State]) -> NewJob {
    let webhook = Webhook {
        url: "https://example.com/hook".into(),
        events: events.to_vec(),
        secret: Some("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".into()),
        policy: line("stepped"),
    };
    NewJob { webhook: Some(webhook.into()), start_by: Some(START + Millis::from_secs(3600)), ..job() }
}

async fn deliveries(w: &World, of: &Job) -> Vec<Job> {
    let filter = JobFilter { parent: Some(of.id), ..Default::default() };
    w.store.jobs(&Scope::All, &filter, all()).await.unwrap()
}

const ALL: [State; 3] = [State::Succeeded, State::Failed, State::Cancelled];

#[tokio::test]
async fn a_finished_job_has_one_delivery_and_a_waiting_one_none() {
    let w = world().await;
    w.put(reported(&ALL)).await;
    let running = w.claim_one().await;
    w.fail(&running).await;
    assert!(deliveries(&w, &running).await.is_empty());
    w.advance(Millis::from_secs(10));
    let running = w.claim_one().await;
    let Committed::Applied(made) = w.succeed(&running).await else { panic!() };
    let delivery = &deliveries(&w, &running).await[0];
    assert_eq!(made, [delivery.id]);
    assert_eq!((delivery.executor, delivery.queue.as_str()), (Executor::Http, "webhooks"));
    assert_eq!(delivery.policy, line("stepped"));
    assert!(delivery.webhook.is_none(), "deliveries carry no webhooks");
    let call = delivery.http.as_ref().unwrap();
    assert_eq!(call.url, "https://example.com/hook");
    let body: serde_json::Value = serde_json::from_str(&delivery.payload).unwrap();
    assert_eq!((&body["type"], &body["data"]["attempt"]), (&"job.succeeded".into(), &2.into()));
}

#[tokio::test]
async fn only_the_events_asked_for_are_reported() {
    let w = world().await;
    w.put(reported(&[State::Failed])).await;
    let running = w.claim_one().await;
    w.succeed(&running).await;
    assert!(deliveries(&w, &running).await.is_empty());
}

#[tokio::test]
async fn however_a_job_ends_its_webhook_is_enqueued_in_the_same_commit() {
    let w = world().await;
    let stored = w.put_all((0..4).map(|_| reported(&ALL)).collect()).await;
    let lost = w.put(NewJob { policy: line("once"), ..reported(&ALL) }).await;
    let cancelled = stored[3];
    let running = w.claim(&["default"], 2).await.jobs;
    w.commit(&running[0], Outcome::Failed(Failure::permanent("no"))).await;
    w.store.cancel(&Scope::All, vec![running[1].id]).await.unwrap();
    w.fail(&running[1].with_cancel_requested()).await;
    w.store.cancel(&Scope::All, vec![cancelled, stored[2]]).await.unwrap();
    assert_eq!(w.claim_one().await.id, lost);
    w.advance(LEASE + SECOND);
    w.reap().await;
    let expired = w.put(NewJob { start_by: Some(w.now()), ..reported(&ALL) }).await;
    w.store.expire(10).await.unwrap();
    let mut reported = Vec::new();
    for id in stored.into_iter().chain([lost, expired]) {
        let job = w.get(id).await;
        let made = deliveries(&w, &job).await;
        assert_eq!(made.len(), 1, "job {id} ended {}", job.state);
        let body: serde_json::Value = serde_json::from_str(&made[0].payload).unwrap();
        reported.push(format!("{} {}", body["type"].as_str().unwrap(), body["data"]["reason"].as_str().unwrap_or("-")));
    }
    let cancelled = "job.cancelled -";
    assert_eq!(reported, ["job.failed permanent", cancelled, cancelled, cancelled, "job.failed exhausted", "job.failed expired"]);
}

#[tokio::test]
async fn a_job_that_is_cancelled_while_it_waits_for_a_retry_reports_its_last_error() {
    let w = world().await;
    w.put(reported(&ALL)).await;
    let running = w.claim_one().await;
    w.fail(&running).await;
    w.store.cancel(&Scope::All, vec![running.id]).await.unwrap();
    let body: serde_json::Value = serde_json::from_str(&deliveries(&w, &running).await[0].payload).unwrap();
    assert_eq!((&body["type"], &body["data"]["error"]), (&"job.cancelled".into(), &"boom".into()));
    // The same for whoever sends it.
    let name = QueueName::new("webhooks").unwrap();
    let queue = w.store.register_queue(&Tenant::default(), &name, Executor::Http).await.unwrap().id;
    let sent = w.store.claim(w.request_shares(vec![Share { queue, slots: 1, ahead: 0 }])).await.unwrap();
    assert_eq!(serde_json::from_str::<serde_json::Value>(&sent.jobs[0].payload).unwrap(), body);
}
