//! Jobs: looked at, cancelled, replayed and amended within a scope.

use super::world;
use crate::client;
use crate::world::{job, tenant};
use windlass::core::{Millis, Priority};
use windlass::low_level::job::{Idempotency, KeyWindow, NewJob};
use windlass::client::{Amend, Amended, Cancelled, JobFilter, Page, Replayed, Scope};
use windlass::{JobId, State};

#[tokio::test]
async fn jobs_outside_the_scope_do_not_exist() {
    let w = world().await;
    let windlass = client(&w);
    let mine = w.put(job()).await;
    let theirs = w.put(NewJob { tenant: tenant("shop"), ..job() }).await;
    let shop = windlass.jobs().within(&Scope::Tenant(tenant("shop")));
    assert!(shop.get(mine).await.unwrap().is_none());
    assert_eq!(shop.list(&JobFilter::default(), Page::newest(9)).await.unwrap()[0].id, theirs);
    assert_eq!(shop.cancel_many(vec![mine, theirs]).await.unwrap(), [Cancelled::NotFound, Cancelled::Now]);
    assert_eq!(shop.replay(mine).await.unwrap(), Replayed::NotFound);
    assert_eq!(shop.amend(mine, Amend::default()).await.unwrap(), Amended::NotFound);
    assert_eq!(shop.get_many(&[mine, theirs]).await.unwrap().len(), 1);
    assert_eq!(windlass.jobs().get(mine).await.unwrap().unwrap().state, State::Queued);
}

#[tokio::test]
async fn jobs_are_listed_in_the_requested_order() {
    let w = world().await;
    let windlass = client(&w);
    let ids = w.put_all(vec![job(), job(), job()]).await;
    let asked = [ids[2], JobId(999), ids[0]];
    let found = windlass.jobs().get_many(&asked).await.unwrap();
    assert_eq!(found.iter().map(|job| job.id).collect::<Vec<_>>(), [ids[2], ids[0]]);
}

#[tokio::test]
async fn a_waiting_job_is_amended_and_a_finished_one_replayed() {
    let w = world().await;
    let windlass = client(&w);
    let id = w.put(job()).await;
    let run_at = w.now() + Millis::from_secs(60);
    let change = Amend { priority: Some(Priority::High), run_at: Some(run_at) };
    assert_eq!(windlass.jobs().amend(id, change).await.unwrap(), Amended::Done);
    let amended = windlass.jobs().get(id).await.unwrap().unwrap();
    assert_eq!((amended.priority, amended.due_at), (Priority::High, run_at));
    w.advance(Millis::from_secs(60));
    let claimed = w.claim_one().await;
    w.succeed(&claimed).await;
    assert_eq!(windlass.jobs().amend(id, change).await.unwrap(), Amended::NotWaiting(State::Succeeded));
    assert_eq!(windlass.jobs().by("ann").replay(id).await.unwrap(), Replayed::Queued);
    assert_eq!(windlass.jobs().history(id).await.unwrap().len(), 1);
    let line = &windlass.audit().latest(1).await.unwrap()[0];
    assert_eq!((line.by.as_str(), line.action.as_str(), line.detail.as_str()), ("ann", "replay", &*format!("job {id}")));
}

#[tokio::test]
async fn jobs_are_found_by_id_key_error_and_payload() {
    let w = world().await;
    let windlass = client(&w);
    w.put(job()).await;
    let failing = w.fail_for_good("the disk is Full").await;
    let key = Idempotency { key: "order-7".into(), window: KeyWindow::Live };
    let keyed = w.put(NewJob { idempotency: Some(key), ..job() }).await;
    let paid = w.put(NewJob { payload: r#"{"to":"Ann@example.org"}"#.into(), ..job() }).await;
    let other = w.put(NewJob { tenant: tenant("shop"), limit_key: Some("account-9".into()), ..job() }).await;
    let jobs = windlass.jobs();
    let found = async |text: &str| {
        let found = jobs.search(text, &JobFilter::default(), 10).await.unwrap();
        assert!(found.is_complete && found.searched == 4, "{found:?}");
        found.jobs.iter().map(|job| job.id).collect::<Vec<_>>()
    };
    assert_eq!(found("disk is full").await, [failing]);
    assert_eq!(found("ORDER-7").await, [keyed]);
    assert_eq!(found("ann@").await, [paid]);
    assert_eq!(found("Account-9").await, [other]);
    assert_eq!(found(&other.to_string()).await, [other]);
    assert_eq!(found("nowhere").await, []);
    // A limit cuts the list, and the answer says so.
    let cut = jobs.search("", &JobFilter::default(), 2).await.unwrap();
    assert_eq!((cut.jobs.len(), cut.is_complete), (2, false));
    let shop = windlass.jobs().within(&Scope::Tenant(tenant("shop")));
    assert_eq!(shop.search("", &JobFilter::default(), 10).await.unwrap().jobs.len(), 1);
    assert_eq!(shop.search(&keyed.to_string(), &JobFilter::default(), 10).await.unwrap().jobs.len(), 0);
}
