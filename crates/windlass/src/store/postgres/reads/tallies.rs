//! Tallies: what was counted since some moments, read in one pass.

use crate::store::postgres::Inner;
use crate::store::postgres::connection::fault::again;
use crate::store::postgres::connection::pool::On;
use crate::store::postgres::life::names;
use crate::store::postgres::reads::read;
use crate::store::postgres::statements::Sql;
use crate::store::postgres::statements::columns::Columns;
use crate::store::postgres::statements::row::Row;
use crate::store::{JobFilter, Queue, Scope, Steps, StoreError};
use crate::tally::{Tally, window_start};
use std::collections::{BTreeMap, HashSet};
use windlass_core::Timestamp;
use windlass_core::job::Kind;

type Sums = Vec<(Queue, Kind, Tally)>;

pub(in crate::store::postgres) async fn tallies(
    store: &Inner,
    scope: &Scope,
    since: Option<Timestamp>,
) -> Result<Sums, StoreError> {
    let since = since.map_or(i64::MIN, |since| window_start(since).as_millis());
    Ok(windows_of(store, scope, &[since]).await?.pop().unwrap_or_default())
}

pub(in crate::store::postgres) async fn windows(
    store: &Inner,
    scope: &Scope,
    since: &[Timestamp],
) -> Result<Vec<Sums>, StoreError> {
    let since: Vec<i64> = since.iter().map(|moment| window_start(*moment).as_millis()).collect();
    windows_of(store, scope, &since).await
}

async fn windows_of(store: &Inner, scope: &Scope, since: &[i64]) -> Result<Vec<Sums>, StoreError> {
    let mut moments = since.to_vec();
    moments.sort_unstable();
    let queues = read::queues_meant(store, scope, &JobFilter::default()).await?;
    again(|| async {
        let lent = store.pool.get().await?;
        let on = On::Own(&lent);
        let rows = on.query(Sql::Tallies, &[&moments, &queues]).await?;
        let ids = rows.iter().map(|row| Columns::new(row).get("queue_id")).collect::<Result<HashSet<i64>, _>>()?;
        names::look_up_queues(store, on, &ids).await?;
        let mut windows = vec![BTreeMap::new(); since.len()];
        let mut deltas = 0;
        for row in &rows {
            let part = Part::read(row)?;
            deltas += part.deltas;
            // What was counted after a moment was also counted after all earlier moments.
            let Some(last) = (part.place as usize).checked_sub(1).and_then(|place| moments.get(place)) else {
                continue;
            };
            for (window, _) in windows.iter_mut().zip(since).filter(|(_, moment)| *moment <= last) {
                *window.entry((part.queue, part.kind.clone())).or_insert_with(Tally::default) += part.tally;
            }
        }
        store.unfolded.saw(deltas.max(0) as u64);
        // Sorted by Rust's order of names: the server's collation may differ.
        let named = |((id, kind), tally)| Some(((*store.names.queue(id)?).clone(), kind, tally));
        Ok(windows.into_iter().map(|window| window.into_iter().filter_map(named).collect()).collect())
    })
    .await
}

/// What was counted in each step, by queue.
pub(in crate::store::postgres) async fn series(
    store: &Inner,
    scope: &Scope,
    steps: Steps,
) -> Result<Vec<(usize, Queue, Tally)>, StoreError> {
    let mut moments: Vec<i64> = steps.starts().map(windlass_core::Timestamp::as_millis).collect();
    // What was counted after the last step has a place of its own, which is not shown.
    moments.push(steps.from.as_millis() + steps.length.get() as i64 * i64::from(steps.count));
    let queues = read::queues_meant(store, scope, &JobFilter::default()).await?;
    again(|| async {
        let lent = store.pool.get().await?;
        let on = On::Own(&lent);
        let rows = on.query(Sql::Tallies, &[&moments, &queues]).await?;
        let ids = rows.iter().map(|row| Columns::new(row).get("queue_id")).collect::<Result<HashSet<i64>, _>>()?;
        names::look_up_queues(store, on, &ids).await?;
        let mut sums: BTreeMap<(usize, i64), Tally> = BTreeMap::new();
        for row in &rows {
            let part = Part::read(row)?;
            let step = (part.place as usize).checked_sub(1).filter(|step| *step < steps.count as usize);
            if let Some(step) = step {
                *sums.entry((step, part.queue)).or_default() += part.tally;
            }
        }
        let named = |((step, id), tally)| Some((step, (*store.names.queue(id)?).clone(), tally));
        Ok(sums.into_iter().filter_map(named).collect())
    })
    .await
}

/// A row: what was counted for one queue and kind between two moments.
struct Part {
    queue: i64,
    kind: Kind,
    /// How many of the moments lie at or before the time it was counted.
    place: i32,
    deltas: i64,
    tally: Tally,
}

impl Part {
    fn read(row: &Row) -> Result<Self, StoreError> {
        let c = Columns::new(row);
        let mut values = [0; Tally::COLUMNS.len()];
        for (value, name) in values.iter_mut().zip(Tally::COLUMNS) {
            *value = c.get(*name)?;
        }
        Ok(Self {
            queue: c.get("queue_id")?,
            kind: Kind::new(c.text("kind")?).map_err(|error| StoreError::corrupt("tally", error.to_string()))?,
            place: c.get("place")?,
            deltas: c.get("deltas")?,
            tally: Tally::from_values(values),
        })
    }
}
