//! What handlers may return, and how it affects the job.

use crate::world::{World, scenario};
use serde::{Deserialize, Serialize};
use windlass::{Attempt, Delivery, EventKind, HandlerError, JobKind, Millis, Reason, State, cancel, snooze};

#[derive(Debug, Serialize, Deserialize)]
struct Do(String);

impl JobKind for Do {
    const KIND: &'static str = "do";
}

/// What a newer version of the worker knows.
#[derive(Debug, Serialize, Deserialize)]
struct Learn {}

impl JobKind for Learn {
    const KIND: &'static str = "not-yet-known";
}

async fn learn(_: Learn, _: Attempt) -> Result<(), HandlerError> {
    Ok(())
}

#[derive(Debug, thiserror::Error)]
#[error("the line is busy")]
struct LineBusy;

async fn act(Do(what): Do, attempt: Attempt) -> Result<Option<u32>, HandlerError> {
    match what.as_str() {
        "snooze" if attempt.number() == 1 => Err(snooze(Millis::from_secs(10))),
        "cancel" => Err(cancel()),
        "error" => Err(LineBusy)?,
        "hang" => {
            attempt.cancelled().await;
            Err(LineBusy)?
        }
        "sleep" => {
            attempt.sleep(Millis::from_secs(60)).await;
            Ok(None)
        }
        "note" => {
            attempt.note("all is well");
            Ok(Some(42))
        }
        "strange" => {
            attempt.note(format!("a\0b {}", "\u{e9}".repeat(10_000)));
            Ok(Some(42))
        }
        _ => Ok(None),
    }
}

fn do_(what: &str) -> Do {
    Do(what.into())
}

