//! QUEUE and FLUSH: pause, resume, empty and list queues.

use super::command::QueueAction;
use super::reply::Reply;
use super::session::Session;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use windlass::StoreError;
use windlass_core::Executor;
use windlass_core::job::QueueName;

/// Every queue.
const ALL: &str = "*";
/// Who acts, for the audit.
const BY: &str = "faktory";

impl Session {
    pub(super) async fn queue(&self, action: QueueAction, names: &[&str]) -> Result<Reply, Reply> {
        let queues = self.windlass().queues().by(BY);
        match action {
            QueueAction::List => {
                let names: Vec<Value> = self.queue_names().await?.iter().map(|name| json!(name.as_str())).collect();
                return Ok(Reply::Text(Value::Array(names).to_string()));
            }
            QueueAction::Latency => return self.latency(names).await,
            QueueAction::Pause | QueueAction::Resume | QueueAction::Remove => {}
        }
        if names.is_empty() {
            return Err(Reply::Error("QUEUE needs the names of queues, or * for all".into()));
        }
        for name in self.named(names).await? {
            match action {
                QueueAction::Pause => drop(queues.pause(&name).await?),
                QueueAction::Resume => drop(queues.resume(&name).await?),
                QueueAction::Remove => drop(queues.purge(&name).await?),
                QueueAction::List | QueueAction::Latency => {}
            }
        }
        Ok(Reply::Ok)
    }

    async fn named(&self, names: &[&str]) -> Result<Vec<QueueName>, Reply> {
        if names.contains(&ALL) {
            return Ok(self.queue_names().await?);
        }
        names.iter().map(|name| QueueName::new(name).map_err(|error| Reply::Error(error.to_string()))).collect()
    }

    async fn queue_names(&self) -> Result<Vec<QueueName>, StoreError> {
        let rows = self.windlass().queues().rows().await?;
        let mut names: Vec<QueueName> =
            rows.into_iter().filter(|queue| queue.executor == Executor::Worker).map(|queue| queue.name).collect();
        names.sort();
        names.dedup();
        Ok(names)
    }

    /// For each queue, how long its oldest due job has waited, in seconds.
    async fn latency(&self, names: &[&str]) -> Result<Reply, Reply> {
        let now = self.windlass().clock().now();
        let mut longest: BTreeMap<String, f64> = names.iter().map(|name| ((*name).to_owned(), 0.0)).collect();
        for queue in self.windlass().queues().list().await? {
            if let (Some(seconds), Some(due)) = (longest.get_mut(queue.name.as_str()), queue.oldest_due) {
                *seconds = seconds.max(now.since(due).get() as f64 / 1000.0);
            }
        }
        Ok(Reply::Text(json!(longest).to_string()))
    }

    /// Cancels every waiting job of every queue. Only if the operator allowed it.
    pub(super) async fn flush(&self) -> Result<Reply, Reply> {
        if !self.may_flush() {
            return Err(Reply::Error("FLUSH is not allowed here: start the server with --faktory-allow-flush".into()));
        }
        let queues = self.windlass().queues().by(BY);
        for name in self.queue_names().await? {
            queues.purge(&name).await?;
        }
        Ok(Reply::Ok)
    }
}
