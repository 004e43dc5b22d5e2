//! The archive's partitions: by retention class, then by time. Made when needed and ahead of time; dropped whole when
//! past.

use crate::store::StoreError;
use crate::store::postgres::Inner;
use crate::store::postgres::connection::fault::again;
use crate::store::postgres::connection::pool::On;
use crate::store::postgres::statements::columns::{Columns, only};
use crate::store::postgres::statements::{Script, Sql};
use futures_util::join;
use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};
use windlass_core::{State, Timestamp};

const DAY: i64 = 86_400_000;
const TABLES: [&str; 2] = ["archive", "archive_attempts"];

/// Retention class: jobs that are kept equally long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::store::postgres) enum Class {
    /// Succeeded and cancelled.
    Done,
    Failed,
}

impl Class {
    pub(in crate::store::postgres) const ALL: [Self; 2] = [Self::Done, Self::Failed];

    /// The class of a job that finished in this state. A live job has none.
    pub(in crate::store::postgres) const fn of(state: State) -> Option<Self> {
        match state {
            State::Succeeded | State::Cancelled => Some(Self::Done),
            State::Failed => Some(Self::Failed),
            State::Queued | State::Running | State::Retrying => None,
        }
    }

    pub(in crate::store::postgres) const fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed",
        }
    }

    /// How much time one part covers: a day of what is kept for days, a week of what is kept for months.
    const fn span(self) -> i64 {
        match self {
            Self::Done => DAY,
            Self::Failed => 7 * DAY,
        }
    }
}

/// One part of the archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::store::postgres) struct Part {
    pub(in crate::store::postgres) class: Class,
    pub(in crate::store::postgres) start: i64,
}

impl Part {
    pub(in crate::store::postgres) fn at(class: Class, ms: i64) -> Self {
        Self { class, start: ms.div_euclid(class.span()) * class.span() }
    }

    pub(in crate::store::postgres) const fn end(self) -> i64 {
        self.start + self.class.span()
    }

    fn next(self) -> Self {
        Self { start: self.end(), ..self }
    }

    fn name(self, table: &str) -> String {
        format!("{table}_{}_p{}", self.class.as_str(), self.start)
    }

    /// Reads a name of `archive`'s parts back.
    fn parse(name: &str) -> Option<Self> {
        Class::ALL.into_iter().find_map(|class| {
            let start = name.strip_prefix("archive_")?.strip_prefix(class.as_str())?.strip_prefix("_p")?;
            Some(Self { class, start: start.parse().ok()? })
        })
    }
}

/// The parts known to exist.
#[derive(Debug, Default)]
pub(in crate::store::postgres) struct Partitions(Mutex<HashSet<Part>>);

impl Partitions {
    fn lack(&self, part: Part) -> bool {
        !self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(&part)
    }

    fn learn(&self, parts: impl IntoIterator<Item = Part>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(parts);
    }

    pub(in crate::store::postgres) fn forget(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// Runs a transaction that may finish jobs. If the database refuses it, a part of the archive may be missing: it is
/// run again.
pub(in crate::store::postgres) async fn finishing<T, F>(store: &Inner, once: impl Fn() -> F) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, StoreError>>,
{
    match again(&once).await {
        Err(StoreError::Invalid(_)) => {
            store.partitions.forget();
            again(&once).await
        }
        outcome => outcome,
    }
}

/// Makes the parts for now; in the last quarter of their time, the next ones too.
pub(in crate::store::postgres) async fn ensure_partitions(
    store: &Inner,
    classes: impl IntoIterator<Item = Class>,
) -> Result<(), StoreError> {
    let now = store.clock.now().as_millis();
    let mut wanted = Vec::new();
    for class in classes {
        let part = Part::at(class, now);
        wanted.push(part);
        if part.end() - now < class.span() / 4 {
            wanted.push(part.next());
        }
    }
    make_partitions(store, wanted).await
}

/// Makes the parts for now and the ones after.
pub(in crate::store::postgres) async fn make_partitions_ahead(store: &Inner, now: Timestamp) -> Result<(), StoreError> {
    let parts = Class::ALL.into_iter().flat_map(|class| {
        let part = Part::at(class, now.as_millis());
        [part, part.next()]
    });
    make_partitions(store, parts.collect()).await
}

async fn make_partitions(store: &Inner, mut wanted: Vec<Part>) -> Result<(), StoreError> {
    wanted.retain(|part| store.partitions.lack(*part));
    if wanted.is_empty() {
        return Ok(());
    }
    again(|| async {
        let lent = store.pool.get().await?;
        let work = async {
            let on = On::Own(&lent);
            on.query(Sql::PartitionLock, &[]).await?;
            let known = parts(store, on).await?;
            for part in wanted.iter().filter(|part| !known.iter().any(|(known, _)| known == *part)) {
                for table in TABLES {
                    on.run(&partition_sql(store, Script::PartitionMake, *part, table)).await?;
                }
            }
            Ok(known)
        };
        let (begun, done) = join!(lent.begin(), work);
        let known = lent.conclude(begun, done).await?;
        store.partitions.learn(known.into_iter().map(|(part, _)| part));
        Ok(())
    })
    .await?;
    store.partitions.learn(wanted);
    Ok(())
}

/// The existing parts, and how many jobs each is estimated to hold.
pub(in crate::store::postgres) async fn parts(store: &Inner, on: On<'_>) -> Result<Vec<(Part, i64)>, StoreError> {
    let rows = on.query(Sql::Partitions, &[&store.pool.texts().schema()]).await?;
    let mut parts = Vec::new();
    for row in &rows {
        let c = Columns::new(row);
        if let Some(part) = Part::parse(c.text("name")?) {
            parts.push((part, c.get("jobs")?));
        }
    }
    Ok(parts)
}

/// Drops a part. Returns how many jobs went with it, or `None` if it was being read and has to be dropped later.
pub(in crate::store::postgres) async fn drop_partition(store: &Inner, part: Part) -> Result<Option<u64>, StoreError> {
    let lent = store.pool.get().await?;
    let work = async {
        let on = On::Own(&lent);
        on.query(Sql::PartitionLock, &[]).await?;
        let bounds = (part.start, part.end());
        let rows = on.query(Sql::PartitionCount, &[&part.class.as_str(), &bounds.0, &bounds.1]).await?;
        let count: i64 = only(&rows, "jobs")?.unwrap_or_default();
        for table in TABLES {
            on.run(&partition_sql(store, Script::PartitionDrop, part, table)).await?;
        }
        Ok(count)
    };
    let (begun, done) = join!(lent.begin(), work);
    store.partitions.forget();
    match lent.conclude(begun, done).await {
        Ok(count) => Ok(Some(count.max(0) as u64)),
        Err(StoreError::Unavailable(cause)) => {
            tracing::debug!(%cause, "a part of the archive could not be dropped now");
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

fn partition_sql(store: &Inner, script: Script, part: Part, table: &str) -> String {
    store
        .pool
        .texts()
        .script(script)
        .replace("{name}", &part.name(table))
        .replace("{parent}", &format!("{table}_{}", part.class.as_str()))
        .replace("{from}", &part.start.to_string())
        .replace("{to}", &part.end().to_string())
}
