//! The alert on dead letters: fires once after five minutes, resolves once after a replay, and sends operators signed
//! notices.

use crate::deliveries::signed_at;
use crate::receiver::{Receiver, Reply};
use crate::world::{Do, SECRET, World, minutes, scenario};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use windlass::Millis;
use windlass::alert::{Alerts, Judge, Measure, NOTICE_KIND, Operator, UNKNOWN_FOR, default_rules};
use windlass::client::{RotateFault, SecretOf};
use windlass::core::job::Kind;
use windlass::low_level::stores::{Alert, AlertStatus, JobFilter};

const LOOK: Millis = Millis::from_secs(10);

/// Advances the time that upkeep sees, and delivers what it enqueues.
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
    let operators = vec![Operator::json(operator.url(), Some(SECRET.into()))];
    Alerts { rules, operators, ..Alerts::default() }
}

fn reported(operator: &Receiver) -> Vec<String> {
    let kind = |body: &[u8]| serde_json::from_slice::<Value>(body).unwrap()["type"].as_str().unwrap().to_owned();
    operator.requests().iter().map(|request| kind(&request.body)).collect()
}

scenario! {
    async fn the_alert_fires_once_after_five_minutes_and_resolves_once_after_the_replay(w: World) {
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
        assert!(reported(&operator).is_empty(), "not yet for more than five minutes");
        pass(&w, minutes(1)).await;
        let firing = alert(&w).await.unwrap();
        assert_eq!(firing.status, AlertStatus::Firing);
        let held = firing.fired_at.unwrap().since(firing.since);
        assert!(held > minutes(5) && held <= minutes(5) + LOOK + LOOK, "fired after {held}");
        pass(&w, minutes(30)).await;
        assert_eq!(reported(&operator), ["alert.fired"], "once, however long it lasts");

        health.store(200, Ordering::SeqCst);
        w.windlass().jobs().replay(dead.id).await.unwrap();
        pass(&w, minutes(10)).await;
        assert_eq!(alert(&w).await.unwrap().status, AlertStatus::Resolved);
        assert_eq!(reported(&operator), ["alert.fired", "alert.resolved"]);
        let ids: Vec<_> = operator.requests().iter().map(|r| r.header("webhook-id").unwrap().to_owned()).collect();
        assert_ne!(ids[0], ids[1]);
        assert!(operator.requests().iter().all(|request| request.header("webhook-signature").is_some()));
    }

    async fn no_tenant_can_replace_the_operators_secret(w: World) {
        let operator = Receiver::always(Reply::status(200)).await;
        let id = w.windlass().alerts().test(&rules(&operator).operators).await.unwrap()[0];
        let (tenants, own) = (w.windlass().tenants(), w.windlass().jobs().get(id).await.unwrap().unwrap().tenant);
        let refused = tenants.rotate_secret(&own, SecretOf::Job(id), None, None).await.unwrap_err();
        assert!(matches!(refused, RotateFault::NotSigned(_)), "{refused}");
        // The tenant's own webhook may have the same secret, and that one may be replaced.
        tenants.rotate_secret(&own, SecretOf::Text(SECRET.into()), None, Some(Millis::ZERO)).await.unwrap();
        assert_eq!(w.kit.run_due().await, 1);
        signed_at(&operator.requests().remove(0));
    }

    async fn failed_alert_notices_do_not_trigger_alerts(w: World) {
        let receiver = Receiver::always(Reply::status(410)).await;
        let operator = Receiver::always(Reply::status(500)).await;
        let w = w.alerts(rules(&operator));
        w.enqueue(Do::Succeed, &receiver.url()).await;
        w.kit.run_due().await;
        pass(&w, minutes(30)).await;
        assert_eq!(reported(&operator), ["alert.fired"; 4], "a notice and its three retries");
        let dead = w.dead_letters().await;
        assert_eq!(dead.iter().filter(|job| job.kind.as_str() == NOTICE_KIND).count(), 1);
        let delivery = dead.iter().find(|job| job.kind.as_str() != NOTICE_KIND).unwrap();
        w.windlass().store().discard(&windlass::low_level::stores::Scope::All, windlass::low_level::stores::Discard {
            ids: vec![delivery.id], reason: "known".into(), by: "ann".into(), what: String::new(),
        }).await.unwrap();
        pass(&w, minutes(1)).await;
        let over = alert(&w).await.unwrap();
        assert_eq!((over.status, over.incident), (AlertStatus::Resolved, 1), "the dead notice is not counted");
    }

    async fn several_nodes_report_once_and_a_restart_forgets_nothing(w: World) {
        let receiver = Receiver::always(Reply::status(410)).await;
        let operator = Receiver::always(Reply::status(200)).await;
        w.enqueue(Do::Succeed, &receiver.url()).await;
        w.kit.run_due().await;
        let node = || Judge::new(rules(&operator));
        let mut nodes = [node(), node(), node()];
        let mut news = Vec::new();
        for step in 0..80 {
            // Nodes come and go while it is pending and while it fires.
            nodes[step % 3] = node();
            let [a, b, c] = &mut nodes;
            let looks = tokio::join!(a.look(w.store()), b.look(w.store()), c.look(w.store()));
            news.extend([looks.0, looks.1, looks.2].into_iter().flat_map(Result::unwrap).map(|alert| alert.status));
            w.clock.advance(LOOK);
        }
        assert_eq!(news, [AlertStatus::Firing]);
        w.windlass().jobs().replay(w.dead_letters().await[0].id).await.unwrap();
        for _ in 0..10 {
            let [a, b, c] = &mut nodes;
            let looks = tokio::join!(a.look(w.store()), b.look(w.store()), c.look(w.store()));
            news.extend([looks.0, looks.1, looks.2].into_iter().flat_map(Result::unwrap).map(|alert| alert.status));
            nodes = [node(), node(), node()];
        }
        assert_eq!(news, [AlertStatus::Firing, AlertStatus::Resolved]);
        let notices = w.list(JobFilter { kind: Some(Kind::new(NOTICE_KIND).unwrap()), ..JobFilter::default() }).await;
        assert_eq!(notices.len(), 2);
    }

    async fn an_alert_whose_rule_was_removed_resolves_once(w: World) {
        let receiver = Receiver::always(Reply::status(410)).await;
        let operator = Receiver::always(Reply::status(200)).await;
        w.enqueue(Do::Succeed, &receiver.url()).await;
        w.kit.run_due().await;
        let with_rule = || Judge::new(rules(&operator));
        let without = || Judge::new(Alerts { rules: Vec::new(), ..rules(&operator) });
        let mut old = with_rule();
        old.look(w.store()).await.unwrap();
        w.clock.advance(minutes(6));
        assert_eq!(old.look(w.store()).await.unwrap().len(), 1);

        // Nodes are replaced one by one: as long as one node has the rule, the others must not resolve the alert.
        let mut new = without();
        for _ in 0..3 {
            assert!(new.look(w.store()).await.unwrap().is_empty());
            assert!(old.look(w.store()).await.unwrap().is_empty());
            w.clock.advance(LOOK);
        }
        drop(old);
        w.clock.advance(UNKNOWN_FOR);
        let over = new.look(w.store()).await.unwrap();
        assert_eq!(over.iter().map(|alert| alert.status).collect::<Vec<_>>(), [AlertStatus::Resolved]);
        assert!(over[0].resolved_at.is_some() && over[0].detail.contains("rule"), "{over:?}");
        w.clock.advance(UNKNOWN_FOR);
        assert!(new.look(w.store()).await.unwrap().is_empty() && without().look(w.store()).await.unwrap().is_empty());

        // A node that still has the rule raises the alert again, and the others resolve it less and less often.
        let mut stubborn = with_rule();
        let mut changes = 0;
        for _ in 0..12 * 12 {
            changes += stubborn.look(w.store()).await.unwrap().len();
            w.clock.advance(minutes(5));
            changes += new.look(w.store()).await.unwrap().len();
        }
        assert!((4..=20).contains(&changes), "{changes} changes in half a day");
    }
}
