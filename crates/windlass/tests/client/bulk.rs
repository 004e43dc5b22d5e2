//! Actions by filter: counted first, made in batches, recorded.

use super::world;
use crate::world::{World, job_in};
use crate::{client, queue};
use windlass::State;
use windlass::client::{Count, JobFilter};

/// A world with `count` jobs in each of two queues, and the filter of one of them.
async fn filled(count: usize) -> (World, JobFilter) {
    let w = world().await;
    for name in ["mail", "other"] {
        w.put_all((0..count).map(|_| job_in(name)).collect()).await;
    }
    (w, JobFilter { queue: Some(queue("mail")), states: vec![State::Queued], ..JobFilter::default() })
}

#[tokio::test]
async fn a_count_is_exact_up_to_its_cap() {
    let (w, filter) = filled(600).await;
    let windlass = client(&w);
    let count = async |cap| windlass.jobs().count(&filter, cap).await.unwrap();
    assert_eq!(count(600).await, Count { count: 600, is_exact: true });
    assert_eq!(count(599).await, Count { count: 599, is_exact: false });
}

#[tokio::test]
async fn a_cancel_by_filter_leaves_the_others_and_is_recorded() {
    let (w, filter) = filled(2100).await;
    let windlass = client(&w);
    let jobs = windlass.jobs().by("ann");
    let mut done = Vec::new();
    let mut cursor = None;
    loop {
        let page = jobs.cancel_matching(&filter, "queue=mail", cursor).await.unwrap();
        done.push(page.done);
        if done.len() == 1 {
            // A job of later is not part of it.
            windlass.enqueue_kind("email", &serde_json::json!({})).queue("mail").await.unwrap();
        }
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(done, [2000, 100]);
    assert_eq!(jobs.count(&filter, 10).await.unwrap().count, 1);
    let audit = windlass.audit().latest(10).await.unwrap();
    let entries: Vec<_> = audit.iter().map(|e| (e.by.as_str(), e.action.as_str(), e.count, e.detail.as_str())).collect();
    assert_eq!(entries, [("ann", "cancel", 100, "queue=mail"), ("ann", "cancel", 2000, "queue=mail")]);
}

#[tokio::test]
async fn a_replay_by_filter_sends_all_again() {
    let (w, filter) = filled(3).await;
    let windlass = client(&w);
    windlass.jobs().cancel_matching(&filter, "queue=mail", None).await.unwrap();
    let cancelled = JobFilter { states: vec![State::Cancelled], ..filter.clone() };
    let page = windlass.jobs().by("ann").replay_matching(&cancelled, "all that were cancelled", None).await.unwrap();
    assert_eq!((page.done, page.skipped, page.next), (3, 0, None));
    assert_eq!(windlass.jobs().count(&filter, 10).await.unwrap().count, 3);
    assert_eq!(windlass.audit().latest(1).await.unwrap()[0].detail, "all that were cancelled");
}
