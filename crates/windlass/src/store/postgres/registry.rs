//! The registry: queues, settings, tokens, workers, alerts, audit.

use crate::store::postgres::Inner;
use crate::store::postgres::connection::fault::again;
use crate::store::postgres::connection::pool::{Lent, On, Params};
use crate::store::postgres::life::enqueue;
use crate::store::postgres::life::names::{self, Numbers};
use crate::store::postgres::statements::Sql;
use crate::store::postgres::statements::columns::Columns;
use crate::store::postgres::statements::row::Row;
use crate::store::postgres::statements::rows;
use crate::store::{
    Alert, AlertChange, AlertStatus, Audit, NODE_FOR, NodeSetting, Presence, Queue, Session, Setting, SettingKey,
    SettingSource, StoreError, Token, WorkerId, WorkerReport, in_force,
};
use futures_util::join;
use std::time::Duration;
use tokio_postgres::types::ToSql;
use windlass_core::Timestamp;
use windlass_core::job::{QueueName, Tenant};

/// How often, and how far apart, a worker's lock is tried: the server needs a moment to notice that its holder has
/// gone.
const LOCK_TRIES: u32 = 5;
const LOCK_PAUSE: Duration = Duration::from_millis(50);

pub(super) async fn queues(store: &Inner) -> Result<Vec<Queue>, StoreError> {
    store.read(Sql::Queues, &[]).await?.iter().map(rows::queue).collect()
}

pub(super) async fn installation(store: &Inner) -> Result<String, StoreError> {
    let rows = store.read(Sql::Installation, &[]).await?;
    let row = rows.first().ok_or_else(|| StoreError::corrupt("the installation", "every store has an id"))?;
    Columns::new(row).get("id")
}

pub(super) async fn stored_settings(store: &Inner) -> Result<Vec<Setting>, StoreError> {
    again(|| async {
        let lent = store.registry.get().await?;
        stored_settings_on(On::Own(&lent)).await
    })
    .await
}

/// The settings in force, read now.
pub(super) async fn settings_on(on: On<'_>) -> Result<Vec<(SettingKey, String)>, StoreError> {
    Ok(in_force(stored_settings_on(on).await?))
}

async fn stored_settings_on(on: On<'_>) -> Result<Vec<Setting>, StoreError> {
    let mut settings = Vec::new();
    for row in &on.query(Sql::Settings, &[]).await? {
        let c = Columns::new(row);
        let (scope, tenant, name) = (c.text("scope")?, c.text("tenant")?, c.text("name")?);
        let key = SettingKey::from_parts(scope, tenant, name)
            .ok_or_else(|| StoreError::corrupt(format!("setting {scope} {name}"), "scopes are known words"))?;
        let node: String = c.get("node")?;
        let source = match node.as_str() {
            "" => SettingSource::Operator,
            _ => SettingSource::Node { node, origin: c.get("origin")? },
        };
        settings.push(Setting { key, value: c.get("value")?, source, set_at: c.moment("set_at")? });
    }
    Ok(settings)
}

pub(super) async fn put_setting(store: &Inner, key: &SettingKey, value: Option<&str>) -> Result<(), StoreError> {
    let (scope, tenant, name) = key.parts();
    match value {
        Some(value) => {
            store.write(Sql::SettingPut, &[&store.fixed(), &scope, &tenant, &name, &"", &value, &""]).await?
        }
        None => store.write(Sql::SettingRemove, &[&scope, &tenant, &name]).await?,
    };
    reopen(store).await
}

/// Settings have changed: claims look at everything parked again.
async fn reopen(store: &Inner) -> Result<(), StoreError> {
    store.remembered.forget();
    store.write(Sql::GatesReopen, &[&store.fixed()]).await.map(drop)
}

pub(super) async fn put_node_settings(store: &Inner, node: &str, settings: &[NodeSetting]) -> Result<(), StoreError> {
    again(|| async {
        let lent = store.pool.get().await?;
        let (begun, put) = join!(lent.begin(), put_node_settings_on(store, On::Own(&lent), node, settings));
        lent.conclude(begun, put).await
    })
    .await?;
    reopen(store).await
}

async fn put_node_settings_on(
    store: &Inner,
    on: On<'_>,
    node: &str,
    settings: &[NodeSetting],
) -> Result<(), StoreError> {
    on.query(Sql::SettingsForget, &[&store.fixed(), &node, &(NODE_FOR.get() as i64)]).await?;
    for setting in settings {
        let (scope, tenant, name) = setting.key.parts();
        let params: Params<'_> = &[&store.fixed(), &scope, &tenant, &name, &node, &setting.value, &setting.origin];
        on.query(Sql::SettingPut, params).await?;
    }
    Ok(())
}

pub(super) async fn touch_node(store: &Inner, node: &str, presence: Presence) -> Result<(), StoreError> {
    let leaves = presence == Presence::Leaving;
    store.write(Sql::SettingsTouch, &[&store.fixed(), &node, &leaves]).await?;
    if !leaves {
        let gone = store.write(Sql::SettingsForget, &[&store.fixed(), &"", &(NODE_FOR.get() as i64)]).await?;
        if !gone.is_empty() {
            reopen(store).await?;
        }
    }
    Ok(())
}

