//! Each family's retry sequence, from the enqueue to its end.

use crate::world::{World, scenario};
use serde::{Deserialize, Serialize};
use windlass::core::policy::Preset;
use windlass::{Attempt, Failure, JobKind, Millis, Priority, Reason, State};

/// Fails as often as it says, with the class it says.
#[derive(Debug, Serialize, Deserialize)]
struct Flaky {
    failures: u32,
    class: Option<String>,
    panics: bool,
}

impl JobKind for Flaky {
    const KIND: &'static str = "flaky";
}

impl Flaky {
    fn times(failures: u32) -> Self {
        Self { failures, class: None, panics: false }
    }
}

async fn flaky(job: Flaky, attempt: Attempt) -> Result<String, Failure> {
    if attempt.retry() >= job.failures {
        return Ok(format!("on retry {}", attempt.retry()));
    }
    assert!(!job.panics, "asked to panic");
    let failure = Failure::new("asked to fail");
    Err(match job.class {
        Some(class) => failure.class(class),
        None => failure,
    })
}

scenario! {
    async fn a_job_that_fails_twice_waits_30s_and_60s_and_succeeds(w: World) {
        let worker = w.start(w.worker().handle(flaky));
        let id = w.windlass.enqueue(Flaky::times(2)).retry("stepped").await.unwrap();
        assert_eq!(w.pass_retry(id).await, Millis::from_secs(30));
        assert_eq!(w.pass_retry(id).await, Millis::from_secs(60));
        let job = w.finished(id).await;
        assert_eq!((job.state, job.attempt, job.failures), (State::Succeeded, 3, 2));
        assert_eq!(job.result.as_deref(), Some("\"on retry 2\""));
        let history = w.windlass.jobs().history(id).await.unwrap();
        let labels: Vec<String> = history.iter().map(windlass::core::Attempt::label).collect();
        assert_eq!(labels, ["Initial", "Retry #1", "Retry #2"]);
        worker.stop().await;
    }

    async fn a_panicking_job_is_retried_with_full_jitter_and_keeps_its_priority(w: World) {
        let worker = w.start(w.worker().handle(flaky));
        let flaky = Flaky { panics: true, ..Flaky::times(3) };
        let id = w.windlass.enqueue(flaky).priority(Priority::High).retry("full-jitter").await.unwrap();
        for cap in [500, 1000, 2000] {
            let delay = w.pass_retry(id).await;
            assert!(delay <= Millis::new(cap), "{delay} is longer than {cap}ms");
        }
        let job = w.finished(id).await;
        assert_eq!((job.state, job.priority), (State::Succeeded, Priority::High));
        let first = &w.windlass.jobs().history(id).await.unwrap()[0];
        assert_eq!(first.error_class.as_deref(), Some("Panic"));
        let message = first.error.as_deref().unwrap();
        assert!(message.contains("asked to panic") && message.contains("families.rs:"), "{message}");
        worker.stop().await;
    }

    async fn the_four_strategies_spread_by_a_fifth_around_their_tables(w: World) {
        let worker = w.start(w.worker().handle(flaky));
        for name in ["exponential", "linear", "fixed", "fibonacci"] {
            let table = Preset::find(name).unwrap();
            let id = w.windlass.enqueue(Flaky::times(9)).retry(name).await.unwrap();
            let policy = w.job(id).await.policy;
            for retry in 1..=3 {
                let delay = w.pass_retry(id).await;
                let middle = policy.delay(retry).get();
                assert!((middle * 4 / 5..=middle * 6 / 5).contains(&delay.get()), "{} retry {retry}: {delay}", table.name);
            }
            let job = w.finished(id).await;
            assert_eq!((job.state, job.reason, job.attempt), (State::Failed, Some(Reason::Exhausted), 4), "{name}");
        }
        worker.stop().await;
    }

    async fn a_class_that_is_given_up_on_is_not_retried(w: World) {
        let worker = w.start(w.worker().handle(flaky));
        for class in ["ValidationError", "NotFoundError", "UnauthorizedError", "ForbiddenError", "SyntaxError"] {
            let id = w.windlass.enqueue(Flaky { class: Some(class.into()), ..Flaky::times(9) }).await.unwrap();
            let job = w.finished(id).await;
            assert_eq!((job.state, job.reason, job.attempt), (State::Failed, Some(Reason::Permanent), 1), "{class}");
            assert_eq!(job.error_class.as_deref(), Some(class));
        }
        worker.stop().await;
    }

    async fn a_jobs_own_fields_override_the_policy_it_names(w: World) {
        let worker = w.start(w.worker().handle(flaky));
        let id = w.windlass.enqueue(Flaky::times(9)).retry("stepped:retries=1").await.unwrap();
        assert_eq!(w.pass_retry(id).await, Millis::from_secs(30));
        let job = w.finished(id).await;
        assert_eq!((job.state, job.reason, job.attempt), (State::Failed, Some(Reason::Exhausted), 2));
        worker.stop().await;
    }
}
