//! Prune: removes what is past its retention, by whole partitions where possible; also keys, workers and old tallies.

use crate::store::postgres::Inner;
use crate::store::postgres::connection::fault::again;
use crate::store::postgres::connection::pool::On;
use crate::store::postgres::registry;
use crate::store::postgres::statements::Sql;
use crate::store::postgres::statements::columns::only;
use crate::store::postgres::upkeep::fold;
use crate::store::postgres::upkeep::partitions::{self, Class, Part};
use crate::store::postgres::upkeep::retention::retention;
use crate::store::{Keep, Queue, Retention, StoreError, WORKERS_FOR};
use futures_util::join;
use std::collections::BTreeMap;
use windlass_core::{State, Timestamp};

/// The most rows deleted by one statement.
const BATCH: i64 = 2000;
/// Rows that are kept as long as any of their class are deleted one by one only while their partition is this small.
/// Larger partitions are dropped whole, a little later, which costs nothing.
const SMALL_PART: i64 = 20_000;
/// Jobs that are kept equally long.
#[derive(Debug, Default)]
struct Group {
    queues: Vec<i64>,
    states: Vec<&'static str>,
}

pub(in crate::store::postgres) async fn prune(store: &Inner) -> Result<u64, StoreError> {
    let (now, queues, settings, parts) = again(|| async {
        let lent = store.pool.get().await?;
        let on = On::Own(&lent);
        Ok((
            store.now_on(on).await?,
            registry::queues(store).await?,
            registry::settings_on(on).await?,
            partitions::parts(store, on).await?,
        ))
    })
    .await?;
    let kept: Vec<(&Queue, Retention)> =
        queues.iter().map(|queue| (queue, retention(&settings, &queue.tenant, &queue.name))).collect();
    let mut gone = 0;
    for class in Class::ALL {
        let longest = longest(class, &kept);
        gone += drop_past(store, class, longest, &parts, now).await?;
        for (span, group) in groups(class, &kept) {
            let cutoff = now.as_millis() - span;
            let part = Part::at(class, cutoff);
            let is_large = parts.iter().any(|(known, rows)| *known == part && *rows > SMALL_PART);
            if longest == Some(span) && is_large {
                continue;
            }
            gone += prune_rows(store, class, cutoff, &group).await?;
        }
    }
    sweep(store, now).await?;
    fold::recount(store).await;
    partitions::make_partitions_ahead(store, now).await?;
    Ok(gone)
}

async fn drop_past(
    store: &Inner,
    class: Class,
    longest: Option<i64>,
    parts: &[(Part, i64)],
    now: Timestamp,
) -> Result<u64, StoreError> {
    let Some(span) = longest else {
        return Ok(0);
    };
    let mut gone = 0;
    for (part, _) in parts.iter().filter(|(part, _)| part.class == class && part.end() <= now.as_millis() - span) {
        // A reader of one partition probably reads all: those that wait behind this lock must not wait once for each.
        let Some(count) = partitions::drop_partition(store, *part).await? else { break };
        gone += count;
    }
    Ok(gone)
}

async fn prune_rows(store: &Inner, class: Class, cutoff: i64, group: &Group) -> Result<u64, StoreError> {
    let rows =
        store.write(Sql::PruneArchive, &[&class.as_str(), &cutoff, &group.queues, &group.states, &BATCH]).await?;
    let count: i64 = only(&rows, "pruned")?.unwrap_or_default();
    Ok(count.max(0) as u64)
}

async fn sweep(store: &Inner, now: Timestamp) -> Result<(), StoreError> {
    let workers_before = (now - WORKERS_FOR).as_millis();
    again(|| async {
        let lent = store.pool.get().await?;
        let work = async {
            lent.query(Sql::PruneKeys, &[&store.fixed(), &BATCH]).await?;
            lent.query(Sql::PruneWorkers, &[&workers_before]).await?;
            fold::fold_all(store, On::Own(&lent), now).await
        };
        let (begun, swept) = join!(lent.begin(), work);
        lent.conclude(begun, swept).await.map(drop)
    })
    .await
}

fn states(class: Class, retention: &Retention) -> Vec<(State, Keep)> {
    match class {
        Class::Done => {
            vec![(State::Succeeded, retention.of(State::Succeeded)), (State::Cancelled, retention.of(State::Cancelled))]
        }
        Class::Failed => vec![(State::Failed, retention.of(State::Failed))],
    }
}

fn span(keep: Keep) -> Option<i64> {
    match keep {
        Keep::Drop => Some(0),
        Keep::For(span) => Some(span.get() as i64),
        Keep::Forever => None,
    }
}

/// How long anything of a class is kept; `None` if something is kept for ever.
fn longest(class: Class, kept: &[(&Queue, Retention)]) -> Option<i64> {
    // Queues that another node makes meanwhile are kept for at least the default.
    let default = Retention::default();
    let all = kept.iter().map(|(_, retention)| retention).chain([&default]);
    let mut longest = 0;
    for (_, keep) in all.flat_map(|retention| states(class, retention)) {
        longest = longest.max(span(keep)?);
    }
    Some(longest)
}

fn groups(class: Class, kept: &[(&Queue, Retention)]) -> BTreeMap<i64, Group> {
    let mut groups: BTreeMap<i64, Group> = BTreeMap::new();
    for (queue, retention) in kept {
        for (state, keep) in states(class, retention) {
            if let Some(span) = span(keep) {
                let group = groups.entry(span).or_default();
                group.queues.push(queue.id.0);
                group.states.push(state.as_str());
            }
        }
    }
    groups
}
