//! Actions by filter: counted first, made in batches, recorded.

use super::world;
use crate::world::{World, job_in};
use crate::{client, queue};
use windlass::client::{Count, JobFilter, Page};
use windlass::{JobId, Outcome, Priority, State};

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
        done.push(page.changed.len());
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
    assert_eq!((page.changed.len(), page.skipped, page.next), (3, 0, None));
    assert_eq!(windlass.jobs().count(&filter, 10).await.unwrap().count, 3);
    assert_eq!(windlass.audit().latest(1).await.unwrap()[0].detail, "all that were cancelled");
}

#[tokio::test]
async fn a_priority_by_filter_changes_waiting_jobs_and_is_recorded() {
    let (w, filter) = filled(40).await;
    let windlass = client(&w);
    let running = w.claim(&["mail"], 1).await.jobs.remove(0).id;
    let every = JobFilter { states: Vec::new(), ..filter };
    let page = windlass.jobs().by("ann").prioritize_matching(&every, Priority::High, "queue=mail", None).await.unwrap();
    assert_eq!((page.changed.len(), page.skipped, page.next), (39, 1, None));
    for job in windlass.jobs().list(&JobFilter::default(), Page::oldest(100)).await.unwrap() {
        let is_changed = job.queue == queue("mail") && job.id != running;
        assert_eq!(job.priority, if is_changed { Priority::High } else { Priority::Normal }, "{}", job.id);
    }
    let audit = windlass.audit().latest(1).await.unwrap().remove(0);
    assert_eq!((audit.action.as_str(), audit.count, audit.detail.as_str()), ("change priority", 39, "queue=mail"));
}

/// Of two discards of the same cause, one is undone.
#[tokio::test]
async fn an_undo_sends_exactly_the_jobs_again_that_are_still_as_the_action_left_them() {
    let w = world().await;
    let windlass = client(&w);
    let dead = async |count: usize| {
        let mut ids: Vec<JobId> = Vec::new();
        for _ in 0..count {
            w.put(crate::world::job()).await;
            ids.push(w.fail_for_good("broken").await);
        }
        ids
    };
    let (first, letters) = (dead(2).await, windlass.dead_letters());
    assert_eq!(letters.discard(JobFilter::default(), "old").await.unwrap().ids, first);
    let second = dead(3).await;
    let page = letters.discard(JobFilter::default(), "new").await.unwrap();
    assert_eq!((page.ids.clone(), page.done, page.more), (second.clone(), 3, false));
    // One was replayed by hand meanwhile, and has succeeded.
    windlass.jobs().replay(second[0]).await.unwrap();
    let job = w.claim_one().await;
    w.commit(&job, Outcome::Succeeded).await;
    let undone = windlass.jobs().by("ann").undo_end(&page.ids, "undo of: discard").await.unwrap();
    assert_eq!((undone.changed, undone.skipped), (second[1..].to_vec(), 1));
    for (id, state) in [(first[0], State::Failed), (second[0], State::Succeeded), (second[1], State::Queued)] {
        assert_eq!(w.get(id).await.state, state, "{id}");
    }
    assert_eq!(windlass.audit().latest(1).await.unwrap()[0].detail, "undo of: discard");
    // Nothing is left of it.
    assert!(windlass.jobs().undo_end(&page.ids, "again").await.unwrap().changed.is_empty());
}
