//! What is kept beside jobs: queues, settings, tokens, workers, alerts, audit.

use crate::store::postgres::Inner;
use crate::store::postgres::connection::fault::again;
use crate::store::postgres::connection::pool::On;
use crate::store::postgres::life::names::Numbers;
use crate::store::postgres::statements::Sql;
use crate::store::postgres::statements::columns::Columns;
use crate::store::postgres::statements::rows;
use crate::store::{
    Alert, AlertChange, AlertStatus, Audit, Queue, SettingKey, StoreError, Token, WorkerId, WorkerReport,
};
use futures_util::join;
use tokio_postgres::Row;
use windlass_core::Timestamp;
use windlass_core::job::{QueueName, Tenant};

impl Inner {
    pub(in crate::store::postgres) async fn queues(&self) -> Result<Vec<Queue>, StoreError> {
        self.read(Sql::Queues, &[]).await?.iter().map(rows::queue).collect()
    }

    pub(in crate::store::postgres) async fn pause_queue(
        &self,
        tenant: &Tenant,
        name: &QueueName,
        paused: bool,
    ) -> Result<u64, StoreError> {
        let rows = self.write(Sql::QueuePause, &[&tenant.as_str(), &name.as_str(), &paused]).await?;
        Ok(rows.len() as u64)
    }

    pub(in crate::store::postgres) async fn settings(&self) -> Result<Vec<(SettingKey, String)>, StoreError> {
        again(|| async {
            let lent = self.pool.get().await?;
            self.settings_on(On::Own(&lent)).await
        })
        .await
    }

    pub(in crate::store::postgres) async fn put_setting(
        &self,
        key: &SettingKey,
        value: Option<&str>,
    ) -> Result<(), StoreError> {
        let (scope, tenant, name) = key.parts();
        match value {
            Some(value) => self.write(Sql::SettingPut, &[&scope, &tenant, &name, &value]).await?,
            None => self.write(Sql::SettingRemove, &[&scope, &tenant, &name]).await?,
        };
        self.remembered.forget();
        Ok(())
    }

