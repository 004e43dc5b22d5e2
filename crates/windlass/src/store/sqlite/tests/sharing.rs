//! One file, several connections: other processes, and the application's own transactions.

use super::*;
use crate::store::JobLife;
use crate::store::Reads;
use crate::store::Registry;

#[tokio::test]
async fn two_stores_on_one_file_share_the_work() {
    let home = Home::new();
    let (one, two) = (home.open().await, home.open().await);
    for _ in 0..5 {
        put(&one).await;
        put(&two).await;
    }
    let (mine, yours) = (claim(&one, 6).await, claim(&two, 10).await);
    assert_eq!((mine.len(), yours.len()), (6, 4));
    let results = two.commit(yours.iter().map(|job| success(&two, job)).collect(), vec![]).await.unwrap();
    assert!(results.iter().all(|result| matches!(result, Committed::Applied(_))), "{results:?}");
    assert_eq!(one.job(&Scope::All, yours[0].id).await.unwrap().unwrap().state, State::Succeeded);
}

#[tokio::test]
async fn jobs_enqueued_by_another_process_wake_workers() {
    let home = Home::new();
    let (one, two) = (home.open().await, home.open().await);
    let mut waker = two.wake().subscribe();
    put(&two).await;
    waker.rung().await;
    put(&one).await;
    waker.rung().await;
}

#[tokio::test]
async fn a_retention_set_by_another_store_takes_effect() {
    let home = Home::new();
    let (one, two) = (home.open().await, home.open().await);
    let key = SettingKey::Queue { tenant: None, name: "default".into() };
    one.put_setting(&key, Some(r#"{"retention":{"succeeded":"0"}}"#)).await.unwrap();
    put(&two).await;
    let jobs = claim(&two, 1).await;
    two.commit(vec![success(&two, &jobs[0])], vec![]).await.unwrap();
    assert_eq!(count(&one).await, 0);
}

#[tokio::test]
async fn a_worker_id_is_held_by_one_store_at_a_time() {
    let home = Home::new();
    let (one, two) = (home.open().await, home.open().await);
    let name = WorkerId::new("a/b c");
    let lock = one.lock_worker(&name).await.unwrap();
    assert!(lock.is_some());
    assert!(two.lock_worker(&name).await.unwrap().is_none());
    assert!(two.lock_worker(&WorkerId::new("other")).await.unwrap().is_some());
    drop(lock);
    assert!(two.lock_worker(&name).await.unwrap().is_some());
}

#[tokio::test]
async fn a_callers_rolled_back_transaction_leaves_nothing() {
    let home = Home::new();
    let store = home.open().await;
    let conn = home.connect();
    conn.execute_batch("CREATE TABLE orders (id INTEGER); BEGIN; INSERT INTO orders VALUES (1)").unwrap();
    let stored = store.enqueue_in(&conn, &[job(), job()]).unwrap();
    assert!(matches!(stored[1], Enqueued::Created { .. }));
    conn.execute_batch("ROLLBACK").unwrap();
    assert_eq!(count(&store).await, 0);
    assert!(store.queues().await.unwrap().is_empty());
    assert!(store.tallies(&Scope::All, None).await.unwrap().is_empty());
    // What the rolled-back call had registered is registered again.
    put(&store).await;
    assert_eq!(claim(&store, 1).await.len(), 1);
}

#[tokio::test]
async fn a_callers_transaction_stores_and_completes_jobs_with_its_effects() {
    let home = Home::new();
    let store = home.open().await;
    let conn = home.connect();
    assert!(matches!(store.enqueue_in(&conn, &[job()]), Err(StoreError::Invalid(_))), "there is no transaction");
    conn.execute_batch("BEGIN IMMEDIATE").unwrap();
    store.enqueue_in(&conn, &[job()]).unwrap();
    conn.execute_batch("COMMIT").unwrap();
    let jobs = claim(&store, 1).await;
    let commits = [success(&store, &jobs[0])];
    let lease = jobs[0].lease;

    conn.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert!(matches!(store.commit_in(&conn, &commits, &[lease]).unwrap()[0], Committed::Applied(_)));
    conn.execute_batch("ROLLBACK").unwrap();
    assert_eq!(store.held(vec![lease]).await.unwrap().len(), 1, "still running");

    conn.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert!(matches!(store.commit_in(&conn, &commits, &[lease]).unwrap()[0], Committed::Applied(_)));
    conn.execute_batch("COMMIT").unwrap();
    assert_eq!(store.job(&Scope::All, jobs[0].id).await.unwrap().unwrap().state, State::Succeeded);
    let again = store.commit(commits.to_vec(), vec![]).await.unwrap();
    assert_eq!(again, [Committed::Repeated]);
}

#[tokio::test]
async fn the_last_store_to_close_leaves_only_the_database_file() {
    let home = Home::new();
    let (one, two) = (home.open().await, home.open().await);
    put(&one).await;
    assert_eq!((count(&one).await, count(&two).await), (1, 1));
    drop(one);
    assert!(home.dir.path().join("jobs.db-wal").exists(), "another store is still open");
    drop(two);
    let left: Vec<_> = std::fs::read_dir(home.dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["jobs.db"], "a copy of the file has everything");
}

/// Both switch the new file to a log at once, where SQLite refuses one of them without waiting.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn processes_that_start_together_on_a_new_file_all_open_it() {
    for _ in 0..20 {
        let home = Arc::new(Home::new());
        let starts = (0..4).map(|_| {
            let home = home.clone();
            tokio::spawn(async move { home.try_open(Migrations::Run).await.map(drop) })
        });
        for start in starts.collect::<Vec<_>>() {
            start.await.unwrap().unwrap();
        }
    }
}
