//! Migrations: left to the operator, refused when they do not fit, applied whole or not at all.

use super::super::connection::migrate::{Migration, SCHEMA, Schema};
use super::*;

#[tokio::test]
async fn a_newer_schema_is_refused_only_if_marked_incompatible() {
    let home = Home::new();
    drop(home.open().await);
    let conn = home.connect();
    conn.execute("INSERT INTO windlass_migrations VALUES (900, 'later', 'x', 1, 0)", []).unwrap();
    drop(home.open().await);
    conn.execute("UPDATE windlass_migrations SET min_reader = 900 WHERE number = 900", []).unwrap();
    for migrations in [Migrations::Run, Migrations::LeaveToOperator] {
        let refused = home.try_open(migrations).await;
        let Err(StoreError::Schema(message)) = refused else { panic!("{refused:?}") };
        assert!(message.contains("schema 900"), "{message}");
    }
}

#[tokio::test]
async fn migrations_are_left_to_the_operator_if_configured() {
    let home = Home::new();
    let refused = home.try_open(Migrations::LeaveToOperator).await;
    let Err(StoreError::Schema(message)) = refused else { panic!("{refused:?}") };
    assert!(message.contains("windlass migrate"), "{message}");
    let store = home.open().await;
    store.migrate().await.unwrap();
    drop(home.try_open(Migrations::LeaveToOperator).await.unwrap());
}

#[tokio::test]
async fn a_changed_migration_is_refused() {
    let home = Home::new();
    drop(home.open().await);
    home.connect().execute("UPDATE windlass_migrations SET checksum = 'other' WHERE number = 1", []).unwrap();
    let refused = home.try_open(Migrations::Run).await;
    assert!(matches!(refused, Err(StoreError::Schema(_))), "{refused:?}");
}

#[tokio::test]
async fn a_file_of_an_unreleased_build_is_refused_and_left_as_it_is() {
    let home = Home::new();
    let conn = home.connect();
    conn.execute_batch(
        "CREATE TABLE windlass_migrations (
            number INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL, min_reader INTEGER NOT NULL,
            applied_at INTEGER NOT NULL) STRICT;
         INSERT INTO windlass_migrations VALUES (1, 'tables', 'a', 1, 0), (2, 'views', 'b', 1, 0),
            (3, 'plain_successes', 'c', 3, 0), (4, 'running', 'd', 4, 0);
         CREATE TABLE windlass_jobs (id INTEGER PRIMARY KEY);",
    )
    .unwrap();
    for migrations in [Migrations::Run, Migrations::LeaveToOperator] {
        let refused = home.try_open(migrations).await;
        let Err(StoreError::Schema(message)) = refused else { panic!("{refused:?}") };
        assert!(message.contains("made by an unreleased build"), "{message}");
        assert!(message.contains("cannot be upgraded"), "{message}");
    }
    let tables: i64 =
        conn.query_row("SELECT count(*) FROM sqlite_schema WHERE type = 'table'", [], |row| row.get(0)).unwrap();
    assert_eq!(tables, 2);
}

/// The schema of a later Windlass that adds a column, which older code may ignore.
const LATER: Schema = Schema(&[
    Migration {
        number: SCHEMA.0[0].number,
        name: SCHEMA.0[0].name,
        text: SCHEMA.0[0].text,
        min_reader: SCHEMA.0[0].min_reader,
    },
    Migration { number: 2, name: "note", text: "ALTER TABLE windlass_jobs ADD COLUMN note TEXT", min_reader: 1 },
]);

/// One that older code cannot work with.
const BREAKING: Schema = Schema(&[
    Migration {
        number: SCHEMA.0[0].number,
        name: SCHEMA.0[0].name,
        text: SCHEMA.0[0].text,
        min_reader: SCHEMA.0[0].min_reader,
    },
    Migration {
        number: 2,
        name: "gone",
        text: "ALTER TABLE windlass_tokens RENAME TO windlass_secrets",
        min_reader: 2,
    },
]);

