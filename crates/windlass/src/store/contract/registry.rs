//! What a store keeps in addition to jobs: queues, settings, schedules, tokens, workers, alerts, audit; and the store
//! itself.

use super::*;
use crate::clock::Clock;
use crate::store::{GateName, Health, WorkerLock};
use crate::wake::Wake;
use async_trait::async_trait;
use windlass_core::gate::Hold;
use windlass_core::job::{QueueName, Tenant};
use windlass_core::{Executor, JobId, Millis, Timestamp};

/// What a store keeps in addition to jobs: queues, settings, schedules, tokens, workers, alerts, audit; and the store
/// itself.
#[async_trait]
pub trait Registry: std::fmt::Debug + Send + Sync {
    /// All queues.
    async fn queues(&self) -> Result<Vec<Queue>>;

    /// The queue's row, created if it does not exist.
    async fn register_queue(&self, tenant: &Tenant, name: &QueueName, executor: Executor) -> Result<Queue>;

    /// Pauses or resumes every queue of this name in the tenant, whatever its executor. Returns how many there are.
    async fn pause_queue(&self, tenant: &Tenant, name: &QueueName, paused: bool) -> Result<u64>;

    /// Holds a gate, or ends its hold. Returns whether it was held before.
    async fn put_hold(&self, name: &GateName, hold: Option<&Hold>) -> Result<bool>;

    /// The id that was drawn at random when the store was created.
    async fn installation(&self) -> Result<String>;

    /// The settings in force, sorted by key. Their values are JSON text.
    async fn settings(&self) -> Result<Vec<(SettingKey, String)>> {
        Ok(in_force(self.stored_settings().await?))
    }

    /// Every setting of every source, in any order.
    async fn stored_settings(&self) -> Result<Vec<Setting>>;

    /// Sets or removes a setting for the operator: it is in force until removed, whatever files say. Retention in a
    /// queue's setting takes effect on this node at once, on others within seconds.
    async fn put_setting(&self, key: &SettingKey, value: Option<&str>) -> Result<()>;

    /// Replaces the settings that a node's file and environment name. Also removes those of nodes that left or have not
    /// been seen for [`NODE_FOR`].
    async fn put_node_settings(&self, node: &str, settings: &[NodeSetting]) -> Result<()>;

    /// Records that a node is alive, or that it leaves. A node that is alive also removes the settings of nodes that
    /// left or have not been seen for [`NODE_FOR`].
    async fn touch_node(&self, node: &str, presence: Presence) -> Result<()>;

    /// Stores a schedule.
    async fn add_schedule(&self, spec: ScheduleSpec, next_at: Option<Timestamp>) -> Result<Schedule>;

    /// A schedule.
    async fn schedule(&self, scope: &Scope, id: JobId) -> Result<Option<Schedule>>;

    /// A page of schedules.
    async fn schedules(&self, scope: &Scope, page: Page) -> Result<Vec<Schedule>>;

    /// Changes a schedule. `None` if there is no such schedule in scope.
    async fn change_schedule(&self, scope: &Scope, id: JobId, change: ScheduleChange) -> Result<Option<Schedule>>;

    /// Removes a schedule; its runs stay. Returns whether it existed.
    async fn remove_schedule(&self, scope: &Scope, id: JobId) -> Result<bool>;

    /// Stores or changes a token.
    async fn put_token(&self, token: &Token) -> Result<()>;

    /// All tokens.
    async fn tokens(&self) -> Result<Vec<Token>>;

    /// Revokes a token. Returns whether an unrevoked one existed.
    async fn revoke_token(&self, id: &str) -> Result<bool>;

    /// Stores a session, and removes those that have ended.
    async fn put_session(&self, session: &Session) -> Result<()>;

    /// The sessions that have not ended.
    async fn sessions(&self) -> Result<Vec<Session>>;

    /// Removes a session. Returns whether it existed.
    async fn remove_session(&self, hash: &[u8; 32]) -> Result<bool>;

    /// Takes the lock of a worker id for as long as the guard lives, or `None` if another process holds it.
    async fn lock_worker(&self, worker: &WorkerId) -> Result<Option<WorkerLock>>;

    /// Records a worker's report.
    async fn report_worker(&self, report: &WorkerReport) -> Result<()>;

    /// Workers seen at or after `since`.
    async fn workers(&self, since: Timestamp) -> Result<Vec<WorkerReport>>;

    /// All alerts.
    async fn alerts(&self) -> Result<Vec<Alert>>;

    /// Changes an alert. Returns whether this call made the change: only one of several nodes does.
    async fn change_alert(&self, change: AlertChange) -> Result<bool>;

    /// Records what an operator did.
    async fn audit(&self, entry: &Audit) -> Result<()>;

    /// The latest entries, newest first.
    async fn audits(&self, limit: u32) -> Result<Vec<Audit>>;

    /// The next rows of texts after a place, in the order of places: of jobs, attempts and schedules. Empty at the end,
    /// and in a store that does not outlive its process.
    async fn texts(&self, _after: Option<&TextPlace>, _limit: u32) -> Result<Vec<StoredText>> {
        Ok(Vec::new())
    }

    /// Replaces the texts of rows that are as they were read. Returns how many were.
    async fn replace_texts(&self, _changes: Vec<TextChange>) -> Result<u64> {
        Ok(0)
    }

    /// Brings the schema up to date. Repeating it changes nothing.
    async fn migrate(&self) -> Result<()>;

    /// Whether the store can be written to, with warnings for the operator.
    async fn health(&self) -> Result<Health>;

    /// Reads the whole store once. Returns what is damaged, as far as the store itself can tell; a database server has
    /// its own tools for that.
    async fn verify(&self) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    /// The store's clock.
    fn clock(&self) -> &Clock;

    /// How much later than this process other ones may notice that the store answers again after an outage. Zero for a
    /// store that all of them reach at the same time.
    fn notice_time(&self) -> Millis {
        Millis::ZERO
    }

    /// Signalled when work may have become due. A hint, without a guarantee.
    fn wake(&self) -> &Wake;
}
