//! The statements: one file each, their placeholders filled in once when a store is opened.

use crate::store::postgres::connection::pool::Params;
use crate::tally::Tally;
use tokio_postgres::types::{ToSql, Type};
use windlass_core::policy::PRESETS;

macro_rules! statements {
    ($($name:ident = $file:literal),+ $(,)?) => {
        /// Every statement the store prepares.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(in crate::store::postgres) enum Sql { $($name),+ }

        impl Sql {
            pub(in crate::store::postgres) const ALL: &[Self] = &[$(Self::$name),+];

            const fn source(self) -> &'static str {
                match self { $(Self::$name => include_str!(concat!("../sql/", $file, ".sql"))),+ }
            }
        }
    };
}

statements! {
    Now = "now", Claim = "claim", ClaimPick = "claim_pick", ClaimTake = "claim_take", NextDue = "next_due", FreezePolicy = "freeze_policy", Held = "held",
    Enqueue = "enqueue", Tally = "tally", KeyLock = "key_lock", KeyFind = "key_find", KeyPut = "key_put",
    Finish = "finish", Succeed = "succeed", Wait = "wait", RecordedOutcome = "recorded_outcome", LeasesEnd = "leases_end", OneShotsEnd = "one_shots_end",
    Renew = "renew", RenewCancels = "renew_cancels",
    ReapExpired = "reap_expired", ReapWorker = "reap_worker", ReapJobs = "reap_jobs", Expired = "expired",
    LiveLock = "live_lock", ArchivedLock = "archived_lock", RequestCancel = "request_cancel",
    RunNow = "run_now", Replay = "replay", Discard = "discard", Amend = "amend",
    JobLive = "job_live", JobArchived = "job_archived", JobsNewest = "jobs_newest", JobsOldest = "jobs_oldest",
    Attempts = "attempts", ScheduleAttempts = "schedule_attempts", DeadGroups = "dead_groups", Depths = "depths",
    DepthDue = "depth_due", DepthLater = "depth_later",
    Queues = "queues", QueueFind = "queue_find", QueueAdd = "queue_add", QueuePause = "queue_pause",
    PolicyAdd = "policy_add", PolicyFind = "policy_find", Policies = "policies",
    Settings = "settings", SettingPut = "setting_put", SettingRemove = "setting_remove",
    ScheduleAdd = "schedule_add", Schedule = "schedule", SchedulesNewest = "schedules_newest",
    SchedulesOldest = "schedules_oldest", ScheduleLock = "schedule_lock", ScheduleChange = "schedule_change",
    ScheduleRemove = "schedule_remove", SchedulesDue = "schedules_due", SchedulesNext = "schedules_next",
    ScheduleFired = "schedule_fired", IsLive = "is_live",
    Tallies = "tallies", TallyTurn = "tally_turn", TallyTurnIfFree = "tally_turn_if_free",
    TallyFoldSeconds = "tally_fold_seconds", TallyFoldMinutes = "tally_fold_minutes", TallyFoldHours = "tally_fold_hours",
    BalancesRecount = "balances_recount",
    TokenPut = "token_put", Tokens = "tokens", TokenRevoke = "token_revoke",
    WorkerReport = "worker_report", Workers = "workers",
    Alerts = "alerts", AlertAdd = "alert_add", AlertChange = "alert_change", Audit = "audit", Audits = "audits",
    PruneRows = "prune_rows", PruneKeys = "prune_keys", PruneWorkers = "prune_workers",
    Partitions = "partitions", PartitionLock = "partition_lock", PartitionCount = "partition_count",
    WorkerLock = "worker_lock", Notify = "notify",
    Pulse = "pulse", Server = "server", Migrations = "migrations",
}

/// What opens a transaction of the store's own.
///
/// For the sake of plans, statements say `id = ANY (ARRAY[i.id])` where `id = i.id` would do: an equation can be turned round, and a
/// plan made while the table was empty would walk its whole index for every job that is named.
pub(in crate::store::postgres) const BEGIN: &str = include_str!("../sql/begin.sql");

