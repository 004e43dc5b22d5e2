//! The columns of every row that is read, listed once. SQL names a list as `{job}`; code reads a column by its name,
//! which is its place in the row. A test checks each statement against its list.

/// `columns!(lease: id, worker)` makes a module `lease` with a constant per column, and `LIST` for SQL.
/// `queue after job: …` numbers on where `job` ends and has the columns of `job` too.
macro_rules! columns {
    ($(#[$doc:meta])* $name:ident $(after $base:ident)?: $first:ident $(, $column:ident)* $(,)?) => {
        $(#[$doc])*
        #[allow(non_upper_case_globals, non_camel_case_types, dead_code, unused_imports)]
        pub(in crate::store::sqlite) mod $name {
            $(pub(in crate::store::sqlite) use super::$base::*;)?
            enum Place { $first $(, $column)* }
            const START: usize = 0 $(+ super::$base::COUNT)?;
            pub(in crate::store::sqlite) const $first: usize = START + Place::$first as usize;
            $(pub(in crate::store::sqlite) const $column: usize = START + Place::$column as usize;)*
            pub(in crate::store::sqlite) const COUNT: usize = START + [stringify!($first) $(, stringify!($column))*].len();
            pub(in crate::store::sqlite) const LIST: &str = concat!(stringify!($first) $(, ", ", stringify!($column))*);
        }
    };
}

columns!(job: id, queue_id, priority, at_most_once, state, due_at, attempt, claimed_at, first_attempt_at, failures, crashes, replays,
    previous_delay, cancel_requested, created_at, policy_id, kind, start_by, timeout_ms, idempotency_key, schedule_id, parent_id,
    traceparent, limit_key, error_class, error, http, webhook, payload);
columns!(held after job: lease_id, place);
columns!(finished after job: finished_at, reason, discarded_at, discard_reason, result);
columns!(
    /// What an outcome copies from a running job.
    kept: id, queue_id, due_at, attempt, claimed_at, first_attempt_at, replays, previous_delay, cancel_requested, start_by, schedule_id,
    parent_id
);
columns!(ending after kept: error_class, error);
columns!(
    /// What an outcome adds to them.
    ended after ending: state, failures, crashes, finished_at, reason, fingerprint, result
);
columns!(
    /// The columns of a running job that a plain success needs.
    succeeding: place, attempt, lease_id, failures, schedule_id
);
columns!(
    /// The columns of a running job that waiting again needs.
    waiting: place, attempt, lease_id, cancel_requested, lane
);
columns!(due: id, due_at);
columns!(paced: queue_id, id, due_at);
columns!(
    /// The front of a lane.
    front: lane, due_at
);
columns!(
    /// A due job, for claims of some kinds.
    looked: id, due_at, kind, is_late
);
columns!(past: finished_at, queue_id, id);
columns!(gate: id, tenant, queue, scope, key, in_use, state);
columns!(gate_state: id, in_use, state);
columns!(gate_ended: tenant, scope, key, in_use, state, has_parked);
columns!(parked: id, gate_id);
columns!(offered: place, limit_key, http, failures, start_by, first_attempt_at, gate_key);
columns!(replayed: job_id, is_live);
columns!(key: job_id, expires_at, is_live);
columns!(keyed: job_id, lease_id);
columns!(body: kind, payload);
columns!(standing: queue_id, kind, state, priority, due_at, start_by, has_started, is_discarded);
columns!(lease: id, worker, length_ms);
columns!(attempt: number, retry, status, started_at, finished_at, error_class, error, note, worker, next_run_at, delay_ms, why,
    trace, replay);
columns!(job_attempt after attempt: job_id);
columns!(queue: id, tenant, name, executor, paused, created_at);
columns!(setting: scope, tenant, name, node, value, origin, set_at);
columns!(schedule: id, tenant, cadence, zone, one_shot, overlap, missed, dead_letters, template, paused, next_at,
    last_at, last_job, last_dead, created_at);
columns!(dead_group: fingerprint, tenant, count, first_seen, last_seen, example);
columns!(lane_waiting: lane, waiting);
columns!(queue_count: queue_id, count);
columns!(dead_count: fingerprint, tenant, step, count);
columns!(tally: queue_id, kind);
columns!(series: queue_id, step);
columns!(session: hash, token, created_at, expires_at);
columns!(token: id, name, hash, scopes, tenant, queues, created_at, expires_at, revoked_at);
columns!(worker: worker, host, version, queues, kinds, running, started_at, seen_at);
columns!(alert: rule, measure, subject, tenant, queue, status, incident, since, fired_at, resolved_at, notified_at, detail);
columns!(holder: id, claimed_at, worker, expires_at);
columns!(audit: at, by, action, count, detail);
columns!(migration: number, name, checksum, min_reader, applied_at);

/// The lists that SQL may name.
pub(in crate::store::sqlite) const LISTS: &[(&str, &str)] = &[
    ("job", job::LIST),
    ("finished", finished::LIST),
    ("kept", kept::LIST),
    ("due", due::LIST),
    ("body", body::LIST),
    ("past", past::LIST),
    ("lease", lease::LIST),
    ("gate", gate::LIST),
    ("holder", "j.id, j.claimed_at, l.worker, l.expires_at"),
    ("attempt", attempt::LIST),
    ("queue", queue::LIST),
    ("setting", setting::LIST),
    ("schedule", schedule::LIST),
    ("token", token::LIST),
    ("session", session::LIST),
    ("worker", worker::LIST),
    ("alert", alert::LIST),
    ("audit", audit::LIST),
    ("migration", migration::LIST),
];
