//! Health: a real write, and what an operator should know about the server.

use crate::store::postgres::Inner;
use crate::store::postgres::connection::migrate::SCHEMA;
use crate::store::postgres::connection::pool::Source;
use crate::store::postgres::statements::Sql;
use crate::store::postgres::statements::columns::Columns;
use crate::store::{Health, StoreError};
use windlass_core::Timestamp;

/// A clock that is off by more than this is worth a warning.
const CLOCK_OFFSET: i64 = 1000;
/// A lease that ran out this long ago should have been reaped.
const STRAY_AFTER: i64 = 10 * 60_000;

const POOLER: &str = "a pooler stands before the server, or prepared=off was set: statements are not prepared, which is \
     slower, and wake-ups from other processes may not arrive";

const CALLERS_POOL: &str = "the store uses the program's own pool, which does not report when the wait for a synchronous \
     standby was cancelled: such a job counts as stored; open the store by its URL where that matters";

pub(in crate::store::postgres) async fn health(store: &Inner) -> Result<Health, StoreError> {
    let (before, asked) = (store.clock.now(), store.clock.monotonic());
    let beat = store.write(Sql::Pulse, &[&store.fixed()]).await?;
    let now = beat.first().map_or_else(|| Ok(before), |row| Columns::new(row).moment("now"))?;
    store.clock.follow(now, asked);
    let rows = store.read(Sql::Server, &[&store.fixed(), &STRAY_AFTER]).await?;
    let row = rows.first().ok_or_else(|| StoreError::unavailable("the server did not report its settings"))?;
    let c = Columns::new(row);
    let version = c.text("version")?;
    let engine = format!("postgres {}", version.split_whitespace().next().unwrap_or(version));
    let mut warnings = durability(c)?;
    warnings.extend(clock_warning(before, now));
    match store.pool.source() {
        Source::Own(_) if store.pool.get().await?.prepares() => {}
        Source::Own(_) => warnings.push(POOLER.to_owned()),
        Source::Callers(_) if c.text("standby_names")?.is_empty() => {}
        Source::Callers(_) => warnings.push(CALLERS_POOL.to_owned()),
    }
    let strays: i64 = c.get("stray_leases")?;
    if strays > 0 {
        warnings.push(format!("{strays} leases ran out long ago and were not reaped: is any node's upkeep running?"));
    }
    Ok(Health { engine, schema: SCHEMA as u32, warnings })
}

fn durability(c: Columns<'_>) -> Result<Vec<String>, StoreError> {
    let mut warnings = Vec::new();
    if c.text("fsync")? == "off" {
        warnings.push("fsync is off: a crash of the machine can lose everything; set it on".to_owned());
    }
    if c.text("full_page_writes")? == "off" {
        warnings.push("full_page_writes is off: a crash of the machine can damage tables; set it on".to_owned());
    }
    if c.text("synchronous_commit")? == "off" {
        warnings.push("synchronous_commit is off: a crash can lose jobs that were acknowledged; set it on".to_owned());
    }
    if c.get("is_standby")? {
        warnings.push("this server is a standby: nothing can be written; name the primary".to_owned());
    }
    if c.get::<i64>("replicas")? > 0 && c.text("standby_names")?.is_empty() {
        let what = "replication is asynchronous: a failover can lose jobs that were acknowledged; \
                    set synchronous_standby_names where that matters";
        warnings.push(what.to_owned());
    }
    Ok(warnings)
}

fn clock_warning(own: Timestamp, server: Timestamp) -> Option<String> {
    let offset = server.as_millis() - own.as_millis();
    (offset.abs() > CLOCK_OFFSET)
        .then(|| format!("this machine's clock and the server's are {} ms apart", offset.abs()))
}
