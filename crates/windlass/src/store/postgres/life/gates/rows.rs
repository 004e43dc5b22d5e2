//! The rows of gates: find, lock, add, count and write them. Whatever locks several does so in the order of their ids.

use crate::store::StoreError;
use crate::store::gates::claim_gates::Entry;
use crate::store::gates::{self, ClaimGates, GateName, GateScope};
use crate::store::postgres::Inner;
use crate::store::postgres::connection::fault::changed;
use crate::store::postgres::connection::pool::On;
use crate::store::postgres::statements::Sql;
use crate::store::postgres::statements::arrays::{arrays, at};
use crate::store::postgres::statements::columns::Columns;
use crate::store::postgres::statements::row::Row;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use windlass_core::Timestamp;
use windlass_core::gate::{Gate, GateRule};

arrays!(
    /// The names of gates.
    NameRows<'a> {
        tenant: &'a str,
        queue: &'a str,
        scope: &'a str,
        key: &'a str,
    }
);

impl<'a> NameRows<'a> {
    fn of(names: &[&'a GateName]) -> Self {
        let mut rows = Self::default();
        for name in names {
            let (tenant, queue, scope, key) = name.parts();
            rows.tenant.push(tenant);
            rows.queue.push(queue);
            rows.scope.push(scope);
            rows.key.push(key);
        }
        rows
    }
}

arrays!(
    /// Gates, as the statement `gates_put` takes them.
    GateRows<'a> {
        id: i64,
        in_use: i32,
        state: String,
        is_shut: bool,
        opens_at: Option<i64>,
        is_checked: bool,
    }
);

impl GateRows<'_> {
    /// A gate as it is now. Nothing was parked behind it by this transaction.
    pub(in crate::store::postgres) fn push(
        &mut self,
        id: i64,
        (scope, gate, rule): (GateScope, &Gate, &GateRule),
        now: Timestamp,
    ) {
        self.id.push(id);
        self.in_use.push(i32::try_from(gate.in_use()).unwrap_or(i32::MAX));
        self.state.push(gate.to_text());
        self.is_shut.push(gates::is_shut(gate, now));
        self.opens_at.push(gates::opens_at(scope, gate, rule, now).map(Timestamp::as_millis));
        self.is_checked.push(false);
    }

    /// Whether jobs are parked behind the last one is looked up when it is written.
    fn check_last(&mut self) {
        if let Some(last) = self.is_checked.last_mut() {
            *last = true;
        }
    }

    /// Writes them. Their rows are locked by this transaction.
    pub(in crate::store::postgres) async fn write(&self, store: &Inner, on: On<'_>) -> Result<(), StoreError> {
        if self.id.is_empty() {
            return Ok(());
        }
        on.query(Sql::GatesPut, &at(&store.fixed(), self.params())).await.map(drop)
    }
}

/// The state in a row with `in_use` and `state`.
fn gate(row: &Row, id: i64) -> Result<Gate, StoreError> {
    gate_before(row, id, 0)
}

/// The state before so many attempts were subtracted.
pub(in crate::store::postgres) fn gate_before(row: &Row, id: i64, ended: u32) -> Result<Gate, StoreError> {
    let c = Columns::new(row);
    let gate = Gate::from_text(c.text("state")?, c.count("in_use")?.saturating_add(ended));
    gate.map_err(|error| StoreError::corrupt(format!("gate {id}"), error.to_string()))
}

pub(in crate::store::postgres) fn scope(row: &Row) -> Result<GateScope, StoreError> {
    GateScope::parse(Columns::new(row).text("scope")?)
        .ok_or_else(|| StoreError::corrupt("a gate", "its scope is known"))
}

/// The name in a gate's row.
pub(in crate::store::postgres) fn name(row: &Row) -> Result<GateName, StoreError> {
    let c = Columns::new(row);
    let name = GateName::from_parts(c.text("tenant")?, c.text("queue")?, c.text("scope")?, c.text("key")?);
    name.ok_or_else(|| StoreError::corrupt("a gate", "it has a name Windlass knows"))
}

/// Whether a gate's row has this name.
fn has_name(row: &Row, name: &GateName) -> Result<bool, StoreError> {
    let c = Columns::new(row);
    Ok(name.parts() == (c.text("tenant")?, c.text("queue")?, c.text("scope")?, c.text("key")?))
}

