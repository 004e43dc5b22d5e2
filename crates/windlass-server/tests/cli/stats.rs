//! The windows of the stats come from tallies: they are the same when no jobs are left.

use crate::world::World;
use serde_json::Value;
use windlass::low_level::stores::JobLife;
use windlass::low_level::stores::Options;

const IN_SQLITE: [&str; 5] = ["jobs", "live", "waiting", "outcomes", "attempts"];
const IN_POSTGRES: [&str; 3] = ["jobs", "waiting", "attempts"];

/// Stats without the mean times, which need attempts.
fn counted(stats: &Value) -> (Value, Value, Value) {
    let day = &stats["windows"]["24h"];
    (day["total"]["enqueued"].clone(), day["total"]["cancelled"].clone(), day["kinds"].clone())
}

/// Stores and cancels jobs, and reads the stats while the jobs still exist.
fn live(world: &World, store: &str) -> Value {
    for kind in ["a", "a", "b"] {
        world.out("100", &["enqueue", kind, "--store", store]);
    }
    world.out("100", &["jobs", "cancel", "1", "--store", store]);
    let stats = world.json(&["stats", "--store", store]);
    assert_eq!((&counted(&stats).0, &counted(&stats).1), (&3.into(), &1.into()), "{stats}");
    stats
}

#[test]
fn sqlite_needs_no_jobs_to_show_the_stats() {
    let world = World::empty();
    let before = live(&world, &world.store());
    let file = rusqlite::Connection::open(world.path("jobs.db")).unwrap();
    for table in IN_SQLITE {
        file.execute_batch(&format!("DELETE FROM windlass_{table}")).unwrap();
    }
    drop(file);
    assert_eq!(world.json(&["stats"])["windows"], before["windows"]);
    assert_eq!(world.json(&["jobs"])["items"], serde_json::json!([]), "the jobs are gone");
}

#[test]
fn postgres_needs_no_jobs_to_show_the_stats() {
    let url = std::env::var("WINDLASS_TEST_POSTGRES")
        .expect("WINDLASS_TEST_POSTGRES must name a Postgres server; scripts/with-postgres starts one");
    let schema = format!("stats_{}", std::process::id());
    let world = World::empty().with("WINDLASS_SCHEMA", &schema);
    world.out("100", &["migrate", "--store", &url]);
    let before = live(&world, &url);
    let sql = |statements: String| {
        tokio::runtime::Runtime::new().unwrap().block_on(async {
            let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
            let talk = tokio::spawn(connection);
            client.batch_execute(&statements).await.unwrap();
            drop(client);
            talk.await.unwrap().unwrap();
        });
    };
    sql(IN_POSTGRES.map(|table| format!("DELETE FROM {schema}.{table}")).join(";"));
    let after = world.json(&["stats", "--store", &url]);
    let jobs = world.json(&["jobs", "--store", &url]);
    sql(format!("DROP SCHEMA {schema} CASCADE"));
    assert_eq!(after["windows"], before["windows"]);
    assert_eq!(jobs["items"], serde_json::json!([]), "the jobs are gone");
}

/// Folding keeps the rows that stats read few: an hour is one row for each queue and kind.
#[test]
fn a_long_past_is_folded_into_few_rows() {
    let world = World::of_2026();
    let rows = tokio::runtime::Runtime::new().unwrap().block_on(async {
        let store = windlass::low_level::stores::sqlite::SqliteStore::open(&world.path("jobs.db"), Options::default())
            .await
            .unwrap();
        store.prune().await.unwrap();
        drop(store);
        let file = rusqlite::Connection::open(world.path("jobs.db")).unwrap();
        let count =
            |table: &str| file.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get::<_, i64>(0));
        (count("windlass_tally_deltas").unwrap(), count("windlass_tallies").unwrap())
    });
    assert_eq!(rows, (0, 4), "deltas, and hours by queue and kind");
}
