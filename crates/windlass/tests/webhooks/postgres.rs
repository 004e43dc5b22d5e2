//! A schema for one test on the Postgres server, dropped afterwards.

use crate::world::{World, options};
use windlass::Random;
use windlass::low_level::stores::Options;
use windlass::low_level::stores::postgres::PostgresStore;

impl World {
    pub(crate) async fn postgres() -> Self {
        let url = std::env::var("WINDLASS_TEST_POSTGRES").expect(
            "these tests need a Postgres server: run them with scripts/test or `scripts/with-postgres cargo test …`",
        );
        let name = format!("test_{:016x}", Random::system().number());
        let options = Options { schema: name.clone(), connections: 4, ..options() };
        let store = PostgresStore::open(&url, options).await.unwrap();
        Self::new(store, Box::new(Schema { url, name }))
    }
}

struct Schema {
    url: String,
    name: String,
}

impl Drop for Schema {
    fn drop(&mut self) {
        let (url, name) = (self.url.clone(), self.name.clone());
        // Its own thread and runtime: the test's runtime may be ending.
        let dropping = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let Ok((client, connection)) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await else {
                    return;
                };
                let connection = tokio::spawn(connection);
                // A leftover schema harms nobody: the next run uses another name.
                let _ = client.batch_execute(&format!("SET lock_timeout = '5s'; DROP SCHEMA {name} CASCADE")).await;
                drop(client);
                let _ = connection.await;
            });
        });
        let _ = dropping.join();
    }
}
