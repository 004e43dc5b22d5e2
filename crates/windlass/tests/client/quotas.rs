//! Quotas of tenants.

use super::world;
use crate::client;
use windlass::core::job::Tenant;
use windlass::core::quota::Quotas;
use windlass::low_level::stores::{JobFilter, Order, Page, Scope};

/// Callers at the same moment, when nobody has read yet how many jobs wait.
const CALLERS: u64 = 12;
const QUOTA: u64 = 30;

#[tokio::test]
async fn callers_at_the_same_moment_share_the_room_for_waiting_jobs() {
    let w = world().await;
    let windlass = client(&w);
    let acme = Tenant::new("Acme").unwrap();
    let quotas = Quotas { waiting: Some(QUOTA), ..Quotas::default() };
    windlass.tenants().set_quotas(&acme, Some(quotas)).await.unwrap();
    let store = async |times: u64| {
        for _ in 0..times {
            let _ = windlass.enqueue_kind("email", &serde_json::json!({})).tenant("Acme").await;
        }
    };
    let stored = async || {
        let page = Page { after: None, limit: 1000, order: Order::OldestFirst };
        w.store.jobs(&Scope::All, &JobFilter::default(), page).await.unwrap().len() as u64
    };
    for _ in 0..3 {
        futures_util::future::join_all((0..CALLERS).map(|_| store(10))).await;
        assert!(stored().await <= QUOTA, "{} jobs wait", stored().await);
        // What is known of the store is too old now, so it is read again, by all of them.
        w.advance(windlass::core::Millis::from_secs(5));
    }
    store(2 * QUOTA).await;
    assert_eq!(stored().await, QUOTA, "a caller alone gets all the room that is left");
}