scenario! {
    async fn a_snoozed_job_waits_and_counts_no_failure(w: World) {
        let worker = w.start(w.worker().handle(act));
        let id = w.windlass.enqueue(do_("snooze")).await.unwrap();
        w.event(id, |what| matches!(what, EventKind::Postponed { .. })).await;
        w.advance(Millis::from_secs(10)).await;
        let job = w.finished(id).await;
        assert_eq!((job.state, job.attempt, job.failures), (State::Succeeded, 2, 0));
        worker.stop().await;
    }

    async fn a_handler_can_cancel_its_job(w: World) {
        let worker = w.start(w.worker().handle(act));
        let id = w.windlass.enqueue(do_("cancel")).await.unwrap();
        assert_eq!(w.finished(id).await.state, State::Cancelled);
        worker.stop().await;
    }

    async fn an_errors_type_is_its_failures_class(w: World) {
        let worker = w.start(w.worker().handle(act));
        let id = w.windlass.enqueue(do_("error")).retry("once").await.unwrap();
        let job = w.finished(id).await;
        assert_eq!((job.error_class.as_deref(), job.error.as_deref()), (Some("LineBusy"), Some("the line is busy")));
        worker.stop().await;
    }

    async fn a_note_and_a_result_are_kept(w: World) {
        let worker = w.start(w.worker().handle(act).id("w1"));
        let id = w.windlass.enqueue(do_("note")).await.unwrap();
        assert_eq!(w.finished(id).await.result.as_deref(), Some("42"));
        let line = &w.windlass.jobs().history(id).await.unwrap()[0];
        assert_eq!((line.note.as_deref(), line.worker.as_str()), (Some("all is well"), "w1"));
        worker.stop().await;
    }

    async fn no_note_keeps_a_success_from_being_committed(w: World) {
        let worker = w.start(w.worker().handle(act));
        let id = w.windlass.enqueue(do_("strange")).await.unwrap();
        let job = w.finished(id).await;
        assert_eq!((job.state, job.attempt), (State::Succeeded, 1));
        let note = w.windlass.jobs().history(id).await.unwrap()[0].note.clone().unwrap();
        assert!(note.starts_with("a\u{FFFD}b \u{e9}") && note.len() <= 8 * 1024, "{} bytes", note.len());
        worker.stop().await;
    }

    async fn an_attempt_that_takes_too_long_is_a_timeout(w: World) {
        let worker = w.start(w.worker().handle(act));
        let id = w.windlass.enqueue(do_("sleep")).timeout(Millis::from_secs(5)).retry("once").await.unwrap();
        w.event(id, |what| matches!(what, EventKind::Started { .. })).await;
        w.advance(Millis::from_secs(5)).await;
        let job = w.finished(id).await;
        assert_eq!((job.state, job.error_class.as_deref()), (State::Failed, Some("Timeout")));
        worker.stop().await;
    }

    async fn an_unknown_kind_waits_for_a_worker_that_knows_it(w: World) {
        let worker = w.start(w.worker().handle(act));
        let unknown = w.windlass.enqueue_kind("not-yet-known", &serde_json::json!({})).retry("stepped").await.unwrap();
        w.event(unknown, |what| matches!(what, EventKind::Postponed { .. })).await;
        let known = w.windlass.enqueue(do_("return")).await.unwrap();
        assert_eq!(w.finished(known).await.state, State::Succeeded, "others are not kept from running");
        let job = w.job(unknown).await;
        assert_eq!((job.state, job.attempt, job.failures), (State::Queued, 1, 0), "it was given back once");
        let newer = w.start(w.worker().id("newer").handle(act).handle(learn));
        let job = w.finished(unknown).await;
        assert_eq!((job.state, job.attempt, job.failures), (State::Succeeded, 2, 0));
        newer.stop().await;
        worker.stop().await;
    }

    async fn a_bad_payload_is_not_retried(w: World) {
        let worker = w.start(w.worker().handle(act));
        let bad = w.windlass.enqueue_kind("do", &serde_json::json!({"not": "a text"})).await.unwrap();
        let bad = w.finished(bad).await;
        assert_eq!((bad.reason, bad.error_class.as_deref()), (Some(Reason::Permanent), Some("BadPayload")));
        worker.stop().await;
    }

    async fn a_running_job_is_notified_of_its_cancel_at_once(w: World) {
        let worker = w.start(w.worker().handle(act));
        let id = w.windlass.enqueue(do_("hang")).await.unwrap();
        w.event(id, |what| matches!(what, EventKind::Started { .. })).await;
        w.windlass.jobs().cancel(id).await.unwrap();
        let job = w.finished(id).await;
        assert_eq!((job.state, job.attempt), (State::Cancelled, 1));
        worker.stop().await;
    }

    async fn an_at_most_once_job_that_fails_is_not_retried(w: World) {
        let worker = w.start(w.worker().handle(act));
        let id = w.windlass.enqueue(do_("error")).delivery(Delivery::AtMostOnce).await.unwrap();
        let job = w.finished(id).await;
        assert_eq!((job.state, job.reason, job.attempt), (State::Failed, Some(Reason::AtMostOnce), 1));
        worker.stop().await;
    }

    async fn a_blocking_handler_does_not_hold_up_the_others(w: World) {
        #[derive(Debug, Serialize, Deserialize)]
        struct Block;
        impl JobKind for Block {
            const KIND: &'static str = "block";
        }
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let wait = std::sync::Mutex::new(wait);
        let block = move |_: Block, _: Attempt| -> Result<(), HandlerError> {
            let _ = wait.lock().unwrap().recv();
            Ok(())
        };
        let worker = w.start(w.worker().handle(act).handle_blocking(block));
        let blocked = w.windlass.enqueue(Block).await.unwrap();
        let other = w.windlass.enqueue(do_("note")).await.unwrap();
        assert_eq!(w.finished(other).await.state, State::Succeeded);
        assert_eq!(w.job(blocked).await.state, State::Running);
        go.send(()).unwrap();
        assert_eq!(w.finished(blocked).await.state, State::Succeeded);
        worker.stop().await;
    }
}
