//! INFO: the state of the server, as clients read it.

use super::reply::Reply;
use super::session::Session;
use serde_json::{Map, Value, json};
use windlass::client::Scope;
use windlass_core::{Executor, Millis};

/// Counts since the beginning: longer ago than anything can be.
const ALWAYS: Millis = Millis::from_secs(100 * 365 * 86_400);

impl Session {
    pub(super) async fn info(&self) -> Result<Reply, Reply> {
        let now = self.windlass().clock().now();
        let queues = self.windlass().queues().within(&Scope::All).list().await?;
        let queues: Vec<_> = queues.iter().filter(|queue| queue.executors.contains(&Executor::Worker)).collect();
        let mut sizes: Map<String, Value> = Map::new();
        let (mut later, mut running, mut dead) = (0, 0, 0);
        for queue in &queues {
            // Queues of several tenants may have one name.
            let before = sizes.get(queue.name.as_str()).and_then(Value::as_u64).unwrap_or_default();
            sizes.insert(queue.name.to_string(), json!(before + queue.due));
            later += queue.later;
            running += queue.running;
            dead += queue.dead;
        }
        let total = self.windlass().stats().over(ALWAYS).await?.total;
        let size = |size: u64| json!({ "size": size });
        let waiting: u64 = queues.iter().map(|queue| queue.due).sum();
        let info = json!({
            "now": now.to_string(),
            "server_utc_time": format!("{} UTC", now.to_string().get(11..19).unwrap_or_default()),
            "faktory": {
                "queues": sizes,
                "tasks": {
                    "Busy": size(running),
                    "Dead": size(dead),
                    "Retries": size(0),
                    "Scheduled": size(later),
                    "Workers": size(self.workers().list(now).len() as u64),
                },
                "total_enqueued": waiting,
                "total_failures": total.attempts - total.succeeded,
                "total_processed": total.attempts,
                "total_queues": queues.len(),
            },
            "server": {
                "command_count": self.counters().commands(),
                "connections": self.counters().connections(),
                "description": "Windlass",
                "faktory_version": "1.9.0",
                "uptime": self.counters().uptime(self.windlass().clock()).get() / 1000,
                "used_memory_mb": 0,
            },
        });
        Ok(Reply::Text(info.to_string()))
    }
}
