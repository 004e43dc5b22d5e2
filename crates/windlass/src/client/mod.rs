//! The client: the library's only entry point. [`Windlass`](crate::Windlass) enqueues jobs. Each of its other parts is
//! a small handle that borrows it: [`Jobs`], [`Schedules`], [`Queues`], [`DeadLetters`], [`Policies`], [`Stats`], and
//! for operators [`Workers`], [`Alerts`], [`AuditLog`], [`Tokens`] and [`Settings`].

pub(crate) mod dead_letters;
pub(crate) mod enqueue;
pub(crate) mod fleet;
pub(crate) mod inner;
pub(crate) mod jobs;
pub(crate) mod open;
pub(crate) mod policies;
pub(crate) mod queues;
pub(crate) mod rotate;
pub(crate) mod schedules;
pub(crate) mod stats;
pub(crate) mod tenants;
pub(crate) mod transfer;
pub(crate) mod windlass;

#[cfg(feature = "sealing")]
pub use crate::sealing::{Progress, SealingStatus};
pub use crate::store::{
    Alert, AlertStatus, Amend, Amended, Atomicity, Audit, Cancelled, DeadGroup, DeadRuns, Depth, Discarded, Enqueued,
    GateName, GateStatus, Health, Holder, JobFilter, Keep, MAX_BATCH, Missed, NodeSetting, Order, Overlap, Page,
    Presence, Queue, Recurrence, Replayed, Retention, Schedule, ScheduleSpec, Scope, Session, Setting, SettingKey,
    SettingSource, Spacing, Token, WorkerId, WorkerReport,
};
pub use crate::tally::Tally;
pub use dead_letters::{DeadLetters, DiscardedPage, ReplayedIds, ReplayedPage};
pub use enqueue::draft::WebhookDraft;
pub use fleet::{Alerts, AuditLog, NodeSettingsPut, RuleFault, Sessions, Settings, SettingsFault, Tokens, Workers};
pub use jobs::Jobs;
pub use jobs::bulk::{BulkCursor, BulkPage, Count, MAX_BULK};
pub use jobs::search::{Found, MAX_SEARCHED};
pub use jobs::waiting::Waiting;
pub use jobs::why::Explanation;
pub use policies::kinds::KindSettings;
pub use policies::{NamedPolicy, Policies, PolicyFault};
pub use queues::{
    Gates, MAX_GATES, PurgeCursor, Purged, QueueRates, QueueSettings, QueueStatus, QueueWaiting, Queues, WaitingCounts,
};
pub use rotate::{MAX_ROTATIONS, RotateFault, Rotated, SecretOf};
pub use schedules::{ScheduleBuilder, ScheduleError, Schedules};
pub use stats::{Series, Stats, WindowStats};
pub use tenants::Tenants;
pub use tenants::quota::TenantQuotas;
pub use transfer::{Clear, Export, ExportError, ImportError, ImportReport, Importing, Moved, Transfers};
