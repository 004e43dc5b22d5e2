//! What the dead letters' pages show.

use crate::dashboard::plot::{Svg, spark};
use crate::dashboard::show::{self, Moment};
use std::collections::HashMap;
use windlass::client::DeadGroup;
use windlass_core::Timestamp;
use windlass_core::job::Tenant;

/// Dead letters of one cause.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) count: u64,
    pub(super) shown: String,
    pub(super) class: String,
    pub(super) message: String,
    pub(super) queue: String,
    pub(super) kind: String,
    pub(super) tenant: String,
    pub(super) first: Moment,
    pub(super) last: Moment,
    pub(super) example: i64,
    pub(super) spark: Svg,
    /// The query that chooses exactly this group.
    pub(super) query: String,
}

impl Group {
    pub(super) fn new(group: &DeadGroup, series: &HashMap<(Tenant, String), Vec<u64>>, now: Timestamp) -> Self {
        let counts = series.get(&(group.tenant.clone(), group.fingerprint.clone()));
        let empty = vec![0; 25];
        let query = url::form_urlencoded::Serializer::new(String::new())
            .append_pair("fingerprint", &group.fingerprint)
            .append_pair("tenant", group.tenant.as_str())
            .finish();
        Self {
            count: group.count,
            shown: show::number(group.count),
            class: group.error_class.clone(),
            message: show::line(&group.message, 300),
            queue: group.queue.to_string(),
            kind: group.kind.to_string(),
            tenant: group.tenant.to_string(),
            first: Moment::new(group.first_seen, now),
            last: Moment::new(group.last_seen, now),
            example: group.example.0,
            spark: spark("Failed in the last 24 hours", counts.unwrap_or(&empty)),
            query,
        }
    }
}
