//! Claim: due jobs stop waiting and run under a lease.

use crate::job::{ClaimedJob, LeaseId, QueueId};
use crate::store::passed_over::PassedOver;
use crate::store::sqlite::connection::sql::sql;
use crate::store::sqlite::connection::tx::Tx;
use crate::store::sqlite::life::bulk::list;
use crate::store::sqlite::life::enqueue::millis;
use crate::store::sqlite::life::{gates, leases};
use crate::store::sqlite::reads::columns::{due, front, looked};
use crate::store::sqlite::reads::rows;
use crate::store::{Claim, Kinds, Leases, Parking, Share, StoreError, passed_over};
use rusqlite::{OptionalExtension, params};
use std::collections::{BTreeMap, HashSet};
use std::fmt::Write;
use windlass_core::pick::{Candidate, Pick, Picker};
use windlass_core::{Delivery, JobId, Priority, Timestamp};

/// Lanes of one queue.
const LANES: i64 = 20;

/// A lane, by its place among the queue's twenty: see the column `lane`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Level(i64);

impl Level {
    /// The place of a lane of this queue.
    pub(super) const fn of(lane: i64) -> Self {
        Self(lane % LANES)
    }

    /// Lanes of one priority have the same one.
    pub(super) const fn priority(self) -> i64 {
        self.0 / 4
    }

    /// What its jobs have in common.
    pub(super) const fn candidate(self) -> Candidate {
        let delivery = if self.0 % 4 >= 2 { Delivery::AtMostOnce } else { Delivery::AtLeastOnce };
        Candidate { delivery, is_suspect: self.0 % 2 == 1 }
    }

    pub(super) const fn lane(self, queue: QueueId) -> i64 {
        queue.0 * LANES + self.0
    }
}

/// The lane of a waiting job: what the column `lane` says.
pub(in crate::store::sqlite) fn lane(queue: QueueId, priority: Priority, delivery: Delivery, crashes: u32) -> i64 {
    let level =
        (2 - i64::from(priority.rank())) * 4 + i64::from(delivery == Delivery::AtMostOnce) * 2 + i64::from(crashes > 0);
    Level(level).lane(queue)
}

/// The queue of a lane.
pub(in crate::store::sqlite) const fn queue_of(lane: i64) -> QueueId {
    QueueId(if lane < 0 { -lane } else { lane / LANES })
}

/// The lane under which a queue's parked jobs are counted.
pub(in crate::store::sqlite) const fn parked_lane(queue: QueueId) -> i64 {
    -queue.0
}

/// The lanes of a queue: the first, and the one after the last.
pub(super) const fn lanes_of(queue: QueueId) -> (i64, i64) {
    (queue.0 * LANES, (queue.0 + 1) * LANES)
}

/// The lane in which a job of this lane waits after so many crashes in a row.
pub(in crate::store::sqlite) fn lane_after(lane: i64, crashes: u32) -> i64 {
    lane - lane % 2 + i64::from(crashes > 0)
}

/// The columns of a due job that its lane has.
#[derive(Debug, Clone, Copy)]
pub(super) struct Due {
    pub(super) level: Level,
    pub(super) due_at: i64,
    pub(super) id: JobId,
}

/// A lane in which jobs wait.
#[derive(Debug, Clone, Copy)]
pub(super) struct Front {
    pub(super) level: Level,
    /// When its first job is due.
    pub(super) due_at: i64,
}

/// What a claim took.
#[derive(Debug, Default)]
pub(in crate::store::sqlite) struct Taken {
    pub jobs: Vec<(JobId, LeaseId)>,
    pub next_due: Option<Timestamp>,
    /// The jobs themselves, if they are few. Many are read by a reader, so that the writer is free for the next
    /// command.
    pub read: Option<Vec<ClaimedJob>>,
    /// Due jobs that a gate refused.
    pub parked: Vec<Parking>,
}

/// The most jobs that the writer reads itself: up to here, passing them to a reader would take longer.
const MAX_READ: usize = 64;

/// Which due jobs a claim may take.
#[derive(Debug, Clone, Copy)]
pub(super) enum Eligible<'c> {
    All,
    /// Those whose latest start has not passed.
    InTime,
    /// Those of these kinds, of which the ones before some places were passed over already.
    Kinds(&'c Kinds, &'c PassedOver),
}

