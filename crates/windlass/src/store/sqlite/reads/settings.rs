//! Small tables: settings, tokens, workers, alerts, audit.

use crate::job::QueueId;
use crate::store::sqlite::connection::readers::Reader;
use crate::store::sqlite::connection::sql::sql;
use crate::store::sqlite::connection::tx::Tx;
use crate::store::sqlite::life::{commit, gates};
use crate::store::sqlite::reads::columns::{alert, audit, holder, session, setting, token, worker};
use crate::store::sqlite::reads::rows;
use crate::store::{
    Alert, AlertChange, AlertStatus, Audit, Holder, NODE_FOR, NodeSetting, Presence, Queue, Session, Setting,
    SettingKey, SettingSource, StoreError, Token, WorkerId, WorkerReport,
};
use rusqlite::{Row, params};
use windlass_core::job::{QueueName, Tenant};
use windlass_core::{JobId, Timestamp};

type Result<T> = std::result::Result<T, StoreError>;

pub(in crate::store::sqlite) fn put_setting(tx: &mut Tx<'_>, key: &SettingKey, value: Option<&str>) -> Result<()> {
    let (scope, tenant, name) = key.parts();
    match value {
        Some(text) => {
            let now = tx.now.as_millis();
            let mut put = tx.conn.prepare_cached(sql!("queues.sql", "setting_put"))?;
            put.execute(params![scope, tenant, name, "", text, "", now])?
        }
        None => tx.conn.prepare_cached(sql!("queues.sql", "setting_remove"))?.execute(params![scope, tenant, name])?,
    };
    gates::reopen(tx)?;
    Ok(())
}

pub(in crate::store::sqlite) fn put_node_settings(tx: &mut Tx<'_>, node: &str, settings: &[NodeSetting]) -> Result<()> {
    forget_nodes(tx, node)?;
    let mut put = tx.conn.prepare_cached(sql!("queues.sql", "setting_put"))?;
    for NodeSetting { key, value, origin } in settings {
        let (scope, tenant, name) = key.parts();
        put.execute(params![scope, tenant, name, node, value, origin, tx.now.as_millis()])?;
    }
    gates::reopen(tx)
}

pub(in crate::store::sqlite) fn touch_node(tx: &mut Tx<'_>, node: &str, presence: Presence) -> Result<()> {
    let mut touch = tx.conn.prepare_cached(sql!("queues.sql", "settings_touch"))?;
    match presence {
        Presence::Alive => {
            touch.execute(params![node, tx.now.as_millis()])?;
            forget_nodes(tx, "")
        }
        Presence::Leaving => touch.execute(params![node, 0]).map(drop).map_err(Into::into),
    }
}

/// Removes the settings of one node, and of nodes that have not been seen for a while.
fn forget_nodes(tx: &mut Tx<'_>, node: &str) -> Result<()> {
    let before = (tx.now - NODE_FOR).as_millis();
    let gone = tx.conn.prepare_cached(sql!("queues.sql", "settings_forget"))?.execute(params![node, before])?;
    if gone > 0 { gates::reopen(tx) } else { Ok(()) }
}

/// A row of a setting.
pub(in crate::store::sqlite) fn stored_setting(row: &Row<'_>) -> Result<Setting> {
    let key = SettingKey::from_parts(
        rows::must(row, setting::scope)?,
        rows::must(row, setting::tenant)?,
        rows::must(row, setting::name)?,
    );
    let node: String = row.get(setting::node)?;
    Ok(Setting {
        key: key.ok_or_else(|| StoreError::corrupt("a setting", "its key is one Windlass knows"))?,
        value: row.get(setting::value)?,
        source: match node.as_str() {
            "" => SettingSource::Operator,
            _ => SettingSource::Node { node, origin: row.get(setting::origin)? },
        },
        set_at: Timestamp::from_millis(row.get(setting::set_at)?),
    })
}

pub(in crate::store::sqlite) fn put_token(tx: &mut Tx<'_>, token: &Token) -> Result<()> {
    tx.conn.prepare_cached(sql!("registry.sql", "token_put"))?.execute(params![
        token.id,
        token.name,
        &token.hash[..],
        token.scopes.join(" "),
        token.tenant.as_ref().map(Tenant::as_str),
        token.queues.as_ref().map(|names| names.iter().map(QueueName::as_str).collect::<Vec<_>>().join(" ")),
        token.created_at.as_millis(),
        token.expires_at.map(Timestamp::as_millis),
        token.revoked_at.map(Timestamp::as_millis),
    ])?;
    Ok(())
}

