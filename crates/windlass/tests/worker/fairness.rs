//! Order and fairness: priorities within a queue, fair shares between queues and tenants; wake-ups and schedules.

use crate::world::{World, scenario};
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex};
use windlass::core::job::{Kind, QueueName, Tenant};
use windlass::low_level::job::NewJob;
use windlass::low_level::stores::{DeadRuns, JobFilter, Missed, Order, Overlap, Page, Recurrence, ScheduleSpec, Scope};
use windlass::{Attempt, Failure, JobKind, Millis, Priority, State};

/// Records its name when it runs.
#[derive(Debug, Serialize, Deserialize)]
struct Say(String);

impl JobKind for Say {
    const KIND: &'static str = "say";
}

type Said = Arc<Mutex<Vec<String>>>;

async fn say(Say(name): Say, attempt: Attempt) -> Result<(), Failure> {
    attempt.state::<Said>().lock().unwrap().push(name);
    Ok(())
}

fn said(said: &Said) -> Vec<String> {
    said.lock().unwrap().clone()
}

scenario! {
    async fn higher_priority_runs_first_then_earlier_due_then_insertion(w: World) {
        let mut jobs = Vec::new();
        let (normal, low, highest, high) = (Priority::Normal, Priority::Low, Priority::Highest, Priority::High);
        for (name, priority) in [("c", normal), ("d", normal), ("e", low), ("a", highest), ("b", high)] {
            jobs.push(w.windlass.enqueue(Say(name.into())).priority(priority).await.unwrap());
        }
        let names = Said::default();
        let worker = w.start(w.worker().handle(say).state(names.clone()).queue("default", 1));
        for id in jobs {
            w.finished(id).await;
        }
        worker.stop().await;
        assert_eq!(said(&names), ["a", "b", "c", "d", "e"]);
    }

    async fn tenants_get_fair_shares_however_much_one_of_them_requests(w: World) {
        let mut jobs = Vec::new();
        for n in 0..40 {
            jobs.push(w.windlass.enqueue(Say(format!("big{n}"))).tenant("big").await.unwrap());
        }
        for n in 0..4 {
            jobs.push(w.windlass.enqueue(Say(format!("small{n}"))).tenant("small").await.unwrap());
        }
        let names = Said::default();
        let worker = w.start(w.worker().handle(say).state(names.clone()).queue("default", 2));
        for id in jobs {
            w.finished(id).await;
        }
        worker.stop().await;
        let order = said(&names);
        let last_small = order.iter().rposition(|name| name.starts_with("small")).unwrap();
        assert!(last_small < 16, "the small tenant waited for the large one: {order:?}");
    }

    async fn a_queue_that_is_new_is_served_at_once(w: World) {
        let names = Said::default();
        let worker = w.start(w.worker().handle(say).state(names.clone()).all_queues(windlass::core::Executor::Worker, 5));
        for queue in ["one", "two", "three"] {
            let id = w.windlass.enqueue(Say(queue.into())).queue(queue).tenant("acme").await.unwrap();
            w.finished(id).await;
        }
        assert_eq!(w.clock.monotonic(), Millis::ZERO, "no poll was needed");
        worker.stop().await;
    }

    async fn a_delayed_job_runs_when_it_falls_due_and_not_before(w: World) {
        let names = Said::default();
        let worker = w.start(w.worker().handle(say).state(names.clone()));
        let id = w.windlass.enqueue(Say("later".into())).delay(Millis::new(700)).await.unwrap();
        w.advance(Millis::new(699)).await;
        assert_eq!(w.job(id).await.state, State::Queued);
        w.advance(Millis::new(1)).await;
        w.finished(id).await;
        worker.stop().await;
    }

    async fn a_job_not_started_in_time_expires(w: World) {
        let id = w.windlass.enqueue(Say("late".into())).start_by(w.clock.now() + Millis::from_secs(5)).await.unwrap();
        w.advance(Millis::from_secs(5)).await;
        let worker = w.start(w.worker().handle(say).state(Said::default()));
        w.pass(Millis::from_secs(10)).await;
        let job = w.finished(id).await;
        assert_eq!((job.state, job.attempt), (State::Failed, 0));
        worker.stop().await;
    }

    async fn a_schedule_fires_once_per_firing_on_two_nodes_and_once_after_a_downtime(w: World) {
        let policy = w.job(w.windlass.enqueue(Say("policy".into())).await.unwrap()).await.policy;
        let template = NewJob::new(Kind::new("say").unwrap(), "\"tick\"", policy);
        let spec = ScheduleSpec {
            tenant: Tenant::default(),
            cadence: "every 10s".into(),
            zone: "UTC".into(),
            recurrence: Recurrence::Recurring,
            overlap: Overlap::Skip,
            missed: Missed::One,
            dead_letters: DeadRuns::Latest,
            template: NewJob { queue: QueueName::new("ticks").unwrap(), ..template },
        };
        let next = w.clock.now() + Millis::from_secs(10);
        let schedule = w.windlass.store().add_schedule(spec, Some(next)).await.unwrap();
        let names = Said::default();
        let other = w.other_process();
        let workers = [
            w.start(w.worker().handle(say).state(names.clone()).queue("ticks", 1)),
            other.start(other.worker().handle(say).state(names.clone()).queue("ticks", 1)),
        ];
        for firing in 1..=3 {
            w.advance(Millis::from_secs(10)).await;
            w.until("a run", async || runs(&w, schedule.id).await == firing).await;
        }
        for worker in workers {
            worker.stop().await;
        }
        // No node runs for an hour; then one run replaces all missed ones.
        w.advance(Millis::from_secs(3600)).await;
        let worker = w.start(w.worker().handle(say).state(names.clone()).queue("ticks", 1));
        w.until("the run that makes up", async || runs(&w, schedule.id).await == 4).await;
        w.pass(Millis::from_secs(3)).await;
        assert_eq!(runs(&w, schedule.id).await, 4);
        worker.stop().await;
    }

    async fn losing_every_wake_up_changes_latency_only(w: World) {
        let poll = Millis::from_secs(5);
        let deaf = w.without_wake_ups();
        let worker = deaf.start(deaf.worker().handle(say).state(Said::default()).poll(poll));
        for _ in 0..3 {
            deaf.quiet().await;
            let enqueued_at = w.clock.now();
            let id = w.windlass.enqueue(Say("found".into())).await.unwrap();
            w.advance(poll - Millis::new(1)).await;
            assert_eq!(w.job(id).await.state, State::Queued, "a wake-up reached the worker");
            w.advance(Millis::new(1)).await;
            let job = w.job(id).await;
            assert_eq!((job.state, job.claimed_at), (State::Succeeded, Some(enqueued_at + poll)), "found by the poll");
        }
        worker.stop().await;
    }

    async fn a_wait_ends_with_the_job(w: World) {
        let worker = w.start(w.worker().handle(say).state(Said::default()));
        let id = w.windlass.enqueue(Say("it".into())).delay(Millis::from_secs(1)).await.unwrap();
        w.advance(Millis::from_secs(1)).await;
        assert_eq!(w.finished(id).await.state, State::Succeeded);
        assert!(w.windlass.wait(windlass::JobId(999_999)).await.unwrap().is_none());
        worker.stop().await;
    }
}

/// Runs of a schedule that have succeeded.
async fn runs(w: &World, schedule: windlass::JobId) -> usize {
    let filter = JobFilter { schedule: Some(schedule), states: vec![State::Succeeded], ..JobFilter::default() };
    let page = Page { after: None, limit: 100, order: Order::OldestFirst };
    w.windlass.store().jobs(&Scope::All, &filter, page).await.unwrap().len()
}