pub(in crate::store::sqlite) fn claim(
    tx: &mut Tx<'_>,
    claim: &Claim,
    passed_over: &PassedOver,
) -> Result<Taken, StoreError> {
    let mut taken = Taken::default();
    let mut picker = Picker::new(claim.limit, claim.suspects);
    let eligible = match &claim.kinds {
        Some(kinds) => Eligible::Kinds(kinds, passed_over),
        None if has_late(tx)? => Eligible::InTime,
        None => Eligible::All,
    };
    let paused = paused(tx)?;
    let has_gates = gates::any(tx)?;
    let mut passes = Vec::new();
    for share in claim.shares.iter().filter(|share| !paused.contains(&share.queue.0)) {
        let lanes = lanes(tx, share.queue)?;
        let mut passed = Vec::new();
        let (ids, next) = match gates::flow_of(tx, share.queue, has_gates)? {
            Some(flow) => {
                let (started, next, parked) = gates::take_share(tx, share, &flow, &lanes, &mut picker, eligible)?;
                taken.parked.extend(parked);
                passed = started;
                (passed.iter().map(|(id, _)| *id).collect(), next)
            }
            None => {
                picker.next_queue(share.slots, share.ahead);
                let from_share = take_share(tx, share, &lanes, &mut picker, eligible)?;
                let next = match (picker.is_filled(), from_share.has_more) {
                    (true, _) => None,
                    (false, true) => Some(tx.now),
                    (false, false) => next_due(tx, share.queue, &lanes)?,
                };
                (from_share.jobs.iter().map(|job| job.id).collect::<Vec<JobId>>(), next)
            }
        };
        for (nth, id) in ids.into_iter().enumerate() {
            let lease = lease_of(claim, taken.jobs.len())?;
            taken.jobs.push((id, lease));
            passes.extend(passed.get(nth).map(|started| (lease, *started)));
        }
        if !picker.is_filled() {
            taken.next_due = [taken.next_due, next].into_iter().flatten().min();
        }
    }
    enter(tx, &taken.jobs)?;
    grant(tx, claim, &taken.jobs)?;
    if !passes.is_empty() {
        gates::put_passes(tx, &passes)?;
    }
    if taken.jobs.len() <= MAX_READ {
        taken.read = Some(leases::running(tx.conn, tx.names, &taken.jobs)?);
    }
    Ok(taken)
}

/// The lease of the job that is taken next, after so many.
fn lease_of(claim: &Claim, taken: usize) -> Result<LeaseId, StoreError> {
    match &claim.leases {
        Leases::Shared(lease) => Ok(*lease),
        Leases::Each(leases) => leases
            .get(taken)
            .copied()
            .ok_or_else(|| StoreError::Invalid("a claim must have a lease for each job".into())),
    }
}

/// Whether there are jobs whose latest start has passed. Claims skip them until they are expired.
fn has_late(tx: &Tx<'_>) -> Result<bool, StoreError> {
    Ok(tx.conn.prepare_cached(sql!("claim.sql", "claim_late"))?.query_row([tx.now.as_millis()], rows::only)?)
}

/// The paused queues: few, so they are read at once.
fn paused(tx: &Tx<'_>) -> Result<HashSet<i64>, StoreError> {
    let mut select = tx.conn.prepare_cached(sql!("claim.sql", "claim_paused"))?;
    Ok(rows::column::<i64>(select.query([])?)?.into_iter().collect())
}

/// Jobs taken from one queue.
#[derive(Debug, Default)]
pub(super) struct FromShare {
    pub(super) jobs: Vec<Due>,
    /// Whether there are due jobs that the claim did not look at.
    pub(super) has_more: bool,
}

/// Takes a queue's share of due jobs; they stop waiting.
fn take_share(
    tx: &mut Tx<'_>,
    share: &Share,
    lanes: &[Front],
    picker: &mut Picker,
    eligible: Eligible<'_>,
) -> Result<FromShare, StoreError> {
    let mut taken = FromShare::default();
    let now = tx.now.as_millis();
    let levels: Vec<Level> = lanes.iter().filter(|lane| lane.due_at <= now).map(|lane| lane.level).collect();
    for same in levels.chunk_by(|a, b| a.priority() == b.priority()) {
        if picker.is_full() {
            break;
        }
        pick(tx, share, same, picker, eligible, &mut taken)?;
    }
    let mut by_lane: BTreeMap<i64, Vec<Due>> = BTreeMap::new();
    for due in &taken.jobs {
        by_lane.entry(due.level.lane(share.queue)).or_default().push(*due);
    }
    for (lane, jobs) in by_lane {
        leave(tx, lane, &jobs, eligible)?;
        tx.waiting(lane, -(jobs.len() as i64));
    }
    Ok(taken)
}