pub(in crate::store::sqlite) fn revoke_token(tx: &mut Tx<'_>, id: &str) -> Result<bool> {
    Ok(tx.conn.prepare_cached(sql!("registry.sql", "token_revoke"))?.execute(params![id, tx.now.as_millis()])? > 0)
}

pub(in crate::store::sqlite) fn put_session(tx: &mut Tx<'_>, session: &Session) -> Result<()> {
    tx.conn.prepare_cached(sql!("registry.sql", "sessions_ended"))?.execute([tx.now.as_millis()])?;
    tx.conn.prepare_cached(sql!("registry.sql", "session_put"))?.execute(params![
        &session.hash[..],
        session.token,
        session.created_at.as_millis(),
        session.expires_at.as_millis(),
    ])?;
    Ok(())
}

pub(in crate::store::sqlite) fn remove_session(tx: &mut Tx<'_>, hash: &[u8; 32]) -> Result<bool> {
    Ok(tx.conn.prepare_cached(sql!("registry.sql", "session_remove"))?.execute([&hash[..]])? > 0)
}

pub(in crate::store::sqlite) fn report_worker(tx: &mut Tx<'_>, report: &WorkerReport) -> Result<()> {
    tx.conn.prepare_cached(sql!("registry.sql", "worker_report"))?.execute(params![
        &*report.worker.0,
        report.host,
        report.version,
        serde_json::json!(report.queues).to_string(),
        report.kinds.as_ref().map(|kinds| serde_json::json!(kinds).to_string()),
        report.running,
        report.started_at.as_millis(),
        report.seen_at.as_millis(),
    ])?;
    Ok(())
}

pub(in crate::store::sqlite) fn change_alert(tx: &mut Tx<'_>, change: &AlertChange) -> Result<bool> {
    let alert = &change.after;
    let mut select = tx.conn.prepare_cached(sql!("registry.sql", "alert"))?;
    let before = rows::all(select.query(params![alert.rule, alert.subject])?, |row| {
        let status = rows::word(row, alert::status, AlertStatus::parse)?;
        Ok((status, row.get(alert::incident)?, rows::moment(row, alert::notified_at)?))
    })?;
    if before.into_iter().next() != change.before {
        return Ok(false);
    }
    tx.conn.prepare_cached(sql!("registry.sql", "alert_put"))?.execute(params![
        alert.rule,
        alert.measure,
        alert.subject,
        alert.tenant,
        alert.queue,
        alert.status.as_str(),
        alert.incident,
        alert.since.as_millis(),
        alert.fired_at.map(Timestamp::as_millis),
        alert.resolved_at.map(Timestamp::as_millis),
        alert.notified_at.map(Timestamp::as_millis),
        alert.detail,
    ])?;
    for notice in &change.notices {
        commit::store_follow_up(tx, notice)?;
    }
    Ok(true)
}

pub(in crate::store::sqlite) fn audit(tx: &Tx<'_>, entry: &Audit) -> Result<()> {
    let mut insert = tx.conn.prepare_cached(sql!("registry.sql", "audit"))?;
    let count = i64::try_from(entry.count).unwrap_or(i64::MAX);
    insert.execute(params![entry.at.as_millis(), entry.by, entry.action, count, entry.detail])?;
    Ok(())
}

/// A queue that was just registered or found.
pub(in crate::store::sqlite) fn queue_row(tx: &Tx<'_>, id: QueueId) -> Result<Queue> {
    let mut select = tx.conn.prepare_cached(sql!("queues.sql", "queue"))?;
    let found = rows::all(select.query([id.0])?, rows::queue)?;
    found
        .into_iter()
        .next()
        .ok_or_else(|| StoreError::corrupt(format!("queue {}", id.0), "a registered queue has a row"))
}

impl Reader {
    pub(in crate::store::sqlite) fn installation(&mut self) -> Result<String> {
        Ok(self.conn.prepare_cached(sql!("registry.sql", "installation"))?.query_row([], rows::only)?)
    }

    pub(in crate::store::sqlite) fn stored_settings(&mut self) -> Result<Vec<Setting>> {
        let mut select = self.conn.prepare_cached(sql!("queues.sql", "settings"))?;
        rows::all(select.query([])?, stored_setting)
    }

    pub(in crate::store::sqlite) fn holders(&mut self, ids: &[i64]) -> Result<Vec<Holder>> {
        let mut select = self.conn.prepare_cached(sql!("leases.sql", "holders"))?;
        rows::all(select.query([serde_json::json!(ids).to_string()])?, |row| {
            Ok(Holder {
                job: JobId(row.get(holder::id)?),
                worker: row.get(holder::worker)?,
                started_at: Timestamp::from_millis(row.get(holder::claimed_at)?),
                lease_until: Timestamp::from_millis(row.get(holder::expires_at)?),
            })
        })
    }

