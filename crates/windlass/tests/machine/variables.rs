//! Just `postgres://`: the `PG*` variables say where.

use crate::again::{again, assert_passes, task};
use crate::cluster::{PASSWORD, USER};
use crate::tls::Secured;
use std::path::Path;
use std::process::Command;
use windlass::low_level::stores::postgres::PostgresStore;
use windlass::low_level::stores::{Options, StoreError};

#[test]
fn the_environment_says_where_postgres_is() {
    let secured = Secured::start();
    let variables = [
        ("PGHOST", "localhost"),
        ("PGPORT", &secured.cluster.port.to_string()),
        ("PGUSER", USER),
        ("PGPASSWORD", PASSWORD),
        ("PGDATABASE", "postgres"),
        ("PGSSLMODE", "verify-full"),
        ("PGSSLROOTCERT", &secured.certificate()),
        ("PGAPPNAME", "by-variables"),
    ];
    let child = |expected: &str| {
        let mut command = again("variables::opens_where_the_environment_says", Path::new(expected));
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("PG")) {
            command.env_remove(name);
        }
        command.envs(variables);
        command
    };
    assert_passes(&mut child("opened"));
    let with = |expected: &str, name: &str, value: &str| -> Command {
        let mut command = child(expected);
        command.env(name, value);
        command
    };
    assert_passes(&mut with("invalid", "PGPASSWORD", "wrong"));
    assert_passes(&mut with("invalid", "PGDATABASE", "not_there"));
    assert_passes(&mut with("refused", "PGSSLROOTCERT", ""));
    assert_passes(&mut with("invalid", "PGPORT", "many"));
    assert_passes(&mut with("invalid", "PGSSLMODE", "perhaps"));
}

/// Not a test by itself: what the process with those variables does.
#[tokio::test]
async fn opens_where_the_environment_says() {
    let Some(expected) = task() else { return };
    for url in ["postgres://", "postgresql://", "postgres://?prepared=off"] {
        let opened = PostgresStore::open(url, Options::default()).await;
        let found = match &opened {
            Ok(_) => "opened",
            Err(StoreError::Unavailable(_)) => "refused",
            Err(StoreError::Invalid(_)) => "invalid",
            Err(_) => "otherwise",
        };
        assert_eq!(Some(found), expected.to_str(), "{url}: {opened:?}");
    }
}