/// Removes jobs taken from a lane, in its order, from the waiting jobs.
fn leave(tx: &Tx<'_>, lane: i64, taken: &[Due], eligible: Eligible<'_>) -> Result<(), StoreError> {
    let count = match eligible {
        // No job before the last was skipped.
        Eligible::All => leave_first(tx, lane, taken)?,
        Eligible::InTime => leave_listed(tx, lane, taken)?,
        // Any number of jobs may lie before them.
        Eligible::Kinds(..) => leave_each(tx, lane, taken)?,
    };
    if count == taken.len() {
        Ok(())
    } else {
        Err(StoreError::corrupt(format!("lane {lane}"), "a claim takes its first jobs, or those it names"))
    }
}

/// The same if they are the first of the lane: one range is much faster than one row at a time.
pub(super) fn leave_first(tx: &Tx<'_>, lane: i64, taken: &[Due]) -> Result<usize, StoreError> {
    let Some(last) = taken.last() else { return Ok(0) };
    Ok(tx.conn.prepare_cached(sql!("claim.sql", "claim_take"))?.execute([lane, last.due_at, last.id.0])?)
}

/// The same, one by one. Returns how many were removed.
pub(super) fn leave_each(tx: &Tx<'_>, lane: i64, taken: &[Due]) -> Result<usize, StoreError> {
    let mut leave = tx.conn.prepare_cached(sql!("claim.sql", "claim_take_one"))?;
    let mut count = 0;
    for due in taken {
        count += leave.execute([lane, due.due_at, due.id.0])?;
    }
    Ok(count)
}

/// The same if few jobs before the last stay. Returns how many were removed.
fn leave_listed(tx: &Tx<'_>, lane: i64, taken: &[Due]) -> Result<usize, StoreError> {
    let Some(last) = taken.last() else { return Ok(0) };
    let ids = list(taken.iter().map(|due| due.id));
    let mut leave = tx.conn.prepare_cached(sql!("claim.sql", "claim_take_listed"))?;
    Ok(leave.execute(params![lane, last.due_at, last.id.0, ids])?)
}

/// Marks taken jobs as running, in the order of the table.
fn enter(tx: &Tx<'_>, jobs: &[(JobId, LeaseId)]) -> Result<(), StoreError> {
    let mut sorted: Vec<(JobId, LeaseId)> = jobs.to_vec();
    sorted.sort_unstable_by_key(|(job, _)| *job);
    let mut enter = tx.conn.prepare_cached(sql!("claim.sql", "claim_run"))?;
    for (job, lease) in sorted {
        if enter.execute([job.0, lease.0, tx.now.as_millis()])? == 0 {
            return Err(StoreError::corrupt(format!("job {job}"), "a waiting job is live"));
        }
    }
    Ok(())
}

/// The lanes of a queue in which jobs wait, in the order they are served.
fn lanes(tx: &Tx<'_>, queue: QueueId) -> Result<Vec<Front>, StoreError> {
    let mut select = tx.conn.prepare_cached(sql!("claim.sql", "claim_lane"))?;
    let (first, end) = lanes_of(queue);
    let mut from = first;
    let mut lanes = Vec::new();
    while from < end {
        let mut found = select.query([from, end])?;
        let Some(row) = found.next()? else { break };
        let lane: i64 = row.get(front::lane)?;
        lanes.push(Front { level: Level(lane - first), due_at: row.get(front::due_at)? });
        from = lane + 1;
    }
    Ok(lanes)
}

/// Takes from the lanes of one priority, by due time and id.
fn pick(
    tx: &Tx<'_>,
    share: &Share,
    levels: &[Level],
    picker: &mut Picker,
    eligible: Eligible<'_>,
    taken: &mut FromShare,
) -> Result<(), StoreError> {
    let mut found = Vec::new();
    for level in levels {
        // No more than this can be taken from this lane, whatever the other lanes hold.
        let most = picker.most(level.candidate());
        if most > 0 {
            found.extend(match eligible {
                Eligible::All => due(tx, share.queue, *level, most, sql!("claim.sql", "claim_due"))?,
                Eligible::InTime => due(tx, share.queue, *level, most, sql!("claim.sql", "claim_due_in_time"))?,
                Eligible::Kinds(kinds, passed_over) => {
                    let looked = look_for(tx, share, *level, most, kinds, passed_over)?;
                    taken.has_more |= looked.has_more;
                    looked.jobs
                }
            });
        }
    }
    if levels.len() > 1 {
        found.sort_by_key(|due| (due.due_at, due.id));
    }
    for due in found {
        match picker.pick(due.level.candidate()) {
            Pick::Take => taken.jobs.push(due),
            Pick::PassOver => {}
            Pick::Full => break,
        }
    }
    Ok(())
}

