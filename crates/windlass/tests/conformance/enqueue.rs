use super::world;
use crate::world::*;
use windlass::core::job::{Kind, QueueName};
use windlass::core::{Delivery, Executor, JobId, Millis, Priority, State};
use windlass::low_level::job::{HttpCall, NewJob, RunAt};
use windlass::low_level::stores::{Atomicity, Enqueued, Scope};

#[tokio::test]
async fn what_was_stored_is_there_for_another_process() {
    let w = world().await;
    let id = w.put(job()).await;
    let other = w.reopened().await;
    let found = other.job(&Scope::All, id).await.unwrap().unwrap();
    assert_eq!(&*found.payload, r#"{"to":"ann"}"#);
}

#[tokio::test]
async fn every_field_of_a_job_reads_back() {
    let w = world().await;
    let call = HttpCall {
        method: "PUT".into(),
        url: "https://example.com/x".into(),
        headers: vec![("x-a".into(), "1".into()), ("x-a".into(), "2".into())],
        secret: None,
        webhook_id: None,
    };
    let new = NewJob {
        tenant: tenant("acme"),
        queue: QueueName::new("calls").unwrap(),
        executor: Executor::Http,
        priority: Priority::High,
        run_at: RunAt::After(Millis::new(1500)),
        start_by: Some(START + Millis::from_secs(60)),
        delivery: Delivery::AtMostOnce,
        timeout: Some(Millis::from_secs(9)),
        http: Some(call.clone().into()),
        parent: Some(JobId(4711)),
        traceparent: Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".into()),
        limit_key: Some("customer 7".into()),
        ..NewJob::new(Kind::new("Call:Out").unwrap(), r#"{ "b" : 1, "a":2 }"#, line("stepped"))
    };
    let id = w.put(new.clone()).await;
    let found = w.get(id).await;
    assert_eq!((found.state, found.attempt, found.failures), (State::Queued, 0, 0));
    assert_eq!((found.tenant, found.queue, found.executor), (new.tenant, new.queue, new.executor));
    assert_eq!((found.kind, found.priority, found.delivery), (new.kind, new.priority, new.delivery));
    assert_eq!(&*found.payload, r#"{ "b" : 1, "a":2 }"#, "payloads keep their bytes");
    assert_eq!((found.created_at, found.due_at), (START, START + Millis::new(1500)));
    assert_eq!((found.start_by, found.timeout, found.parent), (new.start_by, new.timeout, new.parent));
    assert_eq!(found.http.as_deref(), Some(&call));
    assert_eq!((found.policy, found.traceparent), (new.policy, new.traceparent));
    assert_eq!(found.limit_key, new.limit_key);
}

#[tokio::test]
async fn jobs_of_a_batch_keep_their_traces() {
    const A: Option<&str> = Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
    const B: Option<&str> = Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203332-00");
    let w = world().await;
    for traces in [[A, A], [A, B], [A, None], [None, None]] {
        let jobs = traces.map(|trace| NewJob { traceparent: trace.map(Into::into), ..job() });
        let ids = w.put_all(jobs.to_vec()).await;
        for (id, trace) in ids.into_iter().zip(traces) {
            assert_eq!(w.get(id).await.traceparent.as_deref(), trace);
        }
    }
}

#[tokio::test]
async fn a_policy_may_be_long() {
    let w = world().await;
    let classes: Vec<String> = (0..100).map(|n| format!("C{:060x}", (n as u128 + 7) * 0x9e37_79b9_7f4a_7c15)).collect();
    let policy = line(&format!("fixed:giveUpOn={}", classes.join("|")));
    let id = w.put(NewJob { policy: policy.clone(), ..job() }).await;
    assert_eq!(w.get(id).await.policy, policy);
    let again = w.put(NewJob { policy: policy.clone(), ..job() }).await;
    assert_eq!(w.get(again).await.policy, policy);
}

#[tokio::test]
async fn ids_grow_in_the_order_of_a_batch() {
    let w = world().await;
    let stored = w.put_all((0..50).map(|_| job()).collect()).await;
    assert!(stored.is_sorted());
    assert_eq!(stored.len(), 50);
}

#[tokio::test]
async fn unusual_text_reads_back_unchanged() {
    let w = world().await;
    let payloads = [r#""\u0000""#, r#""\ud83d\ude00""#, "\"\u{1F600}'; drop table jobs; --\"", "1e400", "[[[[null]]]]"];
    for payload in payloads {
        let id = w.put(NewJob { payload: payload.into(), ..job() }).await;
        assert_eq!(&*w.get(id).await.payload, payload);
    }
}

#[tokio::test]
async fn concurrent_callers_each_get_their_own_job() {
    let w = world().await;
    let calls = (0..64).map(|i| {
        let store = w.store.clone();
        tokio::spawn(async move {
            let new = NewJob { payload: format!("{i}").into(), ..job() };
            store.enqueue(vec![new], Atomicity::Each).await.unwrap().remove(0).id().unwrap()
        })
    });
    let mut ids = Vec::new();
    for (i, call) in calls.collect::<Vec<_>>().into_iter().enumerate() {
        let id = call.await.unwrap();
        assert_eq!(&*w.get(id).await.payload, &i.to_string());
        ids.push(id);
    }
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 64);
}

#[tokio::test]
async fn an_empty_batch_stores_nothing() {
    let w = world().await;
    assert_eq!(w.store.enqueue(vec![], Atomicity::All).await.unwrap(), Vec::<Enqueued>::new());
}
