//! Doctor names what is wrong with a store, and what to do about it.

use crate::world::World;
use serde_json::Value;

/// The failed checks of a store.
fn wrongs(world: &World, store: &str) -> Vec<(String, String)> {
    let output = world.run("100", &["doctor", "--json", "--store", store]);
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    let reported: Value = serde_json::from_slice(&output.stdout).unwrap();
    let checks = reported["checks"].as_array().unwrap().iter().filter(|check| check["verdict"] == "wrong");
    let word = |check: &Value, name: &str| check[name].as_str().unwrap().to_owned();
    checks.map(|check| (word(check, "check"), word(check, "detail"))).collect()
}

#[test]
fn a_lease_that_was_not_reaped_is_named() {
    let world = World::empty();
    world.out("100", &["migrate"]);
    let file = rusqlite::Connection::open(world.path("jobs.db")).unwrap();
    let lease = "INSERT INTO windlass_leases (id, worker, expires_at, ends_at_boot, length_ms, job_ids) \
                 VALUES (1, 'gone', 1767268800000, -86400000, 30000, '1')";
    file.execute_batch(lease).unwrap();
    drop(file);
    let wrong = wrongs(&world, &world.store());
    assert_eq!(wrong.len(), 1, "{wrong:?}");
    assert_eq!(wrong[0].0, "settings");
    assert!(wrong[0].1.contains("1 lease") && wrong[0].1.contains("is a worker running?"), "{wrong:?}");
}

#[test]
fn a_server_that_may_lose_commits_is_named() {
    let url = std::env::var("WINDLASS_TEST_POSTGRES")
        .expect("WINDLASS_TEST_POSTGRES must name a Postgres server; scripts/with-postgres starts one");
    let name = format!("doctor_{}", std::process::id());
    let sql = |statement: String| {
        tokio::runtime::Runtime::new().unwrap().block_on(async {
            let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
            let talk = tokio::spawn(connection);
            client.batch_execute(&statement).await.unwrap();
            drop(client);
            talk.await.unwrap().unwrap();
        });
    };
    sql(format!("CREATE DATABASE {name}"));
    sql(format!("ALTER DATABASE {name} SET synchronous_commit = off"));
    let mut store = url::Url::parse(&url).unwrap();
    store.set_path(&name);
    let world = World::empty();
    world.out("100", &["migrate", "--store", store.as_str()]);
    let wrong = wrongs(&world, store.as_str());
    sql(format!("DROP DATABASE {name} WITH (FORCE)"));
    let reported = "synchronous_commit is off: a crash can lose jobs that were acknowledged; set it on";
    assert_eq!(wrong, [("settings".to_owned(), reported.to_owned())]);
}
