//! Migrations and statements.

use crate::world::{World, job, options, url};
use tokio_postgres::error::SqlState;
use windlass::low_level::stores::postgres::PostgresStore;
use windlass::low_level::stores::{Atomicity, JobLife, Migrations, Options, StoreError};

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
    let changed = format!("UPDATE {}.migrations SET checksum = 'other' WHERE number = 1", w.schema);
    w.client.batch_execute(&changed).await.unwrap();
    let error = PostgresStore::open(&url(), options(&w.schema)).await.unwrap_err();
    assert!(matches!(&error, StoreError::Schema(why) if why.contains("initial")), "{error}");
    w.end().await;
}

#[tokio::test]
async fn a_schema_of_an_unreleased_build_is_refused_with_what_to_do() {
    let w = World::new().await;
    let old = format!("UPDATE {}.migrations SET name = 'tables', min_reader = 4", w.schema);
    w.client.batch_execute(&old).await.unwrap();
    for migrations in [Migrations::Run, Migrations::LeaveToOperator] {
        let error = PostgresStore::open(&url(), Options { migrations, ..options(&w.schema) }).await.unwrap_err();
        assert!(matches!(&error, StoreError::Schema(why) if why.contains("drop the schema")), "{error}");
    }
    w.end().await;
}

#[tokio::test]
async fn rows_that_the_types_cannot_hold_are_refused() {
    let w = World::new().await;
    w.store.enqueue(vec![job()], Atomicity::Each).await.unwrap();
    for wrong in [
        "UPDATE {s}.jobs SET priority = 3",
        "UPDATE {s}.jobs SET timeout_ms = -1",
        "UPDATE {s}.waiting SET priority = 3",
        "UPDATE {s}.waiting SET attempt = -1",
        "UPDATE {s}.waiting SET crashes = -1",
        "INSERT INTO {s}.attempts (job_id, number) VALUES (1, 1)",
        "INSERT INTO {s}.attempts (job_id, number) VALUES (1, -1)",
        "INSERT INTO {s}.attempts (job_id, number, state, ended_at) VALUES (1, 0, 'ready', 0)",
        "INSERT INTO {s}.attempts (job_id, number, state, ended_at) VALUES (1, 0, 'failed', 0)",
        "INSERT INTO {s}.attempts (job_id, number, state) VALUES (1, 0, 'cancelled')",
        "INSERT INTO {s}.attempts (job_id, number, state, ended_at, discarded_at) VALUES (1, 0, 'cancelled', 0, 0)",
        "UPDATE {s}.queues SET executor = 'thread'",
        "UPDATE {s}.queues SET name = 'No Name'",
        "INSERT INTO {s}.settings (scope, tenant, name, node, value, origin, set_at, seen_at) VALUES ('world', '*', 'x', '', '{}', '', 0, 0)",
        "INSERT INTO {s}.tallies (span_ms, start, queue_id, kind) VALUES (7, 0, 1, 'email')",
        "INSERT INTO {s}.lease_ends (id, expires_at, length_ms) VALUES (1, 0, -1)",
    ] {
        let error = w.client.batch_execute(&wrong.replace("{s}", &w.schema)).await.unwrap_err();
        assert_eq!(error.code(), Some(&SqlState::CHECK_VIOLATION), "{wrong}: {error}");
    }
    w.end().await;
}

/// The views' columns, which are stable.
const VIEWS: [(&str, &str); 6] = [
    (
        "all_jobs",
        "id tenant queue executor kind payload priority state reason delivery retry attempt failures crashes replays \
         created_at due_at claimed_at finished_at start_by idempotency_key cancel_requested error_class error result \
         discarded_at discard_reason schedule_id parent_id",
    ),
    (
        "all_attempts",
        "job_id attempt retry label status started_at finished_at duration_ms error_class error note worker next_run_at \
         delay_ms why trace replay",
    ),
    (
        "dead_letters",
        "id tenant queue executor kind payload reason error_class error fingerprint attempt failures created_at finished_at",
    ),
    ("messages", "queue msg_id read_ct enqueued_at vt tenant kind message"),
    (
        "job_schedules",
        "job_id tenant schedule time_zone api kind type is_recurring max_retry_count is_paused next_execution_time \
         last_execution_time last_run_id created_at",
    ),
    (
        "job_executions",
        "job_id run_id attempt retry_count status execution_time duration_ms error_class error note next_execution_time \
         worker",
    ),
];

#[tokio::test]
async fn views_have_the_columns_that_are_promised() {
    let w = World::new().await;
    for (view, columns) in VIEWS {
        let found = w.client.prepare(&format!("SELECT * FROM {}.{view}", w.schema)).await.unwrap();
        let found: Vec<&str> = found.columns().iter().map(tokio_postgres::Column::name).collect();
        assert_eq!(found.join(" "), columns, "{view}");
    }
    w.end().await;
}

#[cfg(feature = "sqlite")]
#[tokio::test]
async fn the_views_of_sqlite_have_the_same_columns() {
    use windlass::low_level::stores::sqlite::SqliteStore;

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("jobs.db");
    let path = path.to_str().unwrap();
    drop(SqliteStore::open(path, options("unused")).await.unwrap());
    let database = rusqlite::Connection::open(path).unwrap();
    for (view, columns) in VIEWS {
        let statement = database.prepare(&format!("SELECT * FROM windlass_{view}")).unwrap();
        let found: Vec<&str> = statement.column_names().collect();
        assert_eq!(found.join(" "), columns, "{view}");
    }
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
async fn an_invalid_schema_name_is_refused() {
    for name in ["", "Upper", "a-b", "x\"; DROP TABLE y; --", "1st"] {
        let error = PostgresStore::open(&url(), options(name)).await.unwrap_err();
        assert!(matches!(error, StoreError::Invalid(_)), "{error}");
    }
}
