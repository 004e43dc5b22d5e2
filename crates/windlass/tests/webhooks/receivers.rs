//! Receivers that answer slowly, with too much data, with redirects or not at all do not affect other deliveries.

use crate::receiver::{Receiver, Reply};
use crate::world::{Do, World, act, caller, scenario};
use std::time::Duration;
use tokio::sync::oneshot;
use windlass::Job;
use windlass::core::Executor;
use windlass::http::KEPT_BYTES;
use windlass::{EventKind, Millis, State, Worker};

/// Real time after which a test that waits for something is given up.
const HANG: Duration = Duration::from_secs(180);

async fn failed_once(w: &World, receiver: &Receiver) -> Job {
    let id = w.enqueue(Do::Succeed, &receiver.url()).await;
    w.kit.run_due().await;
    let delivery = w.deliveries(id).await.remove(0);
    assert_eq!((delivery.state, delivery.failures), (State::Retrying, 1), "{:?}", delivery.error);
    delivery
}

scenario! {
    async fn a_redirect_is_a_failure_and_is_not_followed(w: World) {
        let target = Receiver::always(Reply::status(200)).await;
        let receiver = Receiver::always(Reply::with(302, &format!("Location: {}\r\n", target.url()), "")).await;
        assert_eq!(failed_once(&w, &receiver).await.error_class.as_deref(), Some("Redirect"));
        assert_eq!(target.connections(), 0);
    }

    async fn a_connection_that_is_reset_after_reading_is_tried_again(w: World) {
        let receiver = Receiver::always(Reply::Reset).await;
        let delivery = failed_once(&w, &receiver).await;
        assert!(delivery.error_class.is_some());
        w.kit.run_until_idle().await;
        let bodies: Vec<_> = receiver.requests().into_iter().map(|request| request.body).collect();
        assert_eq!(bodies.len(), 4);
        assert!(bodies.iter().all(|body| *body == bodies[0]));
    }

    async fn only_the_start_of_a_huge_answer_is_read(w: World) {
        let body = "x".repeat(8 << 20);
        let refusing = Receiver::always(Reply::with(500, "", &body)).await;
        let delivery = failed_once(&w, &refusing).await;
        assert!(delivery.error.unwrap().len() <= KEPT_BYTES + 100);
        let agreeing = Receiver::always(Reply::with(200, "", &body)).await;
        let id = w.enqueue(Do::Succeed, &agreeing.url()).await;
        w.kit.run_due().await;
        assert_eq!(w.deliveries(id).await[0].state, State::Succeeded);
    }

    async fn a_receiver_that_does_not_answer_does_not_delay_others(w: World) {
        let silent = Receiver::always(Reply::Hold).await;
        let lively = Receiver::always(Reply::status(200)).await;
        let mut events = w.windlass().events().subscribe();
        let (stop, stopped) = oneshot::channel::<()>();
        let worker = Worker::new(w.windlass()).handle(act).all_queues(Executor::Worker, 8)
            .http(caller(&w.clock)).all_queues(Executor::Http, 16);
        let worker = tokio::spawn(worker.run(async { drop(stopped.await) }));
        for _ in 0..4 {
            w.enqueue(Do::Succeed, &silent.url()).await;
        }
        for _ in 0..20 {
            w.enqueue(Do::Succeed, &lively.url()).await;
        }
        let mut delivered = 0;
        let mut timed_out = 0;
        let looking = async {
            while delivered < 20 || timed_out < 4 {
                let event = events.recv().await.unwrap();
                match event.event_kind {
                    EventKind::Succeeded { .. } if event.kind.as_str() == "webhook" => delivered += 1,
                    EventKind::Retried { error_class, .. } => {
                        assert_eq!((event.kind.as_str(), error_class.as_str()), ("webhook", "Timeout"));
                        timed_out += 1;
                    }
                    EventKind::GaveUp { .. } | EventKind::Cancelled => panic!("nothing gives up: {event:?}"),
                    EventKind::Queued
                    | EventKind::Started { .. }
                    | EventKind::Succeeded { .. }
                    | EventKind::Postponed { .. }
                    | _ => {}
                }
                // The responsive receivers finish before any time passes; only then do the silent ones time out.
                if delivered == 20 && timed_out == 0 && silent.requests().len() == 4 {
                    w.clock.advance(Millis::from_secs(31));
                }
            }
        };
        tokio::time::timeout(HANG, looking).await.expect("the responsive receiver gets its deliveries in time");
        drop(stop);
        tokio::time::timeout(HANG, worker).await.expect("the worker stops").unwrap().unwrap();
    }
}