pub(super) async fn put_token(store: &Inner, token: &Token) -> Result<(), StoreError> {
    let params: Params<'_> = &[
        &token.id,
        &token.name,
        &token.hash.as_slice(),
        &token.scopes,
        &token.tenant.as_ref().map(Tenant::as_str),
        &token.queues.as_ref().map(|names| names.iter().map(QueueName::as_str).collect::<Vec<_>>()),
        &token.created_at.as_millis(),
        &token.expires_at.map(Timestamp::as_millis),
        &token.revoked_at.map(Timestamp::as_millis),
    ];
    store.write(Sql::TokenPut, params).await.map(drop)
}

pub(super) async fn tokens(store: &Inner) -> Result<Vec<Token>, StoreError> {
    store.read(Sql::Tokens, &[]).await?.iter().map(token).collect()
}

pub(super) async fn revoke_token(store: &Inner, id: &str) -> Result<bool, StoreError> {
    Ok(!store.write(Sql::TokenRevoke, &[&store.fixed(), &id]).await?.is_empty())
}

pub(super) async fn put_session(store: &Inner, session: &Session) -> Result<(), StoreError> {
    let params: Params<'_> = &[
        &store.fixed(),
        &session.hash.as_slice(),
        &session.token,
        &session.created_at.as_millis(),
        &session.expires_at.as_millis(),
    ];
    store.write(Sql::SessionPut, params).await.map(drop)
}

pub(super) async fn sessions(store: &Inner) -> Result<Vec<Session>, StoreError> {
    store.read(Sql::Sessions, &[&store.fixed()]).await?.iter().map(session).collect()
}

pub(super) async fn remove_session(store: &Inner, hash: &[u8; 32]) -> Result<bool, StoreError> {
    Ok(!store.write(Sql::SessionRemove, &[&hash.as_slice()]).await?.is_empty())
}

/// The lock on a worker id, held as long as the connection; `None` if another process has it.
pub(super) async fn lock_worker(store: &Inner, worker: &WorkerId) -> Result<Option<Lent>, StoreError> {
    let kept = store.pool.keep().await?;
    kept.run("BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL idle_in_transaction_session_timeout = 0").await?;
    for attempt in 0..LOCK_TRIES {
        if attempt > 0 {
            tokio::time::sleep(LOCK_PAUSE).await;
        }
        let rows = kept.query(Sql::WorkerLock, &[&&*worker.0]).await?;
        let row = rows.first().ok_or_else(|| StoreError::unavailable("the lock was not answered"))?;
        if Columns::new(row).get("is_mine")? {
            // The query's portal stays open until the transaction ends, and its snapshot would keep the server from
            // cleaning up deleted rows for as long as this node runs. A plain statement replaces the portal.
            kept.run("SELECT").await?;
            return Ok(Some(kept));
        }
    }
    Ok(None)
}

pub(super) async fn report_worker(store: &Inner, report: &WorkerReport) -> Result<(), StoreError> {
    let (queues, concurrency): (Vec<&str>, Vec<i64>) =
        report.queues.iter().map(|(name, slots)| (name.as_str(), i64::from(*slots))).unzip();
    let params: Params<'_> = &[
        &&*report.worker.0,
        &report.host,
        &report.version,
        &queues,
        &concurrency,
        &i64::from(report.running),
        &report.started_at.as_millis(),
        &report.seen_at.as_millis(),
        &report.kinds,
    ];
    store.write(Sql::WorkerReport, params).await.map(drop)
}

pub(super) async fn workers(store: &Inner, since: Timestamp) -> Result<Vec<WorkerReport>, StoreError> {
    let mut workers: Vec<WorkerReport> =
        store.read(Sql::Workers, &[&since.as_millis()]).await?.iter().map(worker).collect::<Result<_, _>>()?;
    workers.sort_by(|a, b| a.worker.cmp(&b.worker));
    Ok(workers)
}

pub(super) async fn alerts(store: &Inner) -> Result<Vec<Alert>, StoreError> {
    let mut alerts: Vec<Alert> = store.read(Sql::Alerts, &[]).await?.iter().map(alert).collect::<Result<_, _>>()?;
    alerts.sort_by(|a, b| (&a.rule, &a.subject).cmp(&(&b.rule, &b.subject)));
    Ok(alerts)
}

pub(super) async fn change_alert(store: &Inner, change: &AlertChange) -> Result<bool, StoreError> {
    again(|| async {
        let numbers = names::numbers(store, &change.notices).await?;
        let lent = store.pool.get().await?;
        let (begun, changed) = join!(lent.begin(), change_alert_on(store, On::Own(&lent), change, &numbers));
        lent.conclude(begun, changed).await
    })
    .await
}