/// A gate's whole row: id, name and state.
pub(in crate::store::postgres) fn read(row: &Row) -> Result<(i64, GateName, Gate), StoreError> {
    let id: i64 = Columns::new(row).get("id")?;
    Ok((id, name(row)?, gate(row, id)?))
}

/// Locks the gates of these names that exist.
pub(in crate::store::postgres) async fn lock_named(
    on: On<'_>,
    names: &[&GateName],
) -> Result<HashMap<GateName, (i64, Gate)>, StoreError> {
    let mut by_id: HashMap<i64, GateName> = HashMap::new();
    for row in &on.query(Sql::GatesFind, &NameRows::of(names).params()).await? {
        let c = Columns::new(row);
        by_id.insert(c.get("id")?, names[c.get::<i64>("place")? as usize - 1].clone());
    }
    let ids: Vec<i64> = by_id.keys().copied().collect();
    let mut known = HashMap::new();
    for row in &on.query(Sql::GatesLock, &[&ids]).await? {
        let id: i64 = Columns::new(row).get("id")?;
        if let Some(name) = by_id.remove(&id) {
            known.insert(name, (id, gate(row, id)?));
        }
    }
    Ok(known)
}

/// Adds gates that do not exist, each with so many attempts in use. Returns the ids and names of those that were added.
pub(in crate::store::postgres) async fn add(
    store: &Inner,
    on: On<'_>,
    names: &[&GateName],
    in_use: &[i32],
) -> Result<Vec<(i64, GateName)>, StoreError> {
    let (now, rows) = (store.fixed(), NameRows::of(names));
    let mut params = at(&now, rows.params());
    params.push(&in_use);
    params.push(&Gate::PLAIN);
    let added = on.query(Sql::GatesAdd, &params).await?;
    added.iter().map(|row| Ok((Columns::new(row).get("id")?, name(row)?))).collect()
}

/// The ids of gates that claims have met: looking a row up by its id is several times as cheap as by its name. A gate
/// keeps its id until it is removed.
#[derive(Debug, Default)]
pub(in crate::store::postgres) struct GateIds(Mutex<HashMap<GateName, i64>>);

/// The most ids remembered; beyond it, all are forgotten.
const MAX_IDS: usize = 50_000;

