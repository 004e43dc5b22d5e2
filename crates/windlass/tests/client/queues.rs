//! Queues: depths, settings at two levels, pause and purge.

use super::world;
use crate::world::{SECOND, job_in, tenant};
use crate::{client, queue};
use windlass::core::{Millis, RetentionLevel};
use windlass::low_level::job::NewJob;
use windlass::client::{Keep, PolicyFault, QueueSettings, Retention, Scope};
use windlass::{State};

#[tokio::test]
async fn a_queue_shows_its_depth_and_effective_settings() {
    let w = world().await;
    let windlass = client(&w);
    w.put_all(vec![job_in("mail"), job_in("mail"), job_in("sms")]).await;
    let of_shop = w.put(NewJob { tenant: tenant("shop"), ..job_in("mail") }).await;
    w.claim(&["mail"], 1).await;
    w.advance(SECOND);
    let queues = windlass.queues().list().await.unwrap();
    let names: Vec<(&str, &str)> = queues.iter().map(|q| (q.tenant.as_str(), q.name.as_str())).collect();
    assert_eq!(names, [("default", "mail"), ("default", "sms"), ("shop", "mail")]);
    assert_eq!((queues[0].due, queues[0].running, queues[0].depth()), (1, 1, 2));
    assert_eq!(queues[0].oldest_due.map(|at| w.now().since(at)), Some(SECOND));
    assert!((queues[0].rates.enqueued - 2.0 / 300.0).abs() < 1e-9);
    assert_eq!((&queues[0].policy, queues[0].retention), (&None, Retention::default()));
    let shop = Scope::Tenant(tenant("shop"));
    let own = windlass.queues().within(&shop).list().await.unwrap();
    assert_eq!(own.iter().map(|q| (q.tenant.as_str(), q.due)).collect::<Vec<_>>(), [("shop", 1)]);
    assert_eq!(windlass.jobs().within(&shop).get(of_shop).await.unwrap().unwrap().queue, queue("mail"));
}

#[tokio::test]
async fn a_tenants_setting_overrides_the_shared_one_field_by_field() {
    let w = world().await;
    let windlass = client(&w);
    w.put(job_in("mail")).await;
    let mail = queue("mail");
    let days = |n: u64| Keep::For(Millis::from_secs(n * 86_400));
    let shared = RetentionLevel { succeeded: Some(days(1)), failed: Some(days(30)), ..RetentionLevel::default() };
    let settings = QueueSettings { policy: Some("stepped".into()), retention: shared, ..QueueSettings::default() };
    windlass.queues().set(&mail, &settings).await.unwrap();
    let mine = windlass.queues().within(&Scope::Tenant(tenant("default"))).by("ann");
    mine.set_policy(&mail, "fixed:base=10s,jitter=none,cap=none,retries=3").await.unwrap();

    let found = &windlass.queues().list().await.unwrap()[0];
    assert_eq!(found.retention, Retention { succeeded: days(1), failed: days(30), ..Retention::default() });
    assert_eq!(found.policy, Some("fixed:base=10s,jitter=none,cap=none,retries=3".into()));
    assert_eq!(found.effective_policy.as_ref().map(|policy| policy.max_retries), Some(3));

    mine.set_retention(&mail, Retention { succeeded: Keep::Drop, ..Retention::default() }).await.unwrap();
    mine.remove_policy(&mail).await.unwrap();
    let found = &windlass.queues().list().await.unwrap()[0];
    assert_eq!((found.retention.succeeded, found.retention.failed), (Keep::Drop, days(90)));
    assert_eq!(found.policy, Some("stepped".into()));
    mine.remove_retention(&mail).await.unwrap();
    assert_eq!(mine.settings(&mail).await.unwrap(), QueueSettings::default());
    assert_eq!(windlass.queues().settings(&mail).await.unwrap(), settings);
    let audits = windlass.audit().latest(10).await.unwrap();
    assert_eq!(audits.iter().filter(|line| line.by == "ann" && line.action == "set queue").count(), 4);

    let error = windlass.queues().set_policy(&mail, "expnential").await.unwrap_err();
    assert!(matches!(error, PolicyFault::Policy(_)), "{error}");
}

#[tokio::test]
async fn a_paused_queue_gives_no_work_until_it_is_resumed() {
    let w = world().await;
    let windlass = client(&w);
    w.put_all(vec![job_in("mail"), NewJob { tenant: tenant("shop"), ..job_in("mail") }]).await;
    assert_eq!(windlass.queues().pause(&queue("mail")).await.unwrap(), 2);
    assert!(windlass.queues().list().await.unwrap().iter().all(|queue| queue.paused));
    assert!(w.claim(&["mail"], 9).await.jobs.is_empty());
    let mine = windlass.queues().within(&Scope::Tenant(tenant("default")));
    assert_eq!(mine.resume(&queue("mail")).await.unwrap(), 1);
    assert_eq!(w.claim(&["mail"], 9).await.jobs.len(), 1);
    assert_eq!(windlass.queues().pause(&queue("nowhere")).await.unwrap(), 0);
    let actions: Vec<(String, u64)> =
        windlass.audit().latest(10).await.unwrap().into_iter().map(|line| (line.action, line.count)).collect();
    assert_eq!(actions, [("resume queue".to_owned(), 1), ("pause queue".to_owned(), 2)]);
}

