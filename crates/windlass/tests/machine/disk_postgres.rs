//! Postgres on a full disk. Only the tables are on that disk: a server without room for its log stops altogether, which
//! is an unavailable server.

use crate::again::{fill, free, on_small_disk, task};
use crate::cluster::{Cluster, give_to_server};
use crate::jobs::{claim, count, is_applied, put, put_until_refused, succeed};
use windlass::low_level::stores::postgres::PostgresStore;
use windlass::low_level::stores::{Options, StoreError};

#[test]
fn a_full_disk_refuses_writes_loses_nothing_and_works_again_with_free_space() {
    on_small_disk("disk_postgres::works_on_a_small_disk", "24m");
}

/// Not a test by itself: what the process on the small disk does.
#[tokio::test]
async fn works_on_a_small_disk() {
    let Some(disk) = task() else { return };
    let cluster = Cluster::start("autovacuum = off", |_| {});
    let tables = disk.join("tables");
    std::fs::create_dir(&tables).unwrap();
    give_to_server(&tables);
    let (client, connection) = tokio_postgres::connect(&cluster.url(), tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute(&format!("CREATE TABLESPACE small LOCATION '{}'", tables.display())).await.unwrap();
    let url = format!("{}?options=-c%20default_tablespace%3Dsmall", cluster.url());
    let open = || PostgresStore::open(&url, Options::default());
    let store = open().await.unwrap();
    put(&*store, 100).await;
    let running = claim(&*store, 50).await;
    fill(&disk);
    let (taken, error) = put_until_refused(&*store).await;
    assert!(matches!(&error, StoreError::Unavailable(cause) if cause.to_string().contains("space")), "{error:?}");
    assert_eq!(count(&*store).await, 100 + taken, "reads still work, and see only what was acknowledged");
    let refused = succeed(&*store, &running).await;
    assert!(matches!(&refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    free(&disk);
    assert!(is_applied(&succeed(&*store, &running).await.unwrap()), "the outcomes that waited are accepted");
    put(&*store, 1).await;
    assert_eq!(claim(&*store, 10).await.len(), 10);
    drop(store);
    assert_eq!(count(&*open().await.unwrap()).await, 101 + taken);
}
