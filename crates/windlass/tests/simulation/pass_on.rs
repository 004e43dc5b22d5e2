//! What a store that wraps another one passes on unchanged.

/// Reads go to the inner store.
macro_rules! pass_on_reads {
    ($store:ty) => {
        #[async_trait]
        impl Reads for $store {
            async fn job(&self, scope: &Scope, id: JobId) -> Result<Option<Job>> {
                self.inner.job(scope, id).await
            }
            async fn keyed(&self, tenant: &Tenant, key: &str) -> Result<Option<KeyedJob>> {
                self.inner.keyed(tenant, key).await
            }
            async fn jobs(&self, scope: &Scope, filter: &JobFilter, page: Page) -> Result<Vec<Job>> {
                self.inner.jobs(scope, filter, page).await
            }
            async fn holders(&self, ids: &[JobId]) -> Result<Vec<Holder>> {
                self.inner.holders(ids).await
            }
            async fn parked(&self, ids: &[JobId]) -> Result<Vec<ParkedJob>> {
                self.inner.parked(ids).await
            }
            async fn parked_before(&self, id: JobId) -> Result<u64> {
                self.inner.parked_before(id).await
            }
            async fn gates(&self, scope: &Scope, queue: Option<&QueueName>, limit: u32) -> Result<Vec<GateStatus>> {
                self.inner.gates(scope, queue, limit).await
            }
            async fn attempts(&self, scope: &Scope, id: JobId, limit: u32) -> Result<Vec<Attempt>> {
                self.inner.attempts(scope, id, limit).await
            }
            async fn schedule_attempts(
                &self,
                scope: &Scope,
                schedule: JobId,
                limit: u32,
            ) -> Result<Vec<(JobId, Attempt)>> {
                self.inner.schedule_attempts(scope, schedule, limit).await
            }
            async fn dead_groups(&self, scope: &Scope, filter: &JobFilter, limit: u32) -> Result<Vec<DeadGroup>> {
                self.inner.dead_groups(scope, filter, limit).await
            }
            async fn dead_series(&self, scope: &Scope, filter: &JobFilter, steps: Steps) -> Result<Vec<DeadCount>> {
                self.inner.dead_series(scope, filter, steps).await
            }
            async fn series(&self, scope: &Scope, steps: Steps) -> Result<Vec<(usize, Queue, Tally)>> {
                self.inner.series(scope, steps).await
            }
            async fn depths(&self, scope: &Scope) -> Result<Vec<Depth>> {
                self.inner.depths(scope).await
            }
            async fn tallies(&self, scope: &Scope, since: Option<Timestamp>) -> Result<Vec<(Queue, Kind, Tally)>> {
                self.inner.tallies(scope, since).await
            }
        }
    };
}

/// Everything a store keeps besides jobs goes to the inner store, except the methods given.
macro_rules! pass_on_registry {
    ($store:ty, $($own:tt)*) => {
        #[async_trait]
        impl Registry for $store {
            async fn queues(&self) -> Result<Vec<Queue>> {
                self.inner.queues().await
            }
            async fn register_queue(&self, tenant: &Tenant, name: &QueueName, executor: Executor) -> Result<Queue> {
                self.inner.register_queue(tenant, name, executor).await
            }
            async fn put_hold(&self, name: &GateName, hold: Option<&Hold>) -> Result<bool> {
                self.inner.put_hold(name, hold).await
            }
            async fn installation(&self) -> Result<String> {
                self.inner.installation().await
            }
            async fn stored_settings(&self) -> Result<Vec<Setting>> {
                self.inner.stored_settings().await
            }
            async fn put_node_settings(&self, node: &str, settings: &[NodeSetting]) -> Result<()> {
                self.inner.put_node_settings(node, settings).await
            }
            async fn touch_node(&self, node: &str, presence: Presence) -> Result<()> {
                self.inner.touch_node(node, presence).await
            }
            async fn add_schedule(&self, spec: ScheduleSpec, next_at: Option<Timestamp>) -> Result<Schedule> {
                self.inner.add_schedule(spec, next_at).await
            }
            async fn schedule(&self, scope: &Scope, id: JobId) -> Result<Option<Schedule>> {
                self.inner.schedule(scope, id).await
            }
            async fn schedules(&self, scope: &Scope, page: Page) -> Result<Vec<Schedule>> {
                self.inner.schedules(scope, page).await
            }
            async fn change_schedule(&self, scope: &Scope, id: JobId, change: ScheduleChange) -> Result<Option<Schedule>> {
                self.inner.change_schedule(scope, id, change).await
            }
            async fn remove_schedule(&self, scope: &Scope, id: JobId) -> Result<bool> {
                self.inner.remove_schedule(scope, id).await
            }
            async fn put_session(&self, session: &Session) -> Result<()> {
                self.inner.put_session(session).await
            }
            async fn sessions(&self) -> Result<Vec<Session>> {
                self.inner.sessions().await
            }
            async fn remove_session(&self, hash: &[u8; 32]) -> Result<bool> {
                self.inner.remove_session(hash).await
            }
            async fn put_token(&self, token: &Token) -> Result<()> {
                self.inner.put_token(token).await
            }
            async fn tokens(&self) -> Result<Vec<Token>> {
                self.inner.tokens().await
            }
            async fn revoke_token(&self, id: &str) -> Result<bool> {
                self.inner.revoke_token(id).await
            }
            async fn lock_worker(&self, worker: &WorkerId) -> Result<Option<WorkerLock>> {
                self.inner.lock_worker(worker).await
            }
            async fn report_worker(&self, report: &WorkerReport) -> Result<()> {
                self.inner.report_worker(report).await
            }
            async fn workers(&self, since: Timestamp) -> Result<Vec<WorkerReport>> {
                self.inner.workers(since).await
            }
            async fn alerts(&self) -> Result<Vec<Alert>> {
                self.inner.alerts().await
            }
            async fn change_alert(&self, change: AlertChange) -> Result<bool> {
                self.inner.change_alert(change).await
            }
            async fn audit(&self, entry: &Audit) -> Result<()> {
                self.inner.audit(entry).await
            }
            async fn audits(&self, limit: u32) -> Result<Vec<Audit>> {
                self.inner.audits(limit).await
            }
            async fn migrate(&self) -> Result<()> {
                self.inner.migrate().await
            }
            async fn health(&self) -> Result<Health> {
                self.inner.health().await
            }
            fn clock(&self) -> &Clock {
                self.inner.clock()
            }
            fn notice_time(&self) -> Millis {
                self.inner.notice_time()
            }
            fn wake(&self) -> &Wake {
                self.inner.wake()
            }

            $($own)*
        }

        #[async_trait]
        impl windlass::low_level::stores::Transfer for $store {
            async fn last_id(&self) -> Result<JobId> {
                self.inner.last_id().await
            }
            async fn copies(
                &self,
                after: Option<JobId>,
                limit: u32,
            ) -> Result<Vec<windlass::low_level::stores::JobCopy>> {
                self.inner.copies(after, limit).await
            }
            async fn import(
                &self,
                import: windlass::low_level::stores::Import,
            ) -> Result<windlass::low_level::stores::Imported> {
                self.inner.import(import).await
            }
        }
    };
}

pub(crate) use {pass_on_reads, pass_on_registry};