/// A job's columns: name in `jobs`, name in `archive`; `-` where there is none, with the type that stands in for it.
/// `rows::job` reads them in this order.
const JOB: [(&str, &str, &str); 35] = [
    ("id", "id", ""),
    ("queue_id", "queue_id", ""),
    ("kind", "kind", ""),
    ("payload", "payload", ""),
    ("priority", "priority", ""),
    ("state", "state", ""),
    ("-reason", "reason", "text"),
    ("at_most_once", "at_most_once", ""),
    ("policy_id", "policy_id", ""),
    ("retry_line", "retry_line", ""),
    ("attempt", "attempt", ""),
    ("failures", "failures", ""),
    ("crashes", "crashes", ""),
    ("replays", "replays", ""),
    ("created_at", "created_at", ""),
    ("due_at", "due_at", ""),
    ("first_attempt_at", "first_attempt_at", ""),
    ("claimed_at", "claimed_at", ""),
    ("-finished_at", "finished_at", "bigint"),
    ("previous_delay", "previous_delay", ""),
    ("start_by", "start_by", ""),
    ("timeout_ms", "timeout_ms", ""),
    ("idempotency_key", "idempotency_key", ""),
    ("cancel_requested", "cancel_requested", ""),
    ("lease_id", "-lease_id", "bigint"),
    ("error_class", "error_class", ""),
    ("error", "error", ""),
    ("-result", "result", "text"),
    ("-discarded_at", "discarded_at", "bigint"),
    ("-discard_reason", "discard_reason", "text"),
    ("http", "http", ""),
    ("webhook", "webhook", ""),
    ("schedule_id", "schedule_id", ""),
    ("parent_id", "parent_id", ""),
    ("traceparent", "traceparent", ""),
];

/// An attempt's columns, in the order `rows::attempt` reads them.
const ATTEMPT: &str = "a.number, a.retry, a.status, a.started_at, a.finished_at, a.error_class, a.error, a.note, \
     a.worker, a.next_run_at, a.delay_ms, a.why";

/// A schedule's columns, in the order `rows::schedule` reads them.
const SCHEDULE: &str =
    "id, tenant, cadence, zone, one_shot, overlap, missed, template, paused, next_at, last_at, last_job, created_at";

/// The store's time: what a test says, else the server's clock, rounded down so that nothing runs early.
const NOW: &str = "coalesce($1::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint)";

/// The statements of one schema.
#[derive(Debug)]
pub(in crate::store::postgres) struct Texts {
    schema: String,
    texts: Vec<String>,
    types: Vec<Vec<Type>>,
}

impl Texts {
    pub(in crate::store::postgres) fn new(schema: &str) -> Self {
        let texts: Vec<String> = Sql::ALL.iter().map(|sql| fill(sql.source(), schema)).collect();
        let types = texts.iter().map(|text| types(text)).collect();
        Self { schema: schema.into(), texts, types }
    }

    pub(in crate::store::postgres) fn get(&self, sql: Sql) -> &str {
        &self.texts[sql as usize]
    }

    /// Parameters with their types, for a statement that is sent without being prepared.
    pub(in crate::store::postgres) fn typed<'a>(
        &self,
        sql: Sql,
        params: Params<'a>,
    ) -> Vec<(&'a (dyn ToSql + Sync), Type)> {
        params.iter().copied().zip(self.types[sql as usize].iter().cloned()).collect()
    }

    pub(in crate::store::postgres) fn schema(&self) -> &str {
        &self.schema
    }
}

