//! Columns: each table's columns are listed once. Statements get the list, and rows are read by the same names.

use crate::store::StoreError;
use crate::store::postgres::statements::row::Row;
use std::sync::Arc;
use tokio_postgres::types::FromSql;
use windlass_core::{JobId, Millis, Timestamp};

/// What a value of a row is read by: an entry of a list below, or a name that the statement gives.
pub(in crate::store::postgres) trait Column: Copy {
    fn name(self) -> &'static str;

    fn read<'a, T: FromSql<'a>>(self, row: &'a Row) -> Result<T, String>;
}

/// Any column by its name: found by comparing names, so for rows with few columns.
impl Column for &'static str {
    fn name(self) -> &'static str {
        self
    }

    fn read<'a, T: FromSql<'a>>(self, row: &'a Row) -> Result<T, String> {
        row.named(self)
    }
}

/// Which of the views `live` and `archive` has a column, and the type that stands in for it in the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum In {
    Both,
    Live(&'static str),
    Archive(&'static str),
}

/// Defines a list of columns. A statement that selects the list begins with it, so a column's place in the list is its
/// place in the row.
macro_rules! columns {
    ($(#[$doc:meta])* $set:ident { $($variant:ident = $name:literal $(($table:ident $kind:literal))?),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(in crate::store::postgres) enum $set { $($variant),+ }

        impl $set {
            const ALL: &[(Self, In)] = &[$((Self::$variant, columns!(@table $($table $kind)?))),+];
        }

        impl Column for $set {
            fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }

            fn read<'a, T: FromSql<'a>>(self, row: &'a Row) -> Result<T, String> {
                row.at(self as usize)
            }
        }
    };
    (@table) => { In::Both };
    (@table $table:ident $kind:literal) => { In::$table($kind) };
}

columns! {
    /// A job, live or archived.
    JobColumn {
        Id = "id",
        QueueId = "queue_id",
        Kind = "kind",
        Payload = "payload",
        Priority = "priority",
        State = "state",
        Reason = "reason" (Archive "text"),
        AtMostOnce = "at_most_once",
        PolicyId = "policy_id",
        RetryLine = "retry_line",
        Attempt = "attempt",
        Failures = "failures",
        Crashes = "crashes",
        Replays = "replays",
        CreatedAt = "created_at",
        DueAt = "due_at",
        FirstAttemptAt = "first_attempt_at",
        ClaimedAt = "claimed_at",
        FinishedAt = "finished_at" (Archive "bigint"),
        PreviousDelay = "previous_delay",
        StartBy = "start_by",
        TimeoutMs = "timeout_ms",
        IdempotencyKey = "idempotency_key",
        CancelRequested = "cancel_requested",
        LeaseId = "lease_id" (Live "bigint"),
        ErrorClass = "error_class",
        Error = "error",
        Result = "result" (Archive "text"),
        DiscardedAt = "discarded_at" (Archive "bigint"),
        DiscardReason = "discard_reason" (Archive "text"),
        Http = "http",
        Webhook = "webhook",
        ScheduleId = "schedule_id",
        ParentId = "parent_id",
        Traceparent = "traceparent",
        LimitKey = "limit_key",
    }
}

columns! {
    /// An attempt, of a live or an archived job.
    AttemptColumn {
        JobId = "job_id",
        Number = "number",
        Retry = "retry",
        Status = "status",
        StartedAt = "started_at",
        FinishedAt = "finished_at",
        ErrorClass = "error_class",
        Error = "error",
        Note = "note",
        Worker = "worker",
        NextRunAt = "next_run_at",
        DelayMs = "delay_ms",
        Why = "why",
        Trace = "trace",
        Replay = "replay",
    }
}

columns! {
    ScheduleColumn {
        Id = "id",
        Tenant = "tenant",
        Cadence = "cadence",
        Zone = "zone",
        OneShot = "one_shot",
        Overlap = "overlap",
        Missed = "missed",
        DeadLetters = "dead_letters",
        Template = "template",
        Paused = "paused",
        NextAt = "next_at",
        LastAt = "last_at",
        LastJob = "last_job",
        LastDead = "last_dead",
        CreatedAt = "created_at",
    }
}

columns! {
    QueueColumn {
        Id = "id",
        Tenant = "tenant",
        Name = "name",
        Executor = "executor",
        Paused = "paused",
        CreatedAt = "created_at",
    }
}

/// The placeholders that stand for lists of columns.
pub(super) fn placeholders() -> [(&'static str, String); 7] {
    [
        ("{live}", jobs(|name, table| if let In::Archive(kind) = table { absent(name, kind) } else { of("j", name) })),
        ("{archived}", jobs(|name, table| if let In::Live(kind) = table { absent(name, kind) } else { of("j", name) })),
        ("{listed}", jobs(|name, _| of("j", name))),
        (
            "{claimed}",
            jobs(|name, table| if let In::Archive(kind) = table { absent(name, kind) } else { of("c", name) }),
        ),
        ("{attempt}", list(AttemptColumn::ALL, |name, _| of("a", name))),
        ("{schedule}", list(ScheduleColumn::ALL, |name, _| name.to_owned())),
        ("{queue}", list(QueueColumn::ALL, |name, _| of("q", name))),
    ]
}

fn jobs(each: impl Fn(&str, In) -> String) -> String {
    list(JobColumn::ALL, each)
}

fn list<C: Column>(columns: &[(C, In)], each: impl Fn(&str, In) -> String) -> String {
    columns.iter().map(|(column, table)| each(column.name(), *table)).collect::<Vec<_>>().join(", ")
}

fn of(alias: &str, name: &str) -> String {
    format!("{alias}.{name}")
}

fn absent(name: &str, kind: &str) -> String {
    format!("NULL::{kind} AS {name}")
}

/// Reads a row's columns.
#[derive(Clone, Copy)]
pub(in crate::store::postgres) struct Columns<'a>(&'a Row);

impl<'a> Columns<'a> {
    pub(in crate::store::postgres) fn new(row: &'a Row) -> Self {
        Self(row)
    }

    pub(in crate::store::postgres) fn get<T: FromSql<'a>>(self, column: impl Column) -> Result<T, StoreError> {
        let corrupt = |error: String| StoreError::corrupt(format!("column `{}`", column.name()), error);
        column.read(self.0).map_err(corrupt)
    }

    pub(in crate::store::postgres) fn text(self, column: impl Column) -> Result<&'a str, StoreError> {
        self.get(column)
    }

    pub(in crate::store::postgres) fn count(self, column: impl Column) -> Result<u32, StoreError> {
        let number: i32 = self.get(column)?;
        u32::try_from(number).map_err(|_| StoreError::corrupt(format!("count {number}"), "counts are not negative"))
    }

    /// A count that the database keeps as a `bigint`.
    pub(in crate::store::postgres) fn large_count(self, column: impl Column) -> Result<u64, StoreError> {
        Ok(self.get::<i64>(column)?.max(0) as u64)
    }

    pub(in crate::store::postgres) fn moment(self, column: impl Column) -> Result<Timestamp, StoreError> {
        self.get(column).map(Timestamp::from_millis)
    }

    pub(in crate::store::postgres) fn moment_if(self, column: impl Column) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.get::<Option<i64>>(column)?.map(Timestamp::from_millis))
    }

    pub(in crate::store::postgres) fn span_if(self, column: impl Column) -> Result<Option<Millis>, StoreError> {
        Ok(self.get::<Option<i64>>(column)?.map(|ms| Millis::new(ms.max(0) as u64)))
    }

    pub(in crate::store::postgres) fn id_if(self, column: impl Column) -> Result<Option<JobId>, StoreError> {
        Ok(self.get::<Option<i64>>(column)?.map(JobId))
    }

    pub(in crate::store::postgres) fn shared_if(self, column: impl Column) -> Result<Option<Arc<str>>, StoreError> {
        Ok(self.get::<Option<&str>>(column)?.map(Into::into))
    }

    /// A word that `parse` knows.
    pub(in crate::store::postgres) fn word<T>(
        self,
        column: impl Column,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<T, StoreError> {
        let word = self.text(column)?;
        parse(word).ok_or_else(|| StoreError::corrupt(format!("word `{word}`"), "columns hold words Windlass knows"))
    }
}

/// One value of the only row that a statement returns, if it returned one.
pub(in crate::store::postgres) fn only<T: for<'a> FromSql<'a>>(
    rows: &[Row],
    column: &'static str,
) -> Result<Option<T>, StoreError> {
    rows.first().map(|row| Columns::new(row).get(column)).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_that_a_table_lacks_is_null_of_its_type() {
        let all = placeholders();
        let text = |name| &all.iter().find(|(known, _)| *known == name).unwrap().1;
        assert!(text("{live}").contains("j.state, NULL::text AS reason, j.at_most_once"));
        assert!(text("{live}").contains("j.lease_id"));
        assert!(text("{archived}").contains("NULL::bigint AS lease_id"));
        assert!(text("{claimed}").starts_with("c.id, c.queue_id"));
    }
}
