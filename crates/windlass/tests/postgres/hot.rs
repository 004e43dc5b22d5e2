//! Claims are heap-only updates: the statistics show it.

use crate::world::{World, job};
use windlass::low_level::stores::Atomicity;
use windlass::low_level::stores::JobLife;

const JOBS: usize = 2000;

#[tokio::test]
async fn a_claim_updates_no_index() {
    let w = World::new().await;
    w.store.enqueue(vec![job(); JOBS], Atomicity::Each).await.unwrap();
    for _ in 0..4 {
        assert_eq!(w.claim(JOBS as u32 / 4).await.len(), JOBS / 4);
    }
    // Statistics arrive late: each connection reports them when it has been idle for a moment.
    let updated = "SELECT n_tup_upd FROM pg_stat_user_tables WHERE schemaname = '{s}' AND relname = 'jobs'";
    let hot = "SELECT n_tup_hot_upd FROM pg_stat_user_tables WHERE schemaname = '{s}' AND relname = 'jobs'";
    let reported = async {
        while w.count(updated).await < JOBS as i64 {
            // Any statement of the same connections makes them report.
            w.claim(1).await;
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(30), reported).await.expect("statistics arrive");
    assert_eq!(w.count(updated).await, JOBS as i64);
    assert_eq!(w.count(hot).await, JOBS as i64, "every claim is a heap-only update");
    w.end().await;
}