async fn change_alert_on(
    store: &Inner,
    on: On<'_>,
    change: &AlertChange,
    numbers: &[Numbers],
) -> Result<bool, StoreError> {
    let after = &change.after;
    let status = after.status.as_str();
    let (since, fired_at) = (after.since.as_millis(), after.fired_at.map(Timestamp::as_millis));
    let resolved_at = after.resolved_at.map(Timestamp::as_millis);
    let notified_at = after.notified_at.map(Timestamp::as_millis);
    let mut params: Vec<&(dyn ToSql + Sync)> = vec![
        &after.rule,
        &after.subject,
        &status,
        &after.incident,
        &since,
        &fired_at,
        &resolved_at,
        &after.detail,
        &after.measure,
        &after.tenant,
        &after.queue,
        &notified_at,
    ];
    let before = change.before.map(|(status, incident, at)| (status.as_str(), incident, at.map(Timestamp::as_millis)));
    let changed = match &before {
        None => on.query(Sql::AlertAdd, &params).await?,
        Some((status, incident, at)) => {
            params.extend::<[&(dyn ToSql + Sync); 3]>([status, incident, at]);
            on.query(Sql::AlertChange, &params).await?
        }
    };
    if changed.is_empty() {
        return Ok(false);
    }
    let places: Vec<usize> = (0..change.notices.len()).collect();
    enqueue::insert(store, on, &change.notices, numbers, &places).await?;
    Ok(true)
}

pub(super) async fn audit(store: &Inner, entry: &Audit) -> Result<(), StoreError> {
    let params: Params<'_> = &[&entry.at.as_millis(), &entry.by, &entry.action, &(entry.count as i64), &entry.detail];
    store.write(Sql::Audit, params).await.map(drop)
}

pub(super) async fn audits(store: &Inner, limit: u32) -> Result<Vec<Audit>, StoreError> {
    let audit = |row| {
        let c = Columns::new(row);
        Ok(Audit {
            at: c.moment("at")?,
            by: c.get("by")?,
            action: c.get("action")?,
            count: c.large_count("count")?,
            detail: c.get("detail")?,
        })
    };
    store.read(Sql::Audits, &[&i64::from(limit)]).await?.iter().map(audit).collect()
}

fn token(row: &Row) -> Result<Token, StoreError> {
    let c = Columns::new(row);
    let id: String = c.get("id")?;
    let corrupt = |rule: &str| StoreError::corrupt(format!("token {id}"), rule);
    let hash: &[u8] = c.get("hash")?;
    let tenant: Option<&str> = c.get("tenant")?;
    let queues: Option<Vec<&str>> = c.get("queues")?;
    let queues = queues.map(|names| names.into_iter().map(QueueName::new).collect::<Result<_, _>>());
    Ok(Token {
        name: c.get("name")?,
        hash: hash.try_into().map_err(|_| corrupt("hashes have 32 bytes"))?,
        scopes: c.get("scopes")?,
        tenant: tenant.map(Tenant::new).transpose().map_err(|_| corrupt("tenants are names"))?,
        queues: queues.transpose().map_err(|_| corrupt("queues are names"))?,
        created_at: c.moment("created_at")?,
        expires_at: c.moment_if("expires_at")?,
        revoked_at: c.moment_if("revoked_at")?,
        id,
    })
}

fn session(row: &Row) -> Result<Session, StoreError> {
    let c = Columns::new(row);
    let hash: &[u8] = c.get("hash")?;
    Ok(Session {
        hash: hash.try_into().map_err(|_| StoreError::corrupt("session", "hashes have 32 bytes"))?,
        token: c.get("token")?,
        created_at: c.moment("created_at")?,
        expires_at: c.moment("expires_at")?,
    })
}

fn worker(row: &Row) -> Result<WorkerReport, StoreError> {
    let c = Columns::new(row);
    let queues: Vec<String> = c.get("queues")?;
    let concurrency: Vec<i64> = c.get("concurrency")?;
    Ok(WorkerReport {
        worker: WorkerId::new(c.text("worker")?),
        host: c.get("host")?,
        version: c.get("version")?,
        queues: queues.into_iter().zip(concurrency.into_iter().map(|slots| slots.max(0) as u32)).collect(),
        kinds: c.get("kinds")?,
        running: c.large_count("running")? as u32,
        started_at: c.moment("started_at")?,
        seen_at: c.moment("seen_at")?,
    })
}

fn alert(row: &Row) -> Result<Alert, StoreError> {
    let c = Columns::new(row);
    let (rule, subject): (String, String) = (c.get("rule")?, c.get("subject")?);
    let status = AlertStatus::parse(c.text("status")?)
        .ok_or_else(|| StoreError::corrupt(format!("alert {rule} {subject}"), "statuses are known words"))?;
    Ok(Alert {
        rule,
        measure: c.get("measure")?,
        subject,
        tenant: c.get("tenant")?,
        queue: c.get("queue")?,
        status,
        incident: c.get("incident")?,
        since: c.moment("since")?,
        fired_at: c.moment_if("fired_at")?,
        resolved_at: c.moment_if("resolved_at")?,
        notified_at: c.moment_if("notified_at")?,
        detail: c.get("detail")?,
    })
}
