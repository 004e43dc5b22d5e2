//! SQLite on a full disk.

use crate::again::{fill, free, on_small_disk, task};
use crate::jobs::{claim, count, is_applied, put, put_until_refused, succeed};
use windlass::low_level::stores::Registry;
use windlass::low_level::stores::sqlite::SqliteStore;
use windlass::low_level::stores::{Options, StoreError};

#[test]
fn a_full_disk_refuses_writes_loses_nothing_and_works_again_with_free_space() {
    on_small_disk("disk_sqlite::works_on_a_small_disk", "6m");
}

/// Not a test by itself: what the process on the small disk does.
#[tokio::test]
async fn works_on_a_small_disk() {
    let Some(disk) = task() else { return };
    let path = disk.join("jobs.db");
    let open = || SqliteStore::open(path.to_str().unwrap(), Options::default());
    let store = open().await.unwrap();
    put(&*store, 100).await;
    let running = claim(&*store, 50).await;
    fill(&disk);
    let (taken, error) = put_until_refused(&*store).await;
    assert!(matches!(&error, StoreError::Unavailable(cause) if cause.to_string().contains("full")), "{error:?}");
    assert_eq!(count(&*store).await, 100 + taken, "reads still work, and see only what was acknowledged");
    let refused = succeed(&*store, &running).await;
    assert!(matches!(&refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    let health = store.health().await;
    assert!(matches!(health, Err(StoreError::Unavailable(_))), "{health:?}");
    free(&disk);
    assert!(is_applied(&succeed(&*store, &running).await.unwrap()), "the outcomes that waited are accepted");
    put(&*store, 1).await;
    assert_eq!(claim(&*store, 10).await.len(), 10);
    drop(store);
    assert_eq!(count(&*open().await.unwrap()).await, 101 + taken);
    let conn = rusqlite::Connection::open(&path).unwrap();
    let sound: String = conn.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(sound, "ok");
}
