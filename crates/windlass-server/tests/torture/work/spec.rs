//! One job as a producer wants it.

use crate::tools::{below, chance};
use serde_json::{Value, json};
use windlass::Random;

/// The queues that remote workers serve.
pub const QUEUES: [&str; 3] = ["red", "green", "blue"];
/// A signing secret of the right form.
const SECRET: &str = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=";

/// What a job's attempts come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// A remote worker does it at once.
    Work,
    /// A remote worker fails its first attempt.
    FailsOnce,
    /// The node calls the receiver.
    Call,
    /// The receiver refuses the first attempt.
    CallFailsOnce,
}

#[derive(Debug, Clone, Copy)]
pub struct Spec {
    /// The producer's own number of the job, in its payload and its key.
    pub tag: u64,
    pub task: Task,
    pub at_most_once: bool,
    pub has_key: bool,
    pub has_webhook: bool,
    padding: usize,
    queue: &'static str,
}

impl Spec {
    pub fn draw(random: &Random, tag: u64, has_key: bool) -> Self {
        let task = match below(random, 100) {
            0..80 => Task::Work,
            80..94 => Task::FailsOnce,
            94..98 => Task::Call,
            _ => Task::CallFailsOnce,
        };
        let padding = if chance(random, 2) { below(random, 16_384) } else { below(random, 100) };
        Self {
            tag,
            task,
            at_most_once: chance(random, 25),
            has_key,
            has_webhook: chance(random, 3),
            padding: padding as usize,
            queue: QUEUES[below(random, 3) as usize],
        }
    }

    /// As the API takes it.
    pub fn body(&self, receiver: &str) -> Value {
        // Soon, and for as long as it takes: what is lost to faults is tried again until it is done.
        let retry =
            json!({"strategy": "fixed", "base": "50ms", "jitter": "none", "maxRetries": 1000, "maxCrashes": 1000});
        let mut body = json!({
            "kind": "torture", "queue": self.queue, "retry": retry,
            "delivery": if self.at_most_once { "AT_MOST_ONCE" } else { "AT_LEAST_ONCE" },
            "payload": {"tag": self.tag, "failsOnce": self.fails_once(), "padding": "x".repeat(self.padding)},
        });
        if self.has_key {
            body["idempotencyKey"] = json!(format!("key-{}", self.tag));
        }
        if self.calls() {
            body["http"] = json!({"url": format!("{receiver}/call")});
        }
        if self.has_webhook {
            body["webhook"] = json!({"url": format!("{receiver}/hook"), "secret": SECRET, "policy": retry});
        }
        body
    }

    pub fn calls(&self) -> bool {
        matches!(self.task, Task::Call | Task::CallFailsOnce)
    }

    fn fails_once(&self) -> bool {
        matches!(self.task, Task::FailsOnce | Task::CallFailsOnce)
    }
}