pub(super) fn due(
    tx: &Tx<'_>,
    queue: QueueId,
    level: Level,
    most: u32,
    statement: &str,
) -> Result<Vec<Due>, StoreError> {
    let mut select = tx.conn.prepare_cached(statement)?;
    let found = select.query(params![level.lane(queue), tx.now.as_millis(), most])?;
    rows::all(found, |row| Ok(Due { level, id: JobId(row.get(due::id)?), due_at: row.get(due::due_at)? }))
}

/// The first due jobs of a lane that are of these kinds, among those that one claim looks at.
pub(super) fn look_for(
    tx: &Tx<'_>,
    share: &Share,
    level: Level,
    most: u32,
    kinds: &Kinds,
    passed_over: &PassedOver,
) -> Result<FromShare, StoreError> {
    let lane = level.lane(share.queue);
    let (bound, start) = (passed_over::look(most), passed_over.start(kinds, lane, tx.now));
    let mut select = tx.conn.prepare_cached(sql!("claim.sql", "claim_look"))?;
    let mut rows = select.query(params![lane, tx.now.as_millis(), bound, start.0, start.1])?;
    let mut found = FromShare::default();
    let (mut count, mut last) = (0, start);
    while found.jobs.len() < most as usize {
        let Some(row) = rows.next()? else { break };
        let due = Due { level, id: JobId(row.get(looked::id)?), due_at: row.get(looked::due_at)? };
        (count, last) = (count + 1, (due.due_at, due.id.0));
        let is_asked = kinds.contains(row.get_ref(looked::kind)?.as_str().unwrap_or_default());
        if is_asked && !row.get::<_, bool>(looked::is_late)? {
            found.jobs.push(due);
        }
    }
    found.has_more = count == bound && found.jobs.len() < most as usize;
    if found.has_more {
        // The next claim starts with the first job of these kinds, which may not be taken, or after all that were seen.
        let first = found.jobs.first().map(|due| (due.due_at, due.id.0));
        passed_over.advance(kinds, lane, first.unwrap_or((last.0, last.1.saturating_add(1))), tx.now);
    }
    Ok(found)
}

/// The first moment after now at which a waiting job of these lanes becomes due.
pub(super) fn next_due(tx: &Tx<'_>, queue: QueueId, lanes: &[Front]) -> Result<Option<Timestamp>, StoreError> {
    let now = tx.now.as_millis();
    let mut select = tx.conn.prepare_cached(sql!("claim.sql", "lane_next_due"))?;
    let mut next = None;
    for lane in lanes {
        let due_at = if lane.due_at > now {
            Some(lane.due_at)
        } else {
            select.query_row([lane.level.lane(queue), now], rows::only).optional()?
        };
        next = [next, due_at].into_iter().flatten().min();
    }
    Ok(next.map(Timestamp::from_millis))
}

fn grant(tx: &Tx<'_>, claim: &Claim, jobs: &[(JobId, LeaseId)]) -> Result<(), StoreError> {
    let mut covered: BTreeMap<LeaseId, String> = BTreeMap::new();
    for (job, lease) in jobs {
        let ids = covered.entry(*lease).or_default();
        let comma = if ids.is_empty() { "" } else { "," };
        // Writing to a String cannot fail.
        let _ = write!(ids, "{comma}{job}");
    }
    let mut grant = tx.conn.prepare_cached(sql!("claim.sql", "lease_grant"))?;
    let expires_at = tx.now + claim.lease_for;
    let ends_at_boot = tx.boot + millis(claim.lease_for);
    for (lease, ids) in covered {
        let worker = &*claim.worker.0;
        grant.execute(params![lease.0, worker, expires_at.as_millis(), millis(claim.lease_for), ids, ends_at_boot])?;
    }
    Ok(())
}