/// The types of a statement's parameters, read from their casts: every parameter of ours has one, `$1::bigint`.
pub(in crate::store::postgres) fn types(text: &str) -> Vec<Type> {
    let cast = |number: usize| {
        let (_, after) = text.split_once(&format!("${number}::"))?;
        let end = after.find(|c: char| !c.is_ascii_lowercase()).unwrap_or(after.len());
        let is_array = after[end..].starts_with("[]");
        Some(match (&after[..end], is_array) {
            ("bigint", false) => Type::INT8,
            ("bigint", true) => Type::INT8_ARRAY,
            ("integer", false) => Type::INT4,
            ("integer", true) => Type::INT4_ARRAY,
            ("smallint", false) => Type::INT2,
            ("smallint", true) => Type::INT2_ARRAY,
            ("text", false) => Type::TEXT,
            ("text", true) => Type::TEXT_ARRAY,
            ("boolean", false) => Type::BOOL,
            ("boolean", true) => Type::BOOL_ARRAY,
            ("bytea", false) => Type::BYTEA,
            ("bytea", true) => Type::BYTEA_ARRAY,
            _ => return None,
        })
    };
    (1..).map_while(cast).collect()
}

fn quoted(schema: &str) -> String {
    format!("\"{schema}\"")
}

/// Fills in the placeholders of a statement or migration.
pub(in crate::store::postgres) fn fill(text: &str, schema: &str) -> String {
    let tally = |each: &dyn Fn(usize, &str) -> String| {
        let items: Vec<String> = Tally::COLUMNS.iter().enumerate().map(|(place, name)| each(place, name)).collect();
        items.join(", ")
    };
    let count = Tally::COLUMNS.len();
    let job = |column: &dyn Fn(&(&str, &str, &str)) -> String| JOB.iter().map(column).collect::<Vec<_>>().join(", ");
    let presets: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
    text.replace("{schema}", &quoted(schema))
        .replace("{channel}", &channel(schema))
        .replace("{now}", NOW)
        .replace("{live}", &job(&|(live, _, kind)| from("j", live, kind)))
        .replace("{archived}", &job(&|(_, archived, kind)| from("j", archived, kind)))
        .replace("{listed}", &job(&|(live, _, _)| format!("j.{}", bare(live))))
        .replace("{late}", &job(&|(live, _, _)| format!("late.{}", bare(live))))
        .replace("{claimed}", &job(&|(live, _, _)| format!("c.{}", bare(live))))
        .replace("{attempt}", ATTEMPT)
        .replace("{schedule}", SCHEDULE)
        .replace("{presets}", &format!("{{{}}}", presets.join(",")))
        .replace("{tally_columns}", &tally(&|_, name| name.into()))
        .replace("{tally_definitions}", &tally(&|_, name| format!("{name} bigint NOT NULL DEFAULT 0")))
        .replace(
            "{tally_values}",
            &tally(&|place, _| format!("($4::bigint[])[(i.place - 1) * {count} + {}]", place + 1)),
        )
        .replace("{tally_sums}", &tally(&|_, name| format!("sum(t.{name})::bigint")))
        .replace("{tally_adds}", &tally(&|_, name| format!("{name} = t.{name} + excluded.{name}")))
}

/// What listeners listen to. Longer names would be cut by the server.
pub(in crate::store::postgres) fn channel(schema: &str) -> String {
    let mut name = format!("windlass_{schema}");
    name.truncate(63);
    name
}

fn bare(name: &str) -> &str {
    name.trim_start_matches('-')
}

fn from(alias: &str, name: &str, kind: &str) -> String {
    match name.strip_prefix('-') {
        Some(missing) => format!("NULL::{kind} AS {missing}"),
        None => format!("{alias}.{name}"),
    }
}

/// Whether a text can name a schema: it is pasted into statements.
pub(in crate::store::postgres) fn is_schema_name(text: &str) -> bool {
    let first = |b: u8| b.is_ascii_lowercase() || b == b'_';
    let rest = |b: u8| first(b) || b.is_ascii_digit();
    text.len() <= 63 && text.bytes().next().is_some_and(first) && text.bytes().all(rest)
}