impl GateIds {
    fn lock(&self) -> MutexGuard<'_, HashMap<GateName, i64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads the gates of a claim, without locks. A claim is the only one that adds to what is in use, so what it reads is
/// never too low.
pub(in crate::store::postgres) async fn find_all(
    store: &Inner,
    on: On<'_>,
    claim_gates: &mut ClaimGates,
) -> Result<(), StoreError> {
    let places: HashMap<i64, usize> = {
        let ids = store.gate_ids.lock();
        let entries = claim_gates.entries().iter().enumerate();
        entries.filter_map(|(place, entry)| Some((*ids.get(&entry.name)?, place))).collect()
    };
    if !places.is_empty() {
        let ids: Vec<i64> = places.keys().copied().collect();
        for row in &on.query(Sql::GatesRead, &[&ids]).await? {
            let id: i64 = Columns::new(row).get("id")?;
            // In a schema that was made anew, another gate may have the id.
            if let Some(place) = places.get(&id)
                && has_name(row, &claim_gates.entries()[*place].name)?
            {
                claim_gates.entries_mut()[*place].found(id, gate(row, id)?);
            }
        }
    }
    find_by_name(store, on, claim_gates).await
}

/// Reads those that were not found by their ids.
async fn find_by_name(store: &Inner, on: On<'_>, claim_gates: &mut ClaimGates) -> Result<(), StoreError> {
    let missing = |(_, entry): &(usize, &Entry)| !entry.is_read;
    let places: Vec<usize> = claim_gates.entries().iter().enumerate().filter(missing).map(|(place, _)| place).collect();
    if places.is_empty() {
        return Ok(());
    }
    let names: Vec<&GateName> = places.iter().map(|place| &claim_gates.entries()[*place].name).collect();
    let rows = on.query(Sql::GatesFind, &NameRows::of(&names).params()).await?;
    let mut ids = store.gate_ids.lock();
    if ids.len() > MAX_IDS {
        ids.clear();
    }
    for row in &rows {
        let c = Columns::new(row);
        let (place, id): (i64, i64) = (c.get("place")?, c.get("id")?);
        let entry = &mut claim_gates.entries_mut()[places[place as usize - 1]];
        entry.found(id, gate(row, id)?);
        ids.insert(entry.name.clone(), id);
    }
    Ok(())
}

/// Locks the gates of a claim that exist, and reads them again.
pub(in crate::store::postgres) async fn lock_all(on: On<'_>, claim_gates: &mut ClaimGates) -> Result<(), StoreError> {
    let mut places: HashMap<i64, usize> = HashMap::new();
    for (place, entry) in claim_gates.entries_mut().iter_mut().enumerate() {
        places.extend(entry.row.take().map(|id| (id, place)));
        entry.gate = Gate::default();
    }
    let ids: Vec<i64> = places.keys().copied().collect();
    for row in &on.query(Sql::GatesLock, &[&ids]).await? {
        let id: i64 = Columns::new(row).get("id")?;
        if let Some(place) = places.get(&id) {
            claim_gates.entries_mut()[*place].found(id, gate(row, id)?);
        }
    }
    Ok(())
}

/// Whether a gate of a claim has no row and is used.
pub(in crate::store::postgres) fn has_new(claim_gates: &ClaimGates) -> bool {
    claim_gates.entries().iter().any(is_new)
}

const fn is_new(entry: &Entry) -> bool {
    entry.row.is_none() && entry.is_touched()
}

/// Gives rows to the gates of a claim that have none and are used. They are counted in them already.
pub(in crate::store::postgres) async fn add_new(
    store: &Inner,
    on: On<'_>,
    claim_gates: &mut ClaimGates,
) -> Result<(), StoreError> {
    let new = claim_gates.entries().iter().filter(|entry| is_new(entry));
    let (names, counts): (Vec<&GateName>, Vec<i32>) = new.map(|new| (&new.name, new.started as i32)).unzip();
    let added = add(store, on, &names, &counts).await?;
    // Somebody else added one: a hold, perhaps.
    if added.len() < names.len() {
        return Err(changed());
    }
    for (id, name) in added {
        if let Some(place) = claim_gates.find(&name) {
            claim_gates.entries_mut()[place].added(id);
        }
    }
    Ok(())
}

/// Counts what a claim starts at gates that only count, and locks those that it looks at or parks behind. Commits may
/// have ended attempts since the gates were read, so the new numbers are what counts.
pub(in crate::store::postgres) async fn count(
    store: &Inner,
    on: On<'_>,
    claim_gates: &mut ClaimGates,
) -> Result<(), StoreError> {
    let mut touched: Vec<(i64, usize)> = Vec::new();
    for (place, entry) in claim_gates.entries().iter().enumerate().filter(|(_, entry)| entry.is_touched()) {
        touched.extend(entry.row.map(|id| (id, place)));
    }
    if touched.is_empty() {
        return Ok(());
    }
    touched.sort_unstable();
    let ids: Vec<i64> = touched.iter().map(|(id, _)| *id).collect();
    let started: Vec<i32> = touched.iter().map(|(_, place)| claim_gates.entries()[*place].started as i32).collect();
    let rows = on.query(Sql::GatesStart, &[&store.fixed(), &ids, &started, &Gate::PLAIN]).await?;
    if rows.len() < ids.len() {
        return Err(changed());
    }
    for row in &rows {
        let c = Columns::new(row);
        let id: i64 = c.get("id")?;
        if let Ok(nth) = ids.binary_search(&id) {
            claim_gates.entries_mut()[touched[nth].1].gate = Gate::counting(c.count("in_use")?);
        }
    }
    Ok(())
}

/// Writes the gates of a claim that `is_meant` names, and when to look at what is parked behind them. Call it after
/// parking.
pub(in crate::store::postgres) async fn put_all(
    store: &Inner,
    on: On<'_>,
    claim_gates: &ClaimGates,
    is_meant: impl Fn(&Entry) -> bool,
    now: Timestamp,
) -> Result<(), StoreError> {
    let mut rows = GateRows::default();
    for entry in claim_gates.entries().iter().filter(|entry| is_meant(entry)) {
        let Some(id) = entry.row else { continue };
        rows.push(id, (entry.name.scope(), &entry.gate, &entry.rule), now);
        if entry.is_contended() {
            rows.check_last();
        }
    }
    rows.write(store, on).await
}
