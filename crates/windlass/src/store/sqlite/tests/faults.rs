//! Full disks, locks, read-only files, schemas from elsewhere.

use super::*;
use crate::store::JobLife;
use crate::store::Reads;
use crate::store::Registry;

#[tokio::test]
async fn a_full_disk_refuses_and_forgets_nothing_and_work_goes_on_when_there_is_room() {
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
    assert_eq!(count(&store).await, 1, "nothing of the batch is there");
    // The writer opened the file anew, where the limit is gone: there is room again.
    store.enqueue(vec![job(), big], Atomicity::Each).await.unwrap();
    assert_eq!(count(&store).await, 3);
}

#[tokio::test]
async fn a_read_only_file_refuses_and_works_again_when_it_can_be_written() {
    let home = Home::new();
    let store = home.open().await;
    put(&store).await;
    store.write(|tx| Ok(tx.conn.pragma_update(None, "query_only", true)?)).await.unwrap();
    let refused = store.enqueue(vec![job()], Atomicity::Each).await;
    let Err(StoreError::Unavailable(cause)) = refused else { panic!("{refused:?}") };
    assert!(cause.to_string().contains("read-only"), "{cause}");
    assert_eq!(count(&store).await, 1, "reads go on");
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
async fn a_reap_that_waited_for_the_file_spares_those_who_waited_too() {
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
    assert!(waiting.await.unwrap().unwrap().is_empty(), "nobody could renew meanwhile");
    assert_eq!(store.reap(reap(), 10).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_file_that_is_no_database_is_refused() {
    let home = Home::new();
    std::fs::write(home.path(), "not a database, but long enough to be looked at ".repeat(40)).unwrap();
    let refused = home.try_open(Migrations::Run).await;
    assert!(matches!(refused, Err(StoreError::Corrupt { .. })), "{refused:?}");
}

#[tokio::test]
async fn a_directory_that_is_not_there_is_named() {
    let refused = SqliteStore::open("/nowhere/at/all/jobs.db", Options::default()).await;
    let Err(StoreError::Unavailable(cause)) = refused else { panic!("{refused:?}") };
    assert!(cause.to_string().contains("/nowhere/at/all/jobs.db"), "{cause}");
}

#[tokio::test]
async fn a_newer_schema_is_refused_if_it_says_so_and_used_if_it_does_not() {
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

/// A file as it was before running jobs had a table of their own: one waits, one runs its second attempt, one waits for a retry.
fn before_running(home: &Home) {
    let conn = home.connect();
    super::super::connection::migrate::migrate_to(&conn, home.clock.now(), 3).unwrap();
    let now = home.clock.now().as_millis();
    let row = "queue_id, priority, once, failures, crashes, replays, previous_delay, cancel_requested, created_at, policy_id, kind, payload";
    let values = format!("1, 0, 0, 1, 0, 0, 1000, 0, {now}, 1, 'email', '{{}}'");
    conn.execute_batch(&format!(
        "INSERT INTO windlass_queues (id, tenant, name, executor, created_at) VALUES (1, 'default', 'default', 'worker', {now});
         INSERT INTO windlass_policies (id, line) VALUES (1, 'exponential');
         INSERT INTO windlass_jobs (id, state, due_at, attempt, {row}) VALUES (1, 'queued', {now}, 0, {values});
         INSERT INTO windlass_jobs (id, state, due_at, attempt, lease_id, claimed_at, first_attempt_at, {row})
             VALUES (2, 'running', {now}, 2, 7, {now}, {now}, {values});
         INSERT INTO windlass_jobs (id, state, due_at, attempt, claimed_at, first_attempt_at, {row})
             VALUES (3, 'retrying', {now} + 60000, 1, {now}, {now}, {values});
         INSERT INTO windlass_attempts (job_id, number, lease_id, retry, status, started_at, finished_at, worker, why)
             VALUES (3, 1, 5, 0, 'FAILED', {now}, {now}, 'w1', 'exponential');
         INSERT INTO windlass_leases (id, worker, expires_at, length, jobs) VALUES (7, 'w1', {now} + 30000, 30000, '2')"
    ))
    .unwrap();
}

#[tokio::test]
async fn jobs_that_wait_and_run_go_on_after_an_upgrade() {
    let home = Home::new();
    before_running(&home);
    let store = home.open().await;
    let refused = home.connect().prepare("SELECT 1 FROM windlass_jobs").unwrap_err();
    assert!(refused.to_string().contains("no such table"), "a program of before would store jobs that nobody claims");
    let mut states = Vec::new();
    for id in 1..=3 {
        let job = store.job(&Scope::All, JobId(id)).await.unwrap().unwrap();
        states.push((job.state, job.attempt));
    }
    assert_eq!(store.attempts(&Scope::All, JobId(3), 10).await.unwrap().len(), 1);
    let lease = LeaseId(7);
    let expected = [(State::Queued, 0), (State::Running, 2), (State::Retrying, 1)];
    assert_eq!(states, expected);
    let held = store.held(vec![lease]).await.unwrap();
    assert_eq!(held.len(), 1);
    let done = store.commit(vec![success(&store, &held[0])], vec![lease]).await.unwrap();
    assert!(matches!(done[0], Committed::Applied(_)), "{done:?}");
    assert_eq!(claim(&store, 10).await.iter().map(|job| (job.id.0, job.attempt)).collect::<Vec<_>>(), [(1, 1)]);
    home.clock.advance(Millis::from_secs(60));
    assert_eq!(claim(&store, 10).await.iter().map(|job| (job.id.0, job.attempt)).collect::<Vec<_>>(), [(3, 2)]);
}

#[tokio::test]
async fn migrating_is_left_to_the_operator_if_so_asked() {
    let home = Home::new();
    let refused = home.try_open(Migrations::LeaveToOperator).await;
    let Err(StoreError::Schema(message)) = refused else { panic!("{refused:?}") };
    assert!(message.contains("windlass migrate"), "{message}");
    let store = home.open().await;
    store.migrate().await.unwrap();
    drop(home.try_open(Migrations::LeaveToOperator).await.unwrap());
}

#[tokio::test]
async fn a_migration_with_another_text_is_refused() {
    let home = Home::new();
    drop(home.open().await);
    home.connect().execute("UPDATE windlass_migrations SET checksum = 'other' WHERE number = 1", []).unwrap();
    let refused = home.try_open(Migrations::Run).await;
    assert!(matches!(refused, Err(StoreError::Schema(_))), "{refused:?}");
}

#[tokio::test]
async fn a_large_claim_that_cannot_be_read_is_in_doubt_and_can_be_asked_for() {
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
    };
    // The writer has the file open; nobody can open it anew.
    let away = home.dir.path().join("away.db");
    std::fs::rename(store.path(), &away).unwrap();
    let claimed = store.claim(request).await;
    assert!(matches!(claimed, Err(StoreError::Unknown(_))), "{claimed:?}");
    std::fs::rename(&away, store.path()).unwrap();
    let held: Vec<JobId> = store.held(vec![lease]).await.unwrap().iter().map(|job| job.id).collect();
    assert_eq!(held, ids);
}
