//! Claim, renew and what a lease holds.

use crate::job::{ClaimedJob, LeaseId, QueueId};
use crate::store::sqlite::connection::sql::sql;
use crate::store::sqlite::connection::tx::Tx;
use crate::store::sqlite::life::bulk::list;
use crate::store::sqlite::life::enqueue::millis;
use crate::store::sqlite::life::names::Names;
use crate::store::sqlite::reads::rows;
use crate::store::{Claim, Leases, Renewed, Share, StoreError};
use rusqlite::{Connection, OptionalExtension, params};
use std::collections::BTreeMap;
use std::fmt::Write;
use windlass_core::{Delivery, JobId, Millis, Priority, Timestamp};

/// Lanes of one queue.
const LANES: i64 = 20;

/// A lane that has due jobs, by its place among the queue's twenty: see the column `lane`.
#[derive(Debug, Clone, Copy)]
struct Level(i64);

impl Level {
    /// Lanes of one priority have the same one.
    const fn priority(self) -> i64 {
        self.0 / 4
    }

    const fn is_once(self) -> bool {
        self.0 % 4 >= 2
    }

    const fn is_suspect(self) -> bool {
        self.0 % 2 == 1
    }

    const fn lane(self, queue: QueueId) -> i64 {
        queue.0 * LANES + self.0
    }
}

/// The lane of a waiting job: what the column `lane` says.
pub(in crate::store::sqlite) fn lane(queue: QueueId, priority: Priority, delivery: Delivery, crashes: u32) -> i64 {
    let level =
        (2 - i64::from(priority.rank())) * 4 + i64::from(delivery == Delivery::AtMostOnce) * 2 + i64::from(crashes > 0);
    Level(level).lane(queue)
}

/// What is still to be taken.
#[derive(Debug, Clone, Copy)]
struct Room {
    want: usize,
    slots: usize,
    suspects: usize,
}

/// A waiting job that is due, as far as its lane knows it.
#[derive(Debug, Clone, Copy)]
struct Due {
    level: Level,
    due_at: i64,
    id: JobId,
}

/// What a claim took.
#[derive(Debug, Default)]
pub(in crate::store::sqlite) struct Taken {
    pub jobs: Vec<(JobId, LeaseId)>,
    pub next_due: Option<Timestamp>,
    /// The jobs themselves, if they are few. Many are read beside the writer, for which everybody waits.
    pub read: Option<Vec<ClaimedJob>>,
}

/// The most jobs that the writer reads itself: up to here that is sooner done than handed on.
const MAX_READ: usize = 64;

