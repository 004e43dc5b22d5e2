//! Migrations and statements.

use crate::world::{World, options, url};
use windlass::store::postgres::PostgresStore;
use windlass::store::{Migrations, Options, StoreError};

#[tokio::test]
async fn every_statement_can_be_prepared() {
    let w = World::new().await;
    let count = w.store.check_statements().await.unwrap();
    assert!(count > 50, "{count}");
    w.end().await;
}

#[tokio::test]
async fn a_schema_that_needs_a_newer_program_is_refused() {
    let w = World::new().await;
    let newer = format!("UPDATE {}.migrations SET min_reader = 999 WHERE number = 1", w.schema);
    w.client.batch_execute(&newer).await.unwrap();
    let error = PostgresStore::open(&url(), options(&w.schema)).await.unwrap_err();
    assert!(matches!(&error, StoreError::Schema(why) if why.contains("999")), "{error}");
    w.end().await;
}

#[tokio::test]
async fn a_changed_migration_is_refused() {
    let w = World::new().await;
    let changed = format!("UPDATE {}.migrations SET checksum = 'other' WHERE number = 2", w.schema);
    w.client.batch_execute(&changed).await.unwrap();
    let error = PostgresStore::open(&url(), options(&w.schema)).await.unwrap_err();
    assert!(matches!(&error, StoreError::Schema(why) if why.contains("views")), "{error}");
    w.end().await;
}

#[tokio::test]
async fn an_empty_schema_left_to_the_operator_is_refused_with_what_to_do() {
    let options = Options { migrations: Migrations::LeaveToOperator, ..options("test_not_there") };
    let error = PostgresStore::open(&url(), options).await.unwrap_err();
    assert!(matches!(&error, StoreError::Schema(why) if why.contains("windlass migrate")), "{error}");
}

#[tokio::test]
async fn nodes_that_start_together_migrate_once() {
    let w = World::new().await;
    let other = format!("{}_b", w.schema);
    let open = || async { PostgresStore::open(&url(), options(&other)).await.map(drop) };
    let opened = futures_util::future::join_all((0..4).map(|_| open())).await;
    assert!(opened.iter().all(Result::is_ok), "{opened:?}");
    w.client.batch_execute(&format!("DROP SCHEMA {other} CASCADE")).await.unwrap();
    w.end().await;
}

#[tokio::test]
async fn a_name_that_is_no_name_is_refused() {
    for name in ["", "Upper", "a-b", "x\"; DROP TABLE y; --", "1st"] {
        let error = PostgresStore::open(&url(), options(name)).await.unwrap_err();
        assert!(matches!(error, StoreError::Invalid(_)), "{error}");
    }
}
