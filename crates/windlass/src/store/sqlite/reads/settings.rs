//! Small tables: settings, tokens, workers, alerts, audit.

use crate::store::sqlite::connection::readers::Reader;
use crate::store::sqlite::connection::sql::sql;
use crate::store::sqlite::connection::tx::Tx;
use crate::store::sqlite::reads::rows;
use crate::store::{Alert, AlertChange, AlertStatus, Audit, SettingKey, StoreError, Token, WorkerId, WorkerReport};
use rusqlite::{Row, params};
use windlass_core::Timestamp;
use windlass_core::job::Tenant;

type Result<T> = std::result::Result<T, StoreError>;

impl Tx<'_> {
    pub(in crate::store::sqlite) fn put_setting(&mut self, key: &SettingKey, value: Option<&str>) -> Result<()> {
        let (scope, tenant, name) = key.parts();
        match value {
            Some(text) => self.conn.prepare_cached(sql!("setting_put"))?.execute(params![scope, tenant, name, text])?,
            None => self.conn.prepare_cached(sql!("setting_delete"))?.execute(params![scope, tenant, name])?,
        };
        self.retentions.forget();
        Ok(())
    }

    pub(in crate::store::sqlite) fn pause_queue(&mut self, tenant: &str, name: &str, paused: bool) -> Result<u64> {
        self.rings = true;
        Ok(self.conn.prepare_cached(sql!("queue_pause"))?.execute(params![tenant, name, paused])? as u64)
    }

    pub(in crate::store::sqlite) fn put_token(&mut self, token: &Token) -> Result<()> {
        self.conn.prepare_cached(sql!("token_put"))?.execute(params![
            token.id,
            token.name,
            &token.hash[..],
            token.scopes.join(" "),
            token.tenant.as_ref().map(Tenant::as_str),
            token.created_at.as_millis(),
            token.revoked_at.map(Timestamp::as_millis),
        ])?;
        Ok(())
    }

    pub(in crate::store::sqlite) fn revoke_token(&mut self, id: &str) -> Result<bool> {
        Ok(self.conn.prepare_cached(sql!("token_revoke"))?.execute(params![id, self.now.as_millis()])? > 0)
    }

    pub(in crate::store::sqlite) fn report_worker(&mut self, report: &WorkerReport) -> Result<()> {
        self.conn.prepare_cached(sql!("worker_put"))?.execute(params![
            &*report.worker.0,
            report.host,
            report.version,
            serde_json::json!(report.queues).to_string(),
            report.running,
            report.started_at.as_millis(),
            report.seen_at.as_millis(),
        ])?;
        Ok(())
    }

    pub(in crate::store::sqlite) fn change_alert(&mut self, change: &AlertChange) -> Result<bool> {
        let alert = &change.after;
        let mut select = self.conn.prepare_cached(sql!("alert_before"))?;
        let before = rows::all(select.query(params![alert.rule, alert.subject])?, |row| {
            Ok((rows::word(row, 0, AlertStatus::parse)?, row.get(1)?))
        })?;
        if before.into_iter().next() != change.before {
            return Ok(false);
        }
        self.conn.prepare_cached(sql!("alert_put"))?.execute(params![
            alert.rule,
            alert.subject,
            alert.status.as_str(),
            alert.incident,
            alert.since.as_millis(),
            alert.fired_at.map(Timestamp::as_millis),
            alert.resolved_at.map(Timestamp::as_millis),
            alert.detail,
        ])?;
        for notice in &change.notices {
            self.store_follow_up(notice)?;
        }
        Ok(true)
    }
}

impl Reader {
    pub(in crate::store::sqlite) fn settings(&mut self) -> Result<Vec<(SettingKey, String)>> {
        let mut select = self.conn.prepare_cached(sql!("settings_all"))?;
        let mut settings = rows::all(select.query([])?, |row| {
            let key = SettingKey::from_parts(rows::must(row, 0)?, rows::must(row, 1)?, rows::must(row, 2)?);
            Ok((key.ok_or_else(|| StoreError::corrupt("a setting", "its key is one Windlass knows"))?, row.get(3)?))
        })?;
        settings.sort();
        Ok(settings)
    }

    pub(in crate::store::sqlite) fn tokens(&mut self) -> Result<Vec<Token>> {
        let mut select = self.conn.prepare_cached(sql!("tokens_all"))?;
        rows::all(select.query([])?, |row| {
            let tenant: Option<String> = row.get(4)?;
            let bad = |error: windlass_core::NameError| StoreError::corrupt("a token", error.to_string());
            Ok(Token {
                id: row.get(0)?,
                name: row.get(1)?,
                hash: row.get(2)?,
                scopes: rows::must(row, 3)?.split_whitespace().map(str::to_owned).collect(),
                tenant: tenant.map(|name| Tenant::new(&name)).transpose().map_err(bad)?,
                created_at: Timestamp::from_millis(row.get(5)?),
                revoked_at: rows::moment(row, 6)?,
            })
        })
    }

    pub(in crate::store::sqlite) fn workers(&mut self, since: Timestamp) -> Result<Vec<WorkerReport>> {
        let mut select = self.conn.prepare_cached(sql!("workers_since"))?;
        rows::all(select.query([since.as_millis()])?, |row| {
            Ok(WorkerReport {
                worker: WorkerId::new(rows::must(row, 0)?),
                host: row.get(1)?,
                version: row.get(2)?,
                queues: serde_json::from_str(rows::must(row, 3)?)
                    .map_err(|error| StoreError::corrupt("a worker's queues", error.to_string()))?,
                running: row.get(4)?,
                started_at: Timestamp::from_millis(row.get(5)?),
                seen_at: Timestamp::from_millis(row.get(6)?),
            })
        })
    }

    pub(in crate::store::sqlite) fn alerts(&mut self) -> Result<Vec<Alert>> {
        let mut select = self.conn.prepare_cached(sql!("alerts_all"))?;
        rows::all(select.query([])?, |row: &Row<'_>| {
            Ok(Alert {
                rule: row.get(0)?,
                subject: row.get(1)?,
                status: rows::word(row, 2, AlertStatus::parse)?,
                incident: row.get(3)?,
                since: Timestamp::from_millis(row.get(4)?),
                fired_at: rows::moment(row, 5)?,
                resolved_at: rows::moment(row, 6)?,
                detail: row.get(7)?,
            })
        })
    }

    pub(in crate::store::sqlite) fn audits(&mut self, limit: u32) -> Result<Vec<Audit>> {
        let mut select = self.conn.prepare_cached(sql!("audits_latest"))?;
        rows::all(select.query([limit])?, |row| {
            Ok(Audit {
                at: Timestamp::from_millis(row.get(0)?),
                by: row.get(1)?,
                action: row.get(2)?,
                count: row.get::<_, i64>(3)?.max(0) as u64,
                detail: row.get(4)?,
            })
        })
    }
}
