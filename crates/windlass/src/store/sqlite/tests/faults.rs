//! Full disks, locks, read-only files.

use super::*;
use crate::store::JobLife;
use crate::store::Registry;

#[tokio::test]
async fn a_full_disk_refuses_writes_loses_nothing_and_works_again_with_free_space() {
    let home = Home::new();
    let store = home.open().await;
    put(&store).await;
    let big = NewJob { payload: format!("{:?}", "x".repeat(200_000)).into(), ..job() };
    let limit_pages = |tx: &mut super::super::connection::tx::Tx<'_>| {
        let pages: i64 = tx.conn.pragma_query_value(None, "page_count", |row| row.get(0))?;
        tx.conn.pragma_update(None, "max_page_count", pages + 10)?;
        Ok(())
    };
    store.write(limit_pages).await.unwrap();
    let refused = store.enqueue(vec![job(), big.clone()], Atomicity::Each).await;
    let Err(StoreError::Unavailable(cause)) = refused else { panic!("{refused:?}") };
    assert!(cause.to_string().contains("disk is full"), "{cause}");
    assert_eq!(count(&store).await, 1, "nothing of the batch was stored");
    // The writer opened the file again, without the limit: there is room again.
    store.enqueue(vec![job(), big], Atomicity::Each).await.unwrap();
    assert_eq!(count(&store).await, 3);
}

#[tokio::test]
async fn a_read_only_file_refuses_writes_and_works_again_once_writable() {
    let home = Home::new();
    let store = home.open().await;
    put(&store).await;
    store.write(|tx| Ok(tx.conn.pragma_update(None, "query_only", true)?)).await.unwrap();
    let refused = store.enqueue(vec![job()], Atomicity::Each).await;
    let Err(StoreError::Unavailable(cause)) = refused else { panic!("{refused:?}") };
    assert!(cause.to_string().contains("read-only"), "{cause}");
    assert_eq!(count(&store).await, 1, "reads still work");
    put(&store).await;
}

#[tokio::test]
async fn a_lock_held_too_long_is_unavailable_and_a_freed_one_is_taken() {
    let home = Home::new();
    let store = home.open().await;
    let other = home.connect();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let refused = store.enqueue(vec![job()], Atomicity::Each).await;
    let Err(StoreError::Unavailable(cause)) = refused else { panic!("{refused:?}") };
    assert!(cause.to_string().contains("locked"), "{cause}");
    other.execute_batch("COMMIT").unwrap();
    put(&store).await;
    assert_eq!(count(&store).await, 1);
}

#[tokio::test]
async fn a_reap_that_waited_for_the_file_spares_leases_that_could_not_be_renewed() {
    let home = Home::new();
    let store = home.open().await;
    put(&store).await;
    claim(&store, 1).await;
    home.clock.advance(Millis::from_secs(31));
    let other = home.connect();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let reap = || Reap::Expired { spared: Spared::none() };
    let waiting = tokio::spawn({
        let store = store.clone();
        async move { store.reap(reap(), 10).await }
    });
    tokio::task::yield_now().await;
    home.clock.advance(Millis::from_secs(16));
    other.execute_batch("COMMIT").unwrap();
    assert!(waiting.await.unwrap().unwrap().is_empty(), "no worker could renew while the file was locked");
    assert_eq!(store.reap(reap(), 10).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_file_that_is_not_a_database_is_refused() {
    let home = Home::new();
    std::fs::write(home.path(), "not a database, but long enough to be looked at ".repeat(40)).unwrap();
    let refused = home.try_open(Migrations::Run).await;
    assert!(matches!(refused, Err(StoreError::Corrupt { .. })), "{refused:?}");
}

#[tokio::test]
async fn a_missing_directory_is_named_in_the_error() {
    let refused = SqliteStore::open("/nowhere/at/all/jobs.db", Options::default()).await;
    let Err(StoreError::Unavailable(cause)) = refused else { panic!("{refused:?}") };
    assert!(cause.to_string().contains("/nowhere/at/all/jobs.db"), "{cause}");
}

#[tokio::test]
async fn a_large_claim_that_cannot_be_read_is_unknown_and_can_be_queried() {
    let home = Home::new();
    let store = home.open().await;
    let stored = store.enqueue(vec![job(); 100], Atomicity::Each).await.unwrap();
    let ids: Vec<JobId> = stored.iter().filter_map(Enqueued::id).collect();
    let lease = LeaseId::draw(&store.random);
    let request = Claim {
        worker: WorkerId::new("w1"),
        leases: Leases::Shared(lease),
        lease_for: Millis::from_secs(30),
        shares: vec![Share { queue: store.queues().await.unwrap()[0].id, slots: 100, ahead: 0 }],
        limit: 100,
        suspects: 1,
        kinds: None,
    };
    // The writer has the file open; it cannot be opened again.
    let away = home.dir.path().join("away.db");
    std::fs::rename(store.path(), &away).unwrap();
    let claimed = store.claim(request).await;
    assert!(matches!(claimed, Err(StoreError::Unknown(_))), "{claimed:?}");
    std::fs::rename(&away, store.path()).unwrap();
    let held: Vec<JobId> = store.held(vec![lease]).await.unwrap().iter().map(|job| job.id).collect();
    assert_eq!(held, ids);
}