    pub(in crate::store::sqlite) fn tokens(&mut self) -> Result<Vec<Token>> {
        let mut select = self.conn.prepare_cached(sql!("registry.sql", "tokens"))?;
        rows::all(select.query([])?, |row| {
            let tenant: Option<String> = row.get(token::tenant)?;
            let queues: Option<String> = row.get(token::queues)?;
            let bad = |error: windlass_core::NameError| StoreError::corrupt("a token", error.to_string());
            Ok(Token {
                id: row.get(token::id)?,
                name: row.get(token::name)?,
                hash: row.get(token::hash)?,
                scopes: rows::must(row, token::scopes)?.split_whitespace().map(str::to_owned).collect(),
                tenant: tenant.map(|name| Tenant::new(&name)).transpose().map_err(bad)?,
                queues: queues
                    .map(|names| names.split_whitespace().map(QueueName::new).collect())
                    .transpose()
                    .map_err(bad)?,
                created_at: Timestamp::from_millis(row.get(token::created_at)?),
                expires_at: rows::moment(row, token::expires_at)?,
                revoked_at: rows::moment(row, token::revoked_at)?,
            })
        })
    }

    pub(in crate::store::sqlite) fn sessions(&mut self, now: Timestamp) -> Result<Vec<Session>> {
        let mut select = self.conn.prepare_cached(sql!("registry.sql", "sessions"))?;
        rows::all(select.query([now.as_millis()])?, |row| {
            Ok(Session {
                hash: row.get(session::hash)?,
                token: row.get(session::token)?,
                created_at: Timestamp::from_millis(row.get(session::created_at)?),
                expires_at: Timestamp::from_millis(row.get(session::expires_at)?),
            })
        })
    }

    pub(in crate::store::sqlite) fn workers(&mut self, since: Timestamp) -> Result<Vec<WorkerReport>> {
        let mut select = self.conn.prepare_cached(sql!("registry.sql", "workers"))?;
        rows::all(select.query([since.as_millis()])?, |row| {
            Ok(WorkerReport {
                worker: WorkerId::new(rows::must(row, worker::worker)?),
                host: row.get(worker::host)?,
                version: row.get(worker::version)?,
                queues: serde_json::from_str(rows::must(row, worker::queues)?)
                    .map_err(|error| StoreError::corrupt("a worker's queues", error.to_string()))?,
                kinds: rows::maybe(row, worker::kinds)?
                    .map(serde_json::from_str)
                    .transpose()
                    .map_err(|error| StoreError::corrupt("a worker's kinds", error.to_string()))?,
                running: row.get(worker::running)?,
                started_at: Timestamp::from_millis(row.get(worker::started_at)?),
                seen_at: Timestamp::from_millis(row.get(worker::seen_at)?),
            })
        })
    }

    pub(in crate::store::sqlite) fn alerts(&mut self) -> Result<Vec<Alert>> {
        let mut select = self.conn.prepare_cached(sql!("registry.sql", "alerts"))?;
        rows::all(select.query([])?, |row: &Row<'_>| {
            Ok(Alert {
                rule: row.get(alert::rule)?,
                measure: row.get(alert::measure)?,
                tenant: row.get(alert::tenant)?,
                queue: row.get(alert::queue)?,
                subject: row.get(alert::subject)?,
                status: rows::word(row, alert::status, AlertStatus::parse)?,
                incident: row.get(alert::incident)?,
                since: Timestamp::from_millis(row.get(alert::since)?),
                fired_at: rows::moment(row, alert::fired_at)?,
                resolved_at: rows::moment(row, alert::resolved_at)?,
                notified_at: rows::moment(row, alert::notified_at)?,
                detail: row.get(alert::detail)?,
            })
        })
    }

    pub(in crate::store::sqlite) fn audits(&mut self, limit: u32) -> Result<Vec<Audit>> {
        let mut select = self.conn.prepare_cached(sql!("registry.sql", "audits"))?;
        rows::all(select.query([limit])?, |row| {
            Ok(Audit {
                at: Timestamp::from_millis(row.get(audit::at)?),
                by: row.get(audit::by)?,
                action: row.get(audit::action)?,
                count: row.get::<_, i64>(audit::count)?.max(0) as u64,
                detail: row.get(audit::detail)?,
            })
        })
    }
}
