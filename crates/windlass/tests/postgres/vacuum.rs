//! Rows that were deleted can be cleaned up while nodes run. A transaction that stays open with a snapshot would keep
//! all of them, in every table of the database.

use crate::world::{World, url};
use windlass::low_level::stores::{Registry as _, WorkerId};

#[tokio::test]
async fn the_lock_on_a_workers_name_holds_no_snapshot() {
    for isolation in ["read%5C%20committed", "repeatable%5C%20read"] {
        let name = format!("vacuum_{}_{}", std::process::id(), isolation.len());
        let w = World::at(&format!(
            "{}?application_name={name}&options=-c%20default_transaction_isolation%3D{isolation}",
            url()
        ))
        .await;
        let lock = w.store.lock_worker(&WorkerId("w1".into())).await.unwrap();
        assert!(lock.is_some());
        let of_the_store = format!("SELECT count(*) FROM pg_stat_activity WHERE application_name = '{name}'");
        let open = format!("{of_the_store} AND state = 'idle in transaction'");
        assert_eq!(w.count(&open).await, 1, "the lock lasts as long as its transaction");
        assert_eq!(w.count(&format!("{open} AND backend_xmin IS NOT NULL")).await, 0, "{isolation}");
        drop(lock);
        w.end().await;
    }
}
