//! Upkeep seals what came in clear.

use super::{Bird, CANARY, Nest, TURN, ring};
use tokio_util::sync::CancellationToken;
use windlass::core::job::Kind;
use windlass::low_level::job::NewJob;
use windlass::low_level::stores::sqlite::SqliteStore;
use windlass::low_level::stores::{Atomicity, JobLife as _};
use windlass::low_level::upkeep::Keeper;
use windlass::{KeyRing, Options};

fn clear_rows(nest: &Nest) -> Vec<i64> {
    let conn = windlass::rusqlite::Connection::open(nest.path()).unwrap();
    let sql = "SELECT id FROM windlass_jobs WHERE payload NOT LIKE '\"windlass:sealed:%' ORDER BY id";
    let mut select = conn.prepare(sql).unwrap();
    select.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

/// Advances time until upkeep has come so far.
async fn wait_until(nest: &Nest, is_done: impl Fn() -> bool) {
    let limit = std::time::Duration::from_secs(60);
    let mut ticks = tokio::time::interval(TURN);
    let waiting = async {
        while !is_done() {
            ticks.tick().await;
            nest.clock.advance(windlass::Millis::from_secs(1));
        }
    };
    tokio::time::timeout(limit, waiting).await.expect("upkeep should seal the rows");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn upkeep_passes_over_a_row_that_cannot_be_opened_and_seals_old_and_new_ones() {
    let nest = Nest::new();
    let plain = nest.open(KeyRing::default()).await;
    let bird = || Bird { song: CANARY.into(), fails: false };
    plain.enqueue_many((0..450).map(|_| bird())).await.unwrap();
    let conn = windlass::rusqlite::Connection::open(nest.path()).unwrap();
    conn.execute("UPDATE windlass_jobs SET payload = '\"windlass:sealed:1:-:gone:AAAA\"' WHERE id = 3", []).unwrap();
    assert_eq!(clear_rows(&nest).len(), 449);

    let windlass = nest.open(ring(&["a"])).await;
    let stop = CancellationToken::new();
    let keeper = tokio::spawn(Keeper::of(&windlass).run(stop.clone()));
    wait_until(&nest, || clear_rows(&nest).is_empty()).await;
    // As the SQL function does.
    let options = Options { clock: nest.clock.clone(), ..Options::default() };
    let unsealed = SqliteStore::open(&nest.path(), options).await.unwrap();
    let policy = super::all(&windlass).await[0].policy.clone();
    let new = NewJob::new(Kind::new("bird").unwrap(), "{}", policy);
    unsealed.enqueue(vec![new], Atomicity::Each).await.unwrap();
    wait_until(&nest, || clear_rows(&nest).is_empty()).await;
    stop.cancel();
    keeper.await.unwrap();
}
