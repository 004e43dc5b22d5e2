//! Graceful shutdown: finish or hand back, commit, return.

use crate::world::{World, scenario};
use serde::{Deserialize, Serialize};
use windlass::{Attempt, Delivery, EventKind, Failure, JobKind, Millis, Reason, State};

/// Runs for a while by the store's clock.
#[derive(Debug, Serialize, Deserialize)]
struct Work {
    seconds: u64,
    heeds: bool,
}

impl JobKind for Work {
    const KIND: &'static str = "work";
}

async fn work(job: Work, attempt: Attempt) -> Result<(), Failure> {
    if !job.heeds {
        attempt.sleep(Millis::from_secs(job.seconds)).await;
        return Ok(());
    }
    tokio::select! {
        () = attempt.sleep(Millis::from_secs(job.seconds)) => Ok(()),
        () = attempt.cancelled() => Err(Failure::new("asked to stop").retry_in(Millis::from_secs(7))),
    }
}

fn started(what: &EventKind) -> bool {
    matches!(what, EventKind::Started { .. })
}

scenario! {
    async fn an_attempt_that_ends_within_the_grace_time_is_finished(w: World) {
        let mut worker = w.start(w.worker().handle(work).grace(Millis::from_secs(20)));
        let id = w.windlass.enqueue(Work { seconds: 10, heeds: false }).await.unwrap();
        w.event(id, started).await;
        worker.ask_to_stop();
        w.advance(Millis::from_secs(10)).await;
        worker.stopped().await.unwrap();
        assert_eq!(w.job(id).await.state, State::Succeeded);
    }

    async fn an_attempt_that_exceeds_the_grace_time_is_given_back_and_loses_nothing(w: World) {
        let mut worker = w.start(w.worker().handle(work).grace(Millis::from_secs(20)));
        let id = w.windlass.enqueue(Work { seconds: 3600, heeds: false }).await.unwrap();
        w.event(id, started).await;
        worker.ask_to_stop();
        w.pass_until_stopped(worker).await;
        let job = w.job(id).await;
        assert_eq!((job.state, job.attempt, job.failures), (State::Queued, 1, 0));
        let history = w.windlass.jobs().history(id).await.unwrap();
        assert_eq!(history[0].label(), "Released");
    }

    async fn a_handler_that_stops_on_request_chooses_its_own_outcome(w: World) {
        let mut worker = w.start(w.worker().handle(work).grace(Millis::from_secs(20)));
        let id = w.windlass.enqueue(Work { seconds: 3600, heeds: true }).await.unwrap();
        w.event(id, started).await;
        worker.ask_to_stop();
        w.pass_until_stopped(worker).await;
        let job = w.job(id).await;
        assert_eq!((job.state, job.failures, job.previous_delay), (State::Retrying, 1, Millis::from_secs(7)));
    }

    async fn an_at_most_once_attempt_that_was_cut_off_is_not_given_back(w: World) {
        let mut worker = w.start(w.worker().handle(work).grace(Millis::from_secs(20)));
        let job = Work { seconds: 3600, heeds: false };
        let id = w.windlass.enqueue(job).delivery(Delivery::AtMostOnce).await.unwrap();
        w.event(id, started).await;
        worker.ask_to_stop();
        w.pass_until_stopped(worker).await;
        let job = w.job(id).await;
        assert_eq!((job.state, job.reason), (State::Failed, Some(Reason::AtMostOnce)));
    }

    async fn a_stopped_worker_leaves_no_job_running(w: World) {
        let mut ids = Vec::new();
        for _ in 0..30 {
            ids.push(w.windlass.enqueue(Work { seconds: 3600, heeds: false }).await.unwrap());
        }
        let mut worker = w.start(w.worker().handle(work).queue("default", 10).grace(Millis::from_secs(5)));
        w.event(ids[9], started).await;
        worker.ask_to_stop();
        w.pass_until_stopped(worker).await;
        for id in ids {
            assert_eq!(w.job(id).await.state, State::Queued);
        }
    }
}