impl Tx<'_> {
    pub(in crate::store::sqlite) fn claim(&mut self, claim: &Claim) -> Result<Taken, StoreError> {
        let mut taken = Taken::default();
        let mut suspects = claim.suspects as usize;
        let has_late = self.has_late()?;
        for share in &claim.shares {
            if self.is_paused(share)? {
                continue;
            }
            let whole = share.slots as usize + share.ahead as usize;
            let left = claim.limit as usize - taken.jobs.len();
            let room = Room { want: whole.min(left), slots: share.slots as usize, suspects };
            let due = self.take_turn(share, room, has_late)?;
            suspects -= due.iter().filter(|due| due.level.is_suspect()).count();
            for job in &due {
                let lease = match &claim.leases {
                    Leases::Shared(lease) => *lease,
                    Leases::Each(leases) => *leases
                        .get(taken.jobs.len())
                        .ok_or_else(|| StoreError::Invalid("a claim brings a lease for each job".into()))?,
                };
                taken.jobs.push((job.id, lease));
            }
            if due.len() < whole {
                taken.next_due = [taken.next_due, self.next_due(share)?].into_iter().flatten().min();
            }
        }
        self.enter(&taken.jobs)?;
        self.grant(claim, &taken.jobs)?;
        if taken.jobs.len() <= MAX_READ {
            taken.read = Some(running(self.conn, self.names, &taken.jobs)?);
        }
        Ok(taken)
    }

    /// Whether there are jobs that should have started by now, and are to be passed over until they are expired.
    fn has_late(&self) -> Result<bool, StoreError> {
        Ok(self.conn.prepare_cached(sql!("claim_late"))?.query_row([self.now.as_millis()], |row| row.get(0))?)
    }

    fn is_paused(&self, share: &Share) -> Result<bool, StoreError> {
        let mut select = self.conn.prepare_cached(sql!("queue_paused"))?;
        Ok(select.query_row([share.queue.0], |row| row.get(0)).optional()?.unwrap_or(true))
    }

    /// Jobs of a queue, which no longer wait.
    fn take_turn(&mut self, share: &Share, room: Room, has_late: bool) -> Result<Vec<Due>, StoreError> {
        let mut taken = Vec::new();
        if room.want == 0 {
            return Ok(taken);
        }
        let levels = self.levels(share)?;
        for same in levels.chunk_by(|a, b| a.priority() == b.priority()) {
            self.pick(share, same, &room, has_late, &mut taken)?;
            if taken.len() == room.want {
                break;
            }
        }
        let mut by_lane: BTreeMap<i64, Vec<Due>> = BTreeMap::new();
        for due in &taken {
            by_lane.entry(due.level.lane(share.queue)).or_default().push(*due);
        }
        for (lane, taken) in by_lane {
            self.leave(lane, &taken, has_late)?;
        }
        Ok(taken)
    }

    /// Jobs taken from a lane, in its order, wait no longer.
    fn leave(&self, lane: i64, taken: &[Due], has_late: bool) -> Result<(), StoreError> {
        let Some(last) = taken.last() else { return Ok(()) };
        let count = if has_late {
            let ids = list(taken.iter().map(|due| due.id));
            let mut leave = self.conn.prepare_cached(sql!("waiting_take_listed"))?;
            leave.execute(params![lane, last.due_at, last.id.0, ids])?
        } else {
            // Nobody before the last was passed over, and one stretch goes much faster than one by one.
            self.conn.prepare_cached(sql!("waiting_take"))?.execute([lane, last.due_at, last.id.0])?
        };
        if count == taken.len() {
            Ok(())
        } else {
            Err(StoreError::corrupt(format!("lane {lane}"), "a claim takes its first jobs, or those it names"))
        }
    }

    /// Taken jobs run.
    fn enter(&self, jobs: &[(JobId, LeaseId)]) -> Result<(), StoreError> {
        let mut enter = self.conn.prepare_cached(sql!("running_put"))?;
        for (job, lease) in jobs {
            enter.execute([job.0, lease.0, self.now.as_millis()])?;
        }
        Ok(())
    }

    /// The lanes of a queue that have due jobs, first things first.
    fn levels(&self, share: &Share) -> Result<Vec<Level>, StoreError> {
        let mut select = self.conn.prepare_cached(sql!("claim_levels"))?;
        let mut levels: Vec<i64> = rows::column(select.query(params![share.queue.0, self.now.as_millis()])?)?;
        levels.sort_unstable();
        Ok(levels.into_iter().map(Level).collect())
    }

    /// Takes from the streams of one priority, by due time and id; from each stream its first ones.
    fn pick(
        &self,
        share: &Share,
        levels: &[Level],
        room: &Room,
        has_late: bool,
        taken: &mut Vec<Due>,
    ) -> Result<(), StoreError> {
        let mut suspects = room.suspects - taken.iter().filter(|due| due.level.is_suspect()).count();
        let mut found = Vec::new();
        for level in levels {
            // More than this could not be taken from the stream, whatever the others bring.
            let mut most = room.want - taken.len();
            if level.is_once() {
                most = most.min(room.slots.saturating_sub(taken.len()));
            }
            if level.is_suspect() {
                most = most.min(suspects);
            }
            if most > 0 {
                found.extend(self.due(share, *level, most, has_late)?);
            }
        }
        if levels.len() > 1 {
            found.sort_by_key(|due| (due.due_at, due.id));
        }
        for due in found {
            let is_once_without_slot = due.level.is_once() && taken.len() >= room.slots;
            let is_suspect = due.level.is_suspect();
            if taken.len() == room.want {
                break;
            }
            if is_once_without_slot || (is_suspect && suspects == 0) {
                continue;
            }
            suspects -= usize::from(is_suspect);
            taken.push(due);
        }
        Ok(())
    }

    fn due(&self, share: &Share, level: Level, most: usize, has_late: bool) -> Result<Vec<Due>, StoreError> {
        let statement = if has_late { sql!("claim_due_in_time") } else { sql!("claim_due") };
        let mut select = self.conn.prepare_cached(statement)?;
        let found = select.query(params![level.lane(share.queue), self.now.as_millis(), most as i64])?;
        rows::all(found, |row| Ok(Due { level, id: JobId(row.get(0)?), due_at: row.get(1)? }))
    }

    fn next_due(&self, share: &Share) -> Result<Option<Timestamp>, StoreError> {
        let mut select = self.conn.prepare_cached(sql!("next_due"))?;
        let next: Option<i64> = select.query_row(params![share.queue.0, self.now.as_millis()], |row| row.get(0))?;
        Ok(next.map(Timestamp::from_millis))
    }

    fn grant(&self, claim: &Claim, jobs: &[(JobId, LeaseId)]) -> Result<(), StoreError> {
        let mut covered: BTreeMap<LeaseId, String> = BTreeMap::new();
        for (job, lease) in jobs {
            let ids = covered.entry(*lease).or_default();
            let comma = if ids.is_empty() { "" } else { "," };
            // Writing to a String cannot fail.
            let _ = write!(ids, "{comma}{job}");
        }
        let mut grant = self.conn.prepare_cached(sql!("lease_grant"))?;
        let expires_at = self.now + claim.lease_for;
        for (lease, ids) in covered {
            let worker = &*claim.worker.0;
            grant.execute(params![lease.0, worker, expires_at.as_millis(), millis(claim.lease_for), ids])?;
        }
        Ok(())
    }

    pub(in crate::store::sqlite) fn renew(
        &mut self,
        leases: &[LeaseId],
        lease_for: Millis,
    ) -> Result<Renewed, StoreError> {
        let mut renewed = Renewed::default();
        let mut renew = self.conn.prepare_cached(sql!("lease_renew"))?;
        let mut cancels = self.conn.prepare_cached(sql!("lease_cancels"))?;
        let expires_at = (self.now + lease_for).as_millis();
        for lease in leases {
            if renew.execute(params![lease.0, expires_at, millis(lease_for)])? == 0 {
                renewed.lost.push(*lease);
                continue;
            }
            let asked: Vec<i64> = rows::column(cancels.query([lease.0])?)?;
            renewed.cancel_requested.extend(asked.into_iter().map(JobId));
        }
        Ok(renewed)
    }
}

