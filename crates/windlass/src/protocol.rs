//! What a new way in needs besides the client: jobs as a caller of a protocol describes them, and how they become
//! complete. The HTTP API is built on this; an application enqueues with
//! [`Windlass::enqueue`](crate::Windlass::enqueue).

pub use crate::client::enqueue::draft::Draft;
pub use crate::client::policies::catalogue::{Catalogue, DEFAULTS};
pub use crate::event::ATTEMPT_TARGET;
pub use crate::job::{
    ClaimedJob, DEFAULT_KEY_WINDOW, HttpCall, Idempotency, KeyWindow, LeaseId, NewJob, Payload, QueueId, Webhook,
};
pub use crate::json_text::{MAX_DEPTH, depth};
