//! The write-ahead log restarts during continuous writes, and is removed when the store closes.

use super::*;
use crate::store::JobLife;

const MIB: u64 = 1 << 20;

/// Stores a mebibyte of jobs in a transaction of its own, many times.
async fn write_mebibytes(store: &SqliteStore, count: u64) {
    let payload = format!("\"{}\"", "x".repeat(MIB as usize / 8));
    for _ in 0..count {
        let jobs = vec![NewJob { payload: payload.as_str().into(), ..job() }; 8];
        store.enqueue(jobs, Atomicity::Each).await.unwrap();
    }
}

fn log_size(home: &Home) -> u64 {
    std::fs::metadata(home.dir.path().join("jobs.db-wal")).map_or(0, |log| log.len())
}

#[tokio::test]
async fn the_log_does_not_grow_with_what_is_written() {
    let home = Home::new();
    let store = home.open().await;
    write_mebibytes(&store, 200).await;
    let size = log_size(&home);
    assert!(size < 100 * MIB, "the log has {size} bytes");
    drop(store);
    assert_eq!(log_size(&home), 0);
    let jobs: i64 = home.connect().query_row("SELECT count(*) FROM windlass_all_jobs", [], |row| row.get(0)).unwrap();
    assert_eq!(jobs, 1600);
}

#[tokio::test]
async fn the_log_restarts_after_a_long_read() {
    let home = Home::new();
    let store = home.open().await;
    put(&store).await;
    let reader = home.connect();
    reader.execute_batch("BEGIN; SELECT count(*) FROM windlass_queues").unwrap();
    write_mebibytes(&store, 40).await;
    assert!(log_size(&home) > 40 * MIB, "none of the log could be overwritten");
    reader.execute_batch("COMMIT").unwrap();
    for _ in 0..40 {
        let before = log_size(&home);
        write_mebibytes(&store, 8).await;
        if log_size(&home) == before {
            return;
        }
    }
    panic!("the log has grown to {} bytes", log_size(&home));
}