/// The running jobs under leases.
pub(in crate::store::sqlite) fn held(
    conn: &Connection,
    names: &mut Names,
    leases: &[LeaseId],
) -> Result<Vec<ClaimedJob>, StoreError> {
    let mut covered = conn.prepare_cached(sql!("lease_jobs"))?;
    let mut jobs = Vec::new();
    for lease in leases {
        let ids: Option<String> = covered.query_row([lease.0], |row| row.get(0)).optional()?;
        for id in ids.iter().flat_map(|ids| ids.split(',')) {
            let id: i64 = id.parse().map_err(|_| StoreError::corrupt(format!("lease {lease}"), "it lists job ids"))?;
            jobs.push((JobId(id), *lease));
        }
    }
    running(conn, names, &jobs)
}

/// Those of the jobs that run under their leases, in order.
pub(in crate::store::sqlite) fn running(
    conn: &Connection,
    names: &mut Names,
    jobs: &[(JobId, LeaseId)],
) -> Result<Vec<ClaimedJob>, StoreError> {
    if jobs.is_empty() {
        return Ok(Vec::new());
    }
    let mut select = conn.prepare_cached(sql!("running_select"))?;
    let mut found = select.query([list(jobs.iter().map(|(job, _)| *job))])?;
    let mut running = Vec::with_capacity(jobs.len());
    while let Some(row) = found.next()? {
        let place: i64 = row.get(29)?;
        running.extend(rows::claimed(row, jobs[place as usize].1, conn, names)?);
    }
    Ok(running)
}
