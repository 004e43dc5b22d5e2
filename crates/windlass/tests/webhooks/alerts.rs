//! The alert on dead letters: after five minutes, once; over after a replay, once; told to operators, signed.

use crate::receiver::{Receiver, Reply};
use crate::world::{Do, SECRET, World, minutes, scenario};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use windlass::Millis;
use windlass::alert::{Alerts, Measure, NOTICE_KIND, Operator, default_rules};
use windlass::store::{Alert, AlertStatus};

const LOOK: Millis = Millis::from_secs(10);

/// Lets time pass as the upkeep sees it, and delivers what it enqueues.
async fn pass(w: &World, span: Millis) {
    for _ in 0..span.get() / LOOK.get() {
        w.kit.advance(LOOK).await;
        w.kit.run_due().await;
    }
}

async fn alert(w: &World) -> Option<Alert> {
    w.store().alerts().await.unwrap().into_iter().find(|alert| alert.rule == Measure::DeadLetters.as_str())
}

async fn receiver_with(status: &Arc<AtomicU16>) -> Receiver {
    let status = status.clone();
    Receiver::start(move |_| Reply::status(status.load(Ordering::SeqCst))).await
}

fn rules(operator: &Receiver) -> Alerts {
    let rules = default_rules().into_iter().filter(|rule| rule.measure == Measure::DeadLetters).collect();
    Alerts { rules, operators: vec![Operator { url: operator.url(), secret: Some(SECRET.into()) }] }
}

fn told(operator: &Receiver) -> Vec<String> {
    let kind = |body: &[u8]| serde_json::from_slice::<Value>(body).unwrap()["type"].as_str().unwrap().to_owned();
    operator.requests().iter().map(|request| kind(&request.body)).collect()
}

scenario! {
    async fn dead_letters_ring_once_after_five_minutes_and_fall_silent_once_after_the_replay(w: World) {
        let health = Arc::new(AtomicU16::new(503));
        let receiver = receiver_with(&health).await;
        let operator = Receiver::always(Reply::status(200)).await;
        let w = w.alerts(rules(&operator));
        let id = w.enqueue(Do::Succeed, &receiver.url()).await;
        w.kit.run_until_idle().await;
        let dead = w.dead_letters().await.remove(0);
        assert_eq!(dead.parent, Some(id));

        pass(&w, minutes(5)).await;
        assert_eq!(alert(&w).await.unwrap().status, AlertStatus::Pending);
        assert!(told(&operator).is_empty(), "not yet for more than five minutes");
        pass(&w, minutes(1)).await;
        let firing = alert(&w).await.unwrap();
        assert_eq!(firing.status, AlertStatus::Firing);
        let held = firing.fired_at.unwrap().since(firing.since);
        assert!(held > minutes(5) && held <= minutes(5) + LOOK + LOOK, "fired after {held}");
        pass(&w, minutes(30)).await;
        assert_eq!(told(&operator), ["alert.fired"], "once, however long it lasts");

        health.store(200, Ordering::SeqCst);
        w.windlass().replay(dead.id).await.unwrap();
        pass(&w, minutes(10)).await;
        assert_eq!(alert(&w).await.unwrap().status, AlertStatus::Resolved);
        assert_eq!(told(&operator), ["alert.fired", "alert.resolved"]);
        let ids: Vec<_> = operator.requests().iter().map(|r| r.header("webhook-id").unwrap().to_owned()).collect();
        assert_ne!(ids[0], ids[1]);
        assert!(operator.requests().iter().all(|request| request.header("webhook-signature").is_some()));
    }

    async fn a_deaf_operator_does_not_ring_the_bell_again(w: World) {
        let receiver = Receiver::always(Reply::status(410)).await;
        let operator = Receiver::always(Reply::status(500)).await;
        let w = w.alerts(rules(&operator));
        w.enqueue(Do::Succeed, &receiver.url()).await;
        w.kit.run_due().await;
        pass(&w, minutes(30)).await;
        assert_eq!(told(&operator), ["alert.fired"; 4], "a notice and its three retries");
        let dead = w.dead_letters().await;
        assert_eq!(dead.iter().filter(|job| job.kind.as_str() == NOTICE_KIND).count(), 1);
        let delivery = dead.iter().find(|job| job.kind.as_str() != NOTICE_KIND).unwrap();
        w.windlass().store().discard(&windlass::store::Scope::All, windlass::store::Discard {
            ids: vec![delivery.id], reason: "known".into(), by: "ann".into(),
        }).await.unwrap();
        pass(&w, minutes(1)).await;
        let over = alert(&w).await.unwrap();
        assert_eq!((over.status, over.incident), (AlertStatus::Resolved, 1), "the dead notice is not counted");
    }
}
