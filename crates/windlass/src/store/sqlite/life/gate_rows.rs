//! The rows of gates: find, add, count and write them.

use crate::store::StoreError;
use crate::store::gates::claim_gates::Entry;
use crate::store::gates::{self, ClaimGates, GateName};
use crate::store::sqlite::connection::sql::sql;
use crate::store::sqlite::connection::tx::Tx;
use crate::store::sqlite::reads::columns::{gate, gate_state};
use crate::store::sqlite::reads::rows;
use rusqlite::{Row, params};
use windlass_core::Timestamp;
use windlass_core::gate::Gate;

/// Reads the gates of a claim that have not been read yet.
pub(super) fn find_new(tx: &Tx<'_>, claim_gates: &mut ClaimGates) -> Result<(), StoreError> {
    for entry in claim_gates.entries_mut().iter_mut().filter(|entry| !entry.is_read) {
        entry.is_read = true;
        if let Some((id, gate)) = find(tx, &entry.name)? {
            entry.found(id, gate);
        }
    }
    Ok(())
}

/// Gives rows to the gates of a claim that have none and are used, with what they count.
pub(super) fn add_new(tx: &Tx<'_>, claim_gates: &mut ClaimGates) -> Result<(), StoreError> {
    let is_new = |entry: &&mut Entry| entry.row.is_none() && entry.is_touched();
    for entry in claim_gates.entries_mut().iter_mut().filter(is_new) {
        let row = add(tx, &entry.name, entry.started)?;
        entry.added(row);
    }
    Ok(())
}

fn add(tx: &Tx<'_>, name: &GateName, in_use: u32) -> Result<i64, StoreError> {
    let (tenant, queue, scope, key) = name.parts();
    let mut add = tx.conn.prepare_cached(sql!("gates.sql", "gate_add"))?;
    // SQLite takes half as long again for an insert with results.
    Ok(add.insert(params![tenant, queue, scope, key, in_use, Gate::PLAIN, tx.now.as_millis()])?)
}

/// Writes a gate, and when a claim should look at what is parked behind it.
pub(super) fn put(tx: &Tx<'_>, id: i64, gate: &Gate, opens_at: Option<Timestamp>) -> Result<(), StoreError> {
    let (is_shut, opens_at) = (gates::is_shut(gate, tx.now), opens_at.map(Timestamp::as_millis));
    let mut put = tx.conn.prepare_cached(sql!("gates.sql", "gate_put"))?;
    put.execute(params![id, gate.in_use(), gate.to_text(), is_shut, opens_at, tx.now.as_millis()])?;
    Ok(())
}

/// Counts what a claim starts at gates that only count; of the others, and of those that jobs are parked behind, all is
/// written. Call it once, after parking.
pub(super) fn write_all(tx: &Tx<'_>, claim_gates: &ClaimGates) -> Result<(), StoreError> {
    let mut count = tx.conn.prepare_cached(sql!("gates.sql", "gate_start"))?;
    for entry in claim_gates.entries().iter().filter(|entry| entry.is_touched()) {
        let Some(id) = entry.row else { continue };
        if !entry.only_counts || entry.is_contended() {
            put(tx, id, &entry.gate, gates::opens_at(entry.name.scope(), &entry.gate, &entry.rule, tx.now))?;
        } else if entry.started > entry.counted {
            count.execute(params![id, entry.started - entry.counted, tx.now.as_millis()])?;
        }
    }
    Ok(())
}

pub(super) fn read_state(id: i64, state: &str, in_use: u32) -> Result<Gate, StoreError> {
    Gate::from_text(state, in_use).map_err(|error| StoreError::corrupt(format!("gate {id}"), error.to_string()))
}

/// The name in a gate's row.
pub(super) fn name(row: &Row<'_>) -> Result<GateName, StoreError> {
    let name = GateName::from_parts(
        rows::must(row, gate::tenant)?,
        rows::must(row, gate::queue)?,
        rows::must(row, gate::scope)?,
        rows::must(row, gate::key)?,
    );
    name.ok_or_else(|| StoreError::corrupt("a gate", "it has a name Windlass knows"))
}

/// A gate's row: id, name and state.
pub(in crate::store::sqlite) fn read(row: &Row<'_>) -> Result<(i64, GateName, Gate), StoreError> {
    let id = row.get(gate::id)?;
    Ok((id, name(row)?, read_state(id, rows::must(row, gate::state)?, row.get(gate::in_use)?)?))
}

pub(super) fn find(tx: &Tx<'_>, name: &GateName) -> Result<Option<(i64, Gate)>, StoreError> {
    let mut select = tx.conn.prepare_cached(sql!("gates.sql", "gate_find"))?;
    let (tenant, queue, scope, key) = name.parts();
    let mut found = select.query(params![tenant, queue, scope, key])?;
    let Some(row) = found.next()? else { return Ok(None) };
    let id = row.get(gate_state::id)?;
    Ok(Some((id, read_state(id, rows::must(row, gate_state::state)?, row.get(gate_state::in_use)?)?)))
}

pub(super) fn find_or_add(tx: &Tx<'_>, name: &GateName) -> Result<(i64, Gate), StoreError> {
    match find(tx, name)? {
        Some(found) => Ok(found),
        None => Ok((add(tx, name, 0)?, Gate::default())),
    }
}
