//! Depths: how full each queue is, without counting what may be large. The numbers of live jobs, of running ones and of
//! dead letters are known from tallies.
//! Of the waiting jobs the smaller part is counted, the due jobs or those for later; the other part is the rest. All in
//! one snapshot.

use crate::job::QueueId;
use crate::store::postgres::Inner;
use crate::store::postgres::connection::fault::again;
use crate::store::postgres::connection::pool::On;
use crate::store::postgres::reads::read::tenant_of;
use crate::store::postgres::statements::Sql;
use crate::store::postgres::statements::columns::Columns;
use crate::store::{Depth, Scope, StoreError};
use futures_util::join;
use std::collections::HashMap;
use windlass_core::Timestamp;

/// Jobs of one queue and priority that are counted before the other part is tried: a few milliseconds.
const FEW: i64 = 10_000;
/// If both parts are larger, this many times more are counted of each.
const MORE: i64 = 10;

/// What is known of a queue before its waiting jobs are split into due and later.
#[derive(Debug)]
struct Known {
    queue: i64,
    live: i64,
    running: i64,
    dead: i64,
    /// Jobs that are due later, and whether there are more than were counted.
    later: i64,
    is_many: bool,
    oldest_due: Option<Timestamp>,
}

pub(in crate::store::postgres) async fn depths(store: &Inner, scope: &Scope) -> Result<Vec<Depth>, StoreError> {
    again(|| async {
        let lent = store.pool.get().await?;
        let (begun, depths) = join!(lent.begin_snapshot(), depths_on(store, On::Own(&lent), scope));
        lent.conclude(begun, depths).await
    })
    .await
}

async fn depths_on(store: &Inner, on: On<'_>, scope: &Scope) -> Result<Vec<Depth>, StoreError> {
    let rows = on.query(Sql::Depths, &[&store.fixed(), &tenant_of(scope), &FEW]).await?;
    let mut now = 0;
    let mut queues = Vec::with_capacity(rows.len());
    for row in &rows {
        let c = Columns::new(row);
        now = c.get("now")?;
        queues.push(Known {
            queue: c.get("queue_id")?,
            live: c.get("live")?,
            running: c.get("running")?,
            dead: c.get("dead")?,
            later: c.get("later")?,
            is_many: c.get("is_many")?,
            oldest_due: c.moment_if("oldest_due")?,
        });
    }
    let later = many_for_later(on, now, &queues).await?;
    Ok(queues.iter().map(|known| known.depth(later.get(&known.queue).copied())).collect())
}

/// How many jobs are due later, in queues with many of them: the total less the due jobs, or a count, whichever is
/// known first.
async fn many_for_later(on: On<'_>, now: i64, queues: &[Known]) -> Result<HashMap<i64, i64>, StoreError> {
    let mut many: HashMap<i64, i64> =
        queues.iter().filter(|known| known.is_many).map(|known| (known.queue, known.live - known.running)).collect();
    let (mut later, mut limit) = (HashMap::new(), FEW);
    while !many.is_empty() {
        for (queue, due) in side(on, Sql::DepthDue, now, &many, limit).await? {
            later.extend(many.remove(&queue).map(|waiting| (queue, waiting - due)));
        }
        limit = limit.saturating_mul(MORE);
        if !many.is_empty() {
            for (queue, count) in side(on, Sql::DepthLater, now, &many, limit).await? {
                later.extend(many.remove(&queue).map(|_| (queue, count)));
            }
        }
    }
    Ok(later)
}

/// The queues one part of which is below the limit, and its size.
async fn side(
    on: On<'_>,
    sql: Sql,
    now: i64,
    queues: &HashMap<i64, i64>,
    limit: i64,
) -> Result<Vec<(i64, i64)>, StoreError> {
    let ids: Vec<i64> = queues.keys().copied().collect();
    let mut counted = Vec::new();
    for row in on.query(sql, &[&now, &ids, &limit]).await? {
        let c = Columns::new(&row);
        let is_many: bool = c.get("is_many")?;
        if !is_many {
            counted.push((c.get("queue_id")?, c.get("jobs")?));
        }
    }
    Ok(counted)
}

impl Known {
    /// `later`: jobs that are due later, if there are many.
    fn depth(&self, later: Option<i64>) -> Depth {
        let later = later.unwrap_or(self.later).max(0);
        let due = (self.live - self.running - later).max(0);
        Depth {
            queue: QueueId(self.queue),
            due: due as u64,
            later: later as u64,
            running: self.running.max(0) as u64,
            dead: self.dead.max(0) as u64,
            oldest_due: self.oldest_due,
        }
    }
}
