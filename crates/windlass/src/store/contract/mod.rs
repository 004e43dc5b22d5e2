//! The contract of every store: four small traits and their types.

mod claim;
mod commit;
mod life;
mod operations;
mod read;
mod reads;
mod reap;
mod registry;
pub(crate) mod replay;
mod schedule;
mod settings;
pub(crate) mod texts;
mod transfer;

pub use claim::{Claim, Claimed, Kinds, Leases, Parking, Renewed, Share, WorkerId};
pub(crate) use commit::DISCARDED_BY_RULE;
pub use commit::{Commit, Committed, HoldRequest, Transitioned};
pub use life::JobLife;
pub use operations::{
    Alert, AlertChange, AlertStatus, Amended, Audit, Cancelled, Discard, Discarded, Session, Token, WorkerReport,
};
pub use read::{DeadCount, DeadGroup, Depth, Holder, JobFilter, Order, Page, Scope, Steps};
pub use reads::{KeyedJob, ParkedJob, Reads};
pub use reap::{Reap, Spared};
pub use registry::Registry;
pub use replay::{Replay, Replayed, Spacing};
pub use schedule::{
    DeadRuns, Fired, Firing, Missed, Overlap, Recurrence, SUPERSEDED, Schedule, ScheduleChange, ScheduleSpec, Trigger,
};
pub(crate) use settings::in_force;
pub use settings::{NODE_FOR, NodeSetting, Presence, Queue, Setting, SettingKey, SettingSource};
pub use texts::{StoredText, TextChange, TextPlace};
pub(crate) use transfer::IMPORT;
pub use transfer::{Import, Imported, JobCopy, KeyHeld, Origin, Transfer};
pub use windlass_core::retention::{Keep, Retention};
pub use windlass_core::verdict::{Amend, ReplayOnly};

type Result<T> = std::result::Result<T, super::StoreError>;