#[tokio::test]
async fn a_purge_covers_only_jobs_waiting_when_it_began() {
    let w = world().await;
    let windlass = client(&w);
    let ids = w.put_all(vec![job_in("mail"); 5]).await;
    w.claim(&["mail"], 1).await;
    let first = windlass.queues().purge_some(&queue("mail"), 2, None).await.unwrap();
    assert_eq!(first.cancelled, 2);
    let late = w.put(job_in("mail")).await;
    // The cursor can be passed as text.
    let cursor = first.next.unwrap().to_string().parse().unwrap();
    let rest = windlass.queues().purge_some(&queue("mail"), 9, Some(cursor)).await.unwrap();
    assert_eq!((rest.cancelled, rest.next), (2, None));
    assert_eq!(w.get(ids[0]).await.state, State::Running);
    assert_eq!(w.get(late).await.state, State::Queued);
    assert_eq!(windlass.queues().purge(&queue("mail")).await.unwrap().cancelled, 1);
    assert_eq!(windlass.queues().purge(&queue("mail")).await.unwrap().cancelled, 0);
}

#[tokio::test]
async fn what_waits_is_counted_by_reason_and_reported_to_subscribers() {
    use windlass::core::gate::WaitingFor;
    use windlass::remote::{RemoteWorker, TakeRequest, WorkScope};
    let w = world().await;
    let windlass = client(&w);
    let flow = windlass::core::Flow::from_value(&serde_json::json!({"limits": {"perKey": {"concurrency": 1}}}));
    windlass.queues().set_flow(&queue("calls"), flow.unwrap().as_ref()).await.unwrap();
    let keyed = |key: &str| NewJob { limit_key: Some(key.into()), ..job_in("calls") };
    w.put_all(vec![keyed("a"), keyed("a"), keyed("a"), keyed("b")]).await;
    w.put_all(vec![job_in("paused"), job_in("held"), job_in("held"), job_in("alone")]).await;
    windlass.queues().pause(&queue("paused")).await.unwrap();
    let until = w.now() + Millis::from_secs(60);
    windlass.queues().gates().hold(&queue("held"), None, until, "repairs").await.unwrap();
    let mut events = windlass.events().subscribe();
    let worker = RemoteWorker::new("w1", WorkScope::all());
    let queues = vec![queue("calls")];
    let (wait, lease_for) = (Millis::ZERO, Millis::from_secs(30));
    let taken = windlass.remote().take(TakeRequest { worker, queues, kinds: None, max: 10, wait, lease_for }).await;
    assert_eq!(taken.unwrap().len(), 2);

    let total = windlass.queues().waiting_in_all().await.unwrap();
    let behind: Vec<(WaitingFor, u64)> = total.behind.iter().map(|(what, count)| (*what, *count)).collect();
    let expected =
        [(WaitingFor::Concurrency, 2), (WaitingFor::Hold, 2), (WaitingFor::Paused, 1), (WaitingFor::Worker, 1)];
    assert_eq!((total.ready, total.later, behind.as_slice()), (0, 0, &expected[..]));
    let each = windlass.queues().waiting().await.unwrap();
    let names: Vec<&str> = each.iter().map(|one| one.queue.as_str()).collect();
    assert_eq!(names, ["alone", "calls", "held", "paused"]);

    let mut parked = Vec::new();
    while let Ok(event) = events.try_recv() {
        if let windlass::EventKind::Parked { waiting_for, .. } = event.event_kind {
            assert_eq!(event.waiting(), Some((waiting_for, None)));
            parked.push(waiting_for);
        }
    }
    assert_eq!(parked, [WaitingFor::Concurrency; 2]);
}

#[tokio::test]
async fn a_key_is_held_in_every_queue_that_exists() {
    let w = world().await;
    let windlass = client(&w);
    let keyed = |name: &str| NewJob { limit_key: Some("acme".into()), ..job_in(name) };
    w.put_all(vec![keyed("mail"), keyed("sms"), NewJob { tenant: tenant("shop"), ..keyed("mail") }]).await;
    let own = Scope::Tenant(tenant("default"));
    let until = w.now() + Millis::from_secs(60);
    assert_eq!(windlass.queues().within(&own).gates().hold_key("acme", until, "").await.unwrap(), 2);
    assert_eq!(w.claim(&["mail", "sms"], 5).await.jobs.len(), 0);
    assert_eq!(windlass.queues().gates().hold_key("acme", until, "").await.unwrap(), 3, "of every tenant");
    assert_eq!(windlass.queues().gates().release_key("acme").await.unwrap(), 3);
    assert_eq!(windlass.queues().gates().release_key("acme").await.unwrap(), 0);
    assert_eq!(w.claim(&["mail", "sms"], 5).await.jobs.len(), 2);
}
