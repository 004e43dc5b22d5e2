//! A worker's identity: its name in leases and the ledger, and the lock that keeps the name exclusive.

use crate::client::windlass::Windlass;
use crate::leases::reconnect::until_answered;
use crate::store::{Reap, StoreError, WorkerId, WorkerLock};
use std::sync::Arc;

/// Leases reaped per call when a worker frees the jobs of its predecessor.
const REAP_BATCH: u32 = 100;

pub(crate) struct Identity {
    pub id: WorkerId,
    pub host: String,
    /// The id of the installation that it works for.
    pub installation: Arc<str>,
    /// Held while the worker lives.
    _lock: Option<WorkerLock>,
}

impl Identity {
    /// Takes the requested name and frees the jobs that a dead process held under it. If the name is in use, adds a
    /// suffix.
    pub(crate) async fn take(windlass: &Windlass, asked: Option<&str>) -> Result<Self, StoreError> {
        let host = host_name();
        let installation = until_answered(windlass, || windlass.installation()).await?;
        let Some(asked) = asked else {
            let id = WorkerId::new(&format!("{host}-{}-{}", std::process::id(), suffix(windlass)));
            return Ok(Self { id, host, installation, _lock: None });
        };
        let id = WorkerId::new(asked);
        if let Some(lock) = until_answered(windlass, || windlass.store().lock_worker(&id)).await? {
            free(windlass, &id).await?;
            return Ok(Self { id, host, installation, _lock: Some(lock) });
        }
        let other = WorkerId::new(&format!("{asked}-{}", suffix(windlass)));
        tracing::info!(worker = %id, "the worker id is in use; this worker uses {other}");
        let lock = until_answered(windlass, || windlass.store().lock_worker(&other)).await?;
        Ok(Self { id: other, host, installation, _lock: lock })
    }
}

/// Reaps the leases of an id whose lock this process holds. The lock proves that the previous holder is gone.
async fn free(windlass: &Windlass, id: &WorkerId) -> Result<(), StoreError> {
    loop {
        let reap = || windlass.store().reap(Reap::Of(id.clone()), REAP_BATCH);
        let transitioned = until_answered(windlass, reap).await?;
        for transitioned in &transitioned {
            windlass.inner().reporter(id.0.clone()).transitioned(transitioned, windlass.clock().now(), None);
        }
        if transitioned.is_empty() {
            return Ok(());
        }
        tracing::info!(worker = %id, count = transitioned.len(), "freed jobs that this worker held before it restarted");
    }
}

fn suffix(windlass: &Windlass) -> String {
    format!("{:08x}", windlass.random().number() >> 32)
}

fn host_name() -> String {
    let read = |path| std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
    let name =
        std::env::var("HOSTNAME").ok().or_else(|| read("/proc/sys/kernel/hostname")).or_else(|| read("/etc/hostname"));
    name.filter(|name| !name.is_empty()).unwrap_or_else(|| "host".into())
}