/// One whose second step fails half way.
const FAILING: Schema = Schema(&[
    Migration {
        number: SCHEMA.0[0].number,
        name: SCHEMA.0[0].name,
        text: SCHEMA.0[0].text,
        min_reader: SCHEMA.0[0].min_reader,
    },
    Migration {
        number: 2,
        name: "half",
        text: "ALTER TABLE windlass_jobs ADD COLUMN note TEXT; DROP TABLE nothing",
        min_reader: 1,
    },
]);

#[tokio::test]
async fn waiting_and_running_jobs_continue_after_an_upgrade() {
    let home = Home::new();
    let store = home.open().await;
    let ids = [put(&store).await, put(&store).await];
    let running = claim(&store, 1).await;
    drop(store);
    LATER.migrate(&home.connect(), home.clock.now()).unwrap();
    LATER.migrate(&home.connect(), home.clock.now()).unwrap();
    LATER.verify(&home.connect()).unwrap();
    let store = home.open().await;
    let mut states = Vec::new();
    for id in ids {
        states.push(store.job(&Scope::All, id).await.unwrap().unwrap().state);
    }
    assert_eq!(states, [State::Running, State::Queued]);
    let done = store.commit(vec![success(&store, &running[0])], vec![running[0].lease]).await.unwrap();
    assert!(matches!(done[0], Committed::Applied(_)), "{done:?}");
    assert_eq!(claim(&store, 10).await.iter().map(|job| (job.id, job.attempt)).collect::<Vec<_>>(), [(ids[1], 1)]);
}

#[tokio::test]
async fn older_code_refuses_an_incompatible_upgrade() {
    let home = Home::new();
    drop(home.open().await);
    let refused = BREAKING.verify(&home.connect());
    let Err(StoreError::Schema(message)) = refused else { panic!("{refused:?}") };
    assert!(message.contains("windlass migrate"), "{message}");
    BREAKING.migrate(&home.connect(), home.clock.now()).unwrap();
    BREAKING.verify(&home.connect()).unwrap();
    let refused = home.try_open(Migrations::Run).await;
    let Err(StoreError::Schema(message)) = refused else { panic!("{refused:?}") };
    assert!(message.contains("schema 2 or newer"), "{message}");
}

#[tokio::test]
async fn an_upgrade_that_fails_changes_nothing() {
    let home = Home::new();
    drop(home.open().await);
    assert!(FAILING.migrate(&home.connect(), home.clock.now()).is_err());
    assert!(home.connect().prepare("SELECT note FROM windlass_jobs").is_err());
    let store = home.open().await;
    put(&store).await;
}

#[tokio::test]
async fn the_tables_refuse_what_the_types_exclude() {
    let home = Home::new();
    let store = home.open().await;
    put(&store).await;
    put(&store).await;
    let jobs = claim(&store, 1).await;
    store.commit(vec![success(&store, &jobs[0])], vec![jobs[0].lease]).await.unwrap();
    let conn = home.connect();
    for change in [
        "UPDATE windlass_live SET is_retrying = 2",
        "UPDATE windlass_jobs SET priority = 3",
        "UPDATE windlass_jobs SET at_most_once = 2",
        "UPDATE windlass_live SET cancel_requested = -1",
        "UPDATE windlass_live SET attempt = -1",
        "UPDATE windlass_live SET crashes = -1",
        "UPDATE windlass_outcomes SET state = 'queued'",
        "UPDATE windlass_outcomes SET state = 'failed'",
        "UPDATE windlass_outcomes SET reason = 'exhausted'",
        "UPDATE windlass_outcomes SET failures = -1",
        "UPDATE windlass_outcomes SET discarded_at = 1",
        "UPDATE windlass_outcomes SET last_worker = 'w1'",
        "UPDATE windlass_live SET lease_id = 7",
        "INSERT INTO windlass_live (id, due_at) VALUES (9, 0)",
        "UPDATE windlass_queues SET executor = 'other'",
        "UPDATE windlass_queues SET paused = 2",
        "INSERT INTO windlass_settings VALUES ('other', '*', 'x', '', '{}', '', 0, 0)",
    ] {
        let refused = conn.execute(change, []);
        assert!(
            refused.as_ref().is_err_and(|error| error.to_string().contains("constraint failed")),
            "{change}: {refused:?}"
        );
    }
}
