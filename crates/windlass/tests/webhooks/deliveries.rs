//! Deliveries: made by the commit that finishes their job, retried by their own policy, linked both ways.

use crate::receiver::{Received, Receiver, Reply};
use crate::world::{Do, SECRET, scenario};
use serde_json::Value;
use windlass::client::WebhookDraft;
use windlass::core::policy::Partial;
use windlass::core::signature::Secret;
use windlass::testing::START;
use windlass::{Millis, Reason, State};

const STEPS: [Millis; 3] = [Millis::from_secs(30), Millis::from_secs(60), Millis::from_secs(120)];

/// The time at which an attempt was signed, checked with the signature.
pub(crate) fn signed_at(request: &Received) -> i64 {
    let at: i64 = request.header("webhook-timestamp").unwrap().parse().unwrap();
    let id = request.header("webhook-id").unwrap();
    let signature = request.header("webhook-signature").unwrap();
    Secret::parse(SECRET).unwrap().verify(id, at, &request.body, signature, at).unwrap();
    at
}

scenario! {
    async fn a_job_fails_through_30_60_and_120_seconds_into_failed(w: World) {
        let receiver = Receiver::always(Reply::status(200)).await;
        let id = w.enqueue(Do::Fail, &receiver.url()).await;
        w.kit.run_until_idle().await;
        let job = w.kit.job(id).await;
        assert_eq!((job.state, job.reason, job.attempt), (State::Failed, Some(Reason::Exhausted), 4));
        assert_eq!(w.delays(id).await, STEPS);
        assert_eq!(w.kit.elapsed(), Millis::from_secs(210));
        let reported: Value = serde_json::from_slice(&receiver.requests()[0].body).unwrap();
        assert_eq!((&reported["type"], &reported["data"]["reason"]), (&"job.failed".into(), &"exhausted".into()));
        assert_eq!(w.dead_letters().await.len(), 1, "the job; its delivery arrived");
    }

    async fn a_webhook_fails_through_30_60_and_120_seconds_into_the_dead_letters(w: World) {
        let receiver = Receiver::always(Reply::status(503)).await;
        let id = w.enqueue(Do::Succeed, &receiver.url()).await;
        w.kit.run_until_idle().await;
        assert_eq!(w.kit.job(id).await.state, State::Succeeded, "a failing receiver does not change the job");

        let deliveries = w.deliveries(id).await;
        let [delivery] = deliveries.as_slice() else { panic!("one delivery, not {deliveries:?}") };
        assert_eq!((delivery.state, delivery.reason), (State::Failed, Some(Reason::Exhausted)));
        assert_eq!(delivery.parent, Some(id));
        assert_eq!(w.delays(delivery.id).await, STEPS);
        let dead: Vec<_> = w.dead_letters().await.iter().map(|job| job.id).collect();
        assert_eq!(dead, [delivery.id]);
        assert!(w.deliveries(delivery.id).await.is_empty(), "deliveries carry no webhooks");

        let tries = receiver.requests();
        let from_start: Vec<i64> = tries.iter().map(|t| signed_at(t) - START.as_millis() / 1000).collect();
        assert_eq!(from_start, [0, 30, 90, 210]);
        for one in &tries {
            assert_eq!(one.header("webhook-id"), tries[0].header("webhook-id"));
            assert_eq!(one.body, tries[0].body);
        }
        let reported: Value = serde_json::from_slice(&tries[0].body).unwrap();
        assert_eq!((&reported["type"], &reported["data"]["id"]), (&"job.succeeded".into(), &id.0.into()));
    }

    async fn a_replayed_delivery_arrives_under_its_old_id(w: World) {
        let receiver = Receiver::start({
            let calls = std::sync::atomic::AtomicUsize::new(0);
            move |_| Reply::status(if calls.fetch_add(1, std::sync::atomic::Ordering::SeqCst) < 4 { 503 } else { 200 })
        }).await;
        let id = w.enqueue(Do::Succeed, &receiver.url()).await;
        w.kit.run_until_idle().await;
        let delivery = w.dead_letters().await.remove(0);
        w.windlass().jobs().replay(delivery.id).await.unwrap();
        w.kit.run_until_idle().await;
        let delivery = w.kit.job(delivery.id).await;
        assert_eq!((delivery.state, delivery.attempt, delivery.parent), (State::Succeeded, 5, Some(id)));
        let tries = receiver.requests();
        assert_eq!((tries[4].header("webhook-id"), &tries[4].body), (tries[0].header("webhook-id"), &tries[0].body));
        signed_at(&tries[4]);
        assert!(w.dead_letters().await.is_empty());
    }

    async fn gone_ends_a_delivery_at_once(w: World) {
        let receiver = Receiver::always(Reply::status(410)).await;
        let id = w.enqueue(Do::Succeed, &receiver.url()).await;
        w.kit.run_until_idle().await;
        let delivery = w.deliveries(id).await.remove(0);
        assert_eq!((delivery.state, delivery.reason, delivery.attempt), (State::Failed, Some(Reason::Permanent), 1));
        assert_eq!(receiver.requests().len(), 1);
    }

    async fn a_receivers_retry_after_is_honoured(w: World) {
        let receiver = Receiver::start({
            let calls = std::sync::atomic::AtomicUsize::new(0);
            move |_| match calls.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
                0 => Reply::with(429, "Retry-After: 600\r\n", ""),
                1 => Reply::with(503, "Retry-After: 1\r\n", ""),
                _ => Reply::status(204),
            }
        }).await;
        let id = w.enqueue(Do::Succeed, &receiver.url()).await;
        w.kit.run_until_idle().await;
        let delivery = w.deliveries(id).await.remove(0);
        assert_eq!(delivery.state, State::Succeeded);
        let delays = w.delays(delivery.id).await;
        assert_eq!(delays, [Millis::from_secs(600), Millis::from_secs(60)], "longer than the policy's, never shorter");
    }

    async fn only_requested_events_are_reported(w: World) {
        let receiver = Receiver::always(Reply::status(200)).await;
        let only = |events| WebhookDraft { url: receiver.url(), events, secret: None, policy: Partial::default() };
        let quiet = w.windlass().enqueue(Do::Succeed).webhook_with(only(vec![State::Failed])).await.unwrap();
        let cancelled =
            w.windlass().enqueue(Do::Succeed).delay(Millis::from_secs(60)).webhook_with(only(vec![State::Cancelled])).await.unwrap();
        w.windlass().jobs().cancel(cancelled).await.unwrap();
        w.kit.run_until_idle().await;
        assert!(w.deliveries(quiet).await.is_empty());
        let requests = receiver.requests();
        assert_eq!(requests.len(), 1);
        let reported: Value = serde_json::from_slice(&requests[0].body).unwrap();
        assert_eq!((&reported["type"], &reported["data"]["id"]), (&"job.cancelled".into(), &cancelled.0.into()));
        assert_eq!(requests[0].header("webhook-signature"), None, "no secret, no signature");
    }
}