    pub(in crate::store::postgres) async fn put_token(&self, token: &Token) -> Result<(), StoreError> {
        let params: crate::store::postgres::connection::pool::Params<'_> = &[
            &token.id,
            &token.name,
            &token.hash.as_slice(),
            &token.scopes,
            &token.tenant.as_ref().map(Tenant::as_str),
            &token.created_at.as_millis(),
            &token.revoked_at.map(Timestamp::as_millis),
        ];
        self.write(Sql::TokenPut, params).await.map(drop)
    }

    pub(in crate::store::postgres) async fn tokens(&self) -> Result<Vec<Token>, StoreError> {
        self.read(Sql::Tokens, &[]).await?.iter().map(token).collect()
    }

    pub(in crate::store::postgres) async fn revoke_token(&self, id: &str) -> Result<bool, StoreError> {
        Ok(!self.write(Sql::TokenRevoke, &[&self.fixed(), &id]).await?.is_empty())
    }

    pub(in crate::store::postgres) async fn report_worker(&self, report: &WorkerReport) -> Result<(), StoreError> {
        let (queues, concurrency): (Vec<&str>, Vec<i64>) =
            report.queues.iter().map(|(name, slots)| (name.as_str(), i64::from(*slots))).unzip();
        let params: crate::store::postgres::connection::pool::Params<'_> = &[
            &&*report.worker.0,
            &report.host,
            &report.version,
            &queues,
            &concurrency,
            &i64::from(report.running),
            &report.started_at.as_millis(),
            &report.seen_at.as_millis(),
        ];
        self.write(Sql::WorkerReport, params).await.map(drop)
    }

    pub(in crate::store::postgres) async fn workers(&self, since: Timestamp) -> Result<Vec<WorkerReport>, StoreError> {
        let mut workers: Vec<WorkerReport> =
            self.read(Sql::Workers, &[&since.as_millis()]).await?.iter().map(worker).collect::<Result<_, _>>()?;
        workers.sort_by(|a, b| a.worker.cmp(&b.worker));
        Ok(workers)
    }

    pub(in crate::store::postgres) async fn alerts(&self) -> Result<Vec<Alert>, StoreError> {
        let mut alerts: Vec<Alert> = self.read(Sql::Alerts, &[]).await?.iter().map(alert).collect::<Result<_, _>>()?;
        alerts.sort_by(|a, b| (&a.rule, &a.subject).cmp(&(&b.rule, &b.subject)));
        Ok(alerts)
    }

    pub(in crate::store::postgres) async fn change_alert(&self, change: &AlertChange) -> Result<bool, StoreError> {
        again(|| async {
            let numbers = self.numbers(&change.notices).await?;
            let lent = self.pool.get().await?;
            let (begun, changed) = join!(lent.begin(), self.change_alert_on(On::Own(&lent), change, &numbers));
            lent.conclude(begun, changed).await
        })
        .await
    }

    async fn change_alert_on(&self, on: On<'_>, change: &AlertChange, numbers: &[Numbers]) -> Result<bool, StoreError> {
        let after = &change.after;
        let status = after.status.as_str();
        let (since, fired_at) = (after.since.as_millis(), after.fired_at.map(Timestamp::as_millis));
        let resolved_at = after.resolved_at.map(Timestamp::as_millis);
        let mut params: Vec<&(dyn tokio_postgres::types::ToSql + Sync)> =
            vec![&after.rule, &after.subject, &status, &after.incident, &since, &fired_at, &resolved_at, &after.detail];
        let before = change.before.map(|(status, incident)| (status.as_str(), incident));
        let changed = match &before {
            None => on.query(Sql::AlertAdd, &params).await?,
            Some((status, incident)) => {
                params.extend::<[&(dyn tokio_postgres::types::ToSql + Sync); 2]>([status, incident]);
                on.query(Sql::AlertChange, &params).await?
            }
        };
        if changed.is_empty() {
            return Ok(false);
        }
        let places: Vec<usize> = (0..change.notices.len()).collect();
        self.insert(on, &change.notices, numbers, &places).await?;
        Ok(true)
    }

    pub(in crate::store::postgres) async fn audit(&self, entry: &Audit) -> Result<(), StoreError> {
        let params: crate::store::postgres::connection::pool::Params<'_> =
            &[&entry.at.as_millis(), &entry.by, &entry.action, &(entry.count as i64), &entry.detail];
        self.write(Sql::Audit, params).await.map(drop)
    }

    pub(in crate::store::postgres) async fn audits(&self, limit: u32) -> Result<Vec<Audit>, StoreError> {
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
        self.read(Sql::Audits, &[&i64::from(limit)]).await?.iter().map(audit).collect()
    }
}

fn token(row: &Row) -> Result<Token, StoreError> {
    let c = Columns::new(row);
    let id: String = c.get("id")?;
    let corrupt = |rule: &str| StoreError::corrupt(format!("token {id}"), rule);
    let hash: &[u8] = c.get("hash")?;
    let tenant: Option<&str> = c.get("tenant")?;
    Ok(Token {
        name: c.get("name")?,
        hash: hash.try_into().map_err(|_| corrupt("hashes have 32 bytes"))?,
        scopes: c.get("scopes")?,
        tenant: tenant.map(Tenant::new).transpose().map_err(|_| corrupt("tenants are names"))?,
        created_at: c.moment("created_at")?,
        revoked_at: c.moment_if("revoked_at")?,
        id,
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
        subject,
        status,
        incident: c.get("incident")?,
        since: c.moment("since")?,
        fired_at: c.moment_if("fired_at")?,
        resolved_at: c.moment_if("resolved_at")?,
        detail: c.get("detail")?,
    })
}
