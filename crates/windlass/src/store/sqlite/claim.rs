//! Claim, renew and what a lease holds.

use super::bulk::list;
use super::enqueue::millis;
use super::names::Names;
use super::rows;
use super::sql::sql;
use super::tx::Tx;
use crate::job::{Job, LeaseId, QueueId};
use crate::store::{Claim, Claimed, Leases, Renewed, StoreError, Turn};
use rusqlite::{Connection, OptionalExtension, params};
use std::collections::BTreeMap;
use std::fmt::Write;
use windlass_core::{Delivery, JobId, Millis, Priority, State, Timestamp};

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
pub(super) fn lane(queue: QueueId, priority: Priority, delivery: Delivery, crashes: u32) -> i64 {
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

impl Tx<'_> {
    pub(super) fn claim(&mut self, claim: &Claim) -> Result<Claimed, StoreError> {
        let mut claimed = Claimed::default();
        let mut suspects = claim.suspects as usize;
        for turn in &claim.turns {
            if self.is_paused(turn)? {
                continue;
            }
            let whole = turn.slots as usize + turn.ahead as usize;
            let left = claim.limit as usize - claimed.jobs.len();
            let room = Room { want: whole.min(left), slots: turn.slots as usize, suspects };
            let taken = self.take_turn(turn, room, claim, claimed.jobs.len())?;
            suspects -= taken.iter().filter(|job| job.crashes > 0).count();
            let is_filled = taken.len() == whole;
            claimed.jobs.extend(taken);
            if !is_filled {
                claimed.next_due = [claimed.next_due, self.next_due(turn)?].into_iter().flatten().min();
            }
        }
        self.grant(claim, &claimed.jobs)?;
        Ok(claimed)
    }

    fn is_paused(&self, turn: &Turn) -> Result<bool, StoreError> {
        let mut select = self.conn.prepare_cached(sql!("queue_paused"))?;
        Ok(select.query_row([turn.queue.0], |row| row.get(0)).optional()?.unwrap_or(true))
    }

    fn take_turn(&mut self, turn: &Turn, room: Room, claim: &Claim, before: usize) -> Result<Vec<Job>, StoreError> {
        let mut taken = Vec::new();
        if room.want == 0 {
            return Ok(taken);
        }
        let levels = self.levels(turn)?;
        for same in levels.chunk_by(|a, b| a.priority() == b.priority()) {
            self.pick(turn, same, &room, &mut taken)?;
            if taken.len() == room.want {
                break;
            }
        }
        for (position, job) in taken.iter_mut().enumerate() {
            job.lease = Some(match &claim.leases {
                Leases::Shared(lease) => *lease,
                Leases::Each(leases) => *leases
                    .get(before + position)
                    .ok_or_else(|| StoreError::Invalid("a claim brings a lease for each job".into()))?,
            });
            job.state = State::Running;
            job.attempt += 1;
            job.claimed_at = Some(self.now);
            job.first_attempt_at.get_or_insert(self.now);
        }
        self.write_taken(&taken)?;
        Ok(taken)
    }

    /// Taken jobs wait no longer, and run.
    fn write_taken(&self, taken: &[Job]) -> Result<(), StoreError> {
        let mut by_lane: BTreeMap<i64, Vec<&Job>> = BTreeMap::new();
        for job in taken {
            let lane = lane(job.queue_id, job.priority, job.delivery, job.crashes);
            by_lane.entry(lane).or_default().push(job);
        }
        for (lane, jobs) in by_lane {
            self.leave(lane, &jobs)?;
        }
        let mut enter = self.conn.prepare_cached(sql!("running_put"))?;
        for job in taken {
            let lease = job.lease.expect("a claimed job has a lease");
            enter.execute([job.id.0, lease.0, self.now.as_millis()])?;
        }
        Ok(())
    }

    /// Jobs taken from a lane, in its order, wait no longer.
    fn leave(&self, lane: i64, jobs: &[&Job]) -> Result<(), StoreError> {
        let (Some(first), Some(last)) = (jobs.first(), jobs.last()) else { return Ok(()) };
        let (from, to) = (first.due_at.as_millis(), last.due_at.as_millis());
        let between = [lane, from, first.id.0, to, last.id.0];
        let count: i64 = self.conn.prepare_cached(sql!("waiting_count"))?.query_row(between, |row| row.get(0))?;
        if count == jobs.len() as i64 {
            // Nobody between them was passed over: many times faster than one by one.
            self.conn.prepare_cached(sql!("waiting_take_all"))?.execute(between)?;
        } else {
            let ids = list(jobs.iter().map(|job| job.id));
            let [lane, from, first, to, last] = between;
            self.conn.prepare_cached(sql!("waiting_take"))?.execute(params![lane, from, first, to, last, ids])?;
        }
        Ok(())
    }

    /// The lanes of a queue that have due jobs, first things first.
    fn levels(&self, turn: &Turn) -> Result<Vec<Level>, StoreError> {
        let mut select = self.conn.prepare_cached(sql!("claim_levels"))?;
        let mut levels: Vec<i64> = rows::column(select.query(params![turn.queue.0, self.now.as_millis()])?)?;
        levels.sort_unstable();
        Ok(levels.into_iter().map(Level).collect())
    }

    /// Takes from the streams of one priority, by due time and id.
    fn pick(&mut self, turn: &Turn, levels: &[Level], room: &Room, taken: &mut Vec<Job>) -> Result<(), StoreError> {
        let mut suspects = room.suspects - taken.iter().filter(|job| job.crashes > 0).count();
        let mut due = Vec::new();
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
                due.extend(self.due(turn, *level, most)?);
            }
        }
        if levels.len() > 1 {
            due.sort_by_key(|job| (job.due_at, job.id));
        }
        for job in due {
            let is_once_without_slot = job.delivery == Delivery::AtMostOnce && taken.len() >= room.slots;
            let is_suspect = job.crashes > 0;
            if taken.len() == room.want {
                break;
            }
            if is_once_without_slot || (is_suspect && suspects == 0) {
                continue;
            }
            suspects -= usize::from(is_suspect);
            taken.push(job);
        }
        Ok(())
    }

    fn due(&mut self, turn: &Turn, level: Level, most: usize) -> Result<Vec<Job>, StoreError> {
        let mut select = self.conn.prepare_cached(sql!("claim_due"))?;
        let found = select.query(params![level.lane(turn.queue), self.now.as_millis(), most as i64])?;
        rows::all(found, |row| rows::live(row, self.conn, self.names))
    }

    fn next_due(&self, turn: &Turn) -> Result<Option<Timestamp>, StoreError> {
        let mut select = self.conn.prepare_cached(sql!("next_due"))?;
        let next: Option<i64> = select.query_row(params![turn.queue.0, self.now.as_millis()], |row| row.get(0))?;
        Ok(next.map(Timestamp::from_millis))
    }

    fn grant(&self, claim: &Claim, jobs: &[Job]) -> Result<(), StoreError> {
        let mut covered: BTreeMap<LeaseId, String> = BTreeMap::new();
        for job in jobs {
            let lease = job.lease.expect("a claimed job has a lease");
            let ids = covered.entry(lease).or_default();
            let comma = if ids.is_empty() { "" } else { "," };
            // Writing to a String cannot fail.
            let _ = write!(ids, "{comma}{}", job.id);
        }
        let mut grant = self.conn.prepare_cached(sql!("lease_grant"))?;
        let expires_at = self.now + claim.lease_for;
        for (lease, ids) in covered {
            let worker = &*claim.worker.0;
            grant.execute(params![lease.0, worker, expires_at.as_millis(), millis(claim.lease_for), ids])?;
        }
        Ok(())
    }

    pub(super) fn renew(&mut self, leases: &[LeaseId], lease_for: Millis) -> Result<Renewed, StoreError> {
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
pub(super) fn held(conn: &Connection, names: &mut Names, leases: &[LeaseId]) -> Result<Vec<Job>, StoreError> {
    let mut covered = conn.prepare_cached(sql!("lease_jobs"))?;
    let mut select = conn.prepare_cached(sql!("live_select", "held"))?;
    let mut jobs = Vec::new();
    for lease in leases {
        let ids: Option<String> = covered.query_row([lease.0], |row| row.get(0)).optional()?;
        for id in ids.iter().flat_map(|ids| ids.split(',')) {
            let id: i64 = id.parse().map_err(|_| StoreError::corrupt(format!("lease {lease}"), "it lists job ids"))?;
            jobs.extend(rows::all(select.query([id, lease.0])?, |row| rows::live(row, conn, names))?);
        }
    }
    Ok(jobs)
}
