//! Which queues a worker serves.

use crate::store::Queue;
use windlass_core::Executor;
use windlass_core::job::QueueName;

/// A number of slots for some queues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Subscription {
    pub queues: Queues,
    pub executor: Executor,
    pub concurrency: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Queues {
    /// The queues of this name, of all tenants.
    Named(QueueName),
    /// All queues that no other subscription names.
    Others,
}

impl Subscription {
    /// The subscription that covers a queue. A subscription by name takes precedence.
    pub(crate) fn find(subscriptions: &[Self], queue: &Queue) -> Option<usize> {
        let named = |subscription: &Self| {
            subscription.executor == queue.executor && subscription.queues == Queues::Named(queue.name.clone())
        };
        let other =
            |subscription: &Self| subscription.executor == queue.executor && subscription.queues == Queues::Others;
        subscriptions.iter().position(named).or_else(|| subscriptions.iter().position(other))
    }

    pub(crate) fn name(&self) -> String {
        match &self.queues {
            Queues::Named(name) => name.to_string(),
            Queues::Others => format!("* ({})", self.executor),
        }
    }
}
