//! Fair share: which queues to ask next and for how much, so that no queue and no tenant starves another. Pure.

use super::limits::MAX_CLAIM;
use crate::job::QueueId;
use crate::store::{Claimed, Share};
use std::collections::{HashMap, HashSet};
use windlass_core::Timestamp;
use windlass_core::job::Tenant;

/// How many jobs can be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Room {
    pub slots: u32,
    pub ahead: u32,
}

/// How much of a group's room each tenant may take, where tenants have limits.
#[derive(Debug, Clone, Default)]
pub(crate) struct TenantRooms {
    /// Of the tenants that hold jobs.
    pub known: HashMap<Tenant, Room>,
    /// Of each other tenant.
    pub others: Room,
    /// Queues that get nothing for now.
    pub skipped: HashSet<QueueId>,
}

impl TenantRooms {
    pub(crate) fn of(&self, tenant: &Tenant) -> Room {
        self.known.get(tenant).copied().unwrap_or(self.others)
    }

    fn of_queue(&self, member: &Member) -> Room {
        if self.skipped.contains(&member.queue) { Room::default() } else { self.of(&member.tenant) }
    }

    fn take(&mut self, tenant: &Tenant, share: Share) {
        let left = self.of(tenant);
        let left = Room { slots: left.slots - share.slots, ahead: left.ahead - share.ahead };
        self.known.insert(tenant.clone(), left);
    }
}

/// What a group of queues can take.
#[derive(Debug, Clone, Default)]
pub(crate) struct GroupRoom {
    pub all: Room,
    /// `None`: tenants have no limits.
    pub tenants: Option<TenantRooms>,
}

impl From<Room> for GroupRoom {
    fn from(all: Room) -> Self {
        Self { all, tenants: None }
    }
}

/// The queues a worker serves, in the order they are asked.
#[derive(Debug, Default)]
pub(crate) struct FairShare {
    groups: Vec<Group>,
    group_of: HashMap<QueueId, usize>,
    /// Which group is first in line next time, if one claim cannot serve them all.
    next: usize,
    /// When the queues without due jobs will next have one.
    pub next_due: Option<Timestamp>,
}

/// Queues that share room.
#[derive(Debug, Default)]
struct Group {
    members: Vec<Member>,
    /// Which of them is asked first next time.
    next: usize,
}

#[derive(Debug)]
struct Member {
    queue: QueueId,
    tenant: Tenant,
    supply: Supply,
}

impl Member {
    const fn new(queue: QueueId, tenant: Tenant) -> Self {
        Self { queue, tenant, supply: Supply::Unknown }
    }
}

/// What is known of a queue's due jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Supply {
    /// It may have due jobs.
    Unknown,
    /// It has no due job that may be taken ahead of a free slot.
    OnlyForSlots,
    /// It has no due jobs until a wake-up, the next due time or the next poll.
    None,
}

impl FairShare {
    /// Queues of one group, of which the one at `first` is asked first.
    pub(crate) fn starting_at(first: usize, queues: impl Iterator<Item = QueueId>) -> Self {
        // These claims have no limits per tenant.
        let members: Vec<Member> = queues.map(|queue| Member::new(queue, Tenant::default())).collect();
        let group_of = members.iter().map(|member| (member.queue, 0)).collect();
        let group = Group { next: first % members.len().max(1), members };
        Self { groups: vec![group], group_of, next: 0, next_due: None }
    }

    /// Replaces the list of queues and their groups, and keeps what is known of queues that stay. Returns whether any
    /// is new.
    pub(crate) fn set(&mut self, queues: &[(QueueId, &Tenant, usize)]) -> bool {
        let groups = queues.iter().map(|(queue, _, at)| (*queue, *at)).collect();
        let before = std::mem::replace(&mut self.group_of, groups);
        for (at, group) in self.groups.iter_mut().enumerate() {
            group.members.retain(|member| self.group_of.get(&member.queue) == Some(&at));
        }
        let mut has_new = false;
        for (queue, tenant, at) in queues {
            if before.get(queue) != Some(at) {
                has_new = true;
                if self.groups.len() <= *at {
                    self.groups.resize_with(at + 1, Group::default);
                }
                self.groups[*at].members.push(Member::new(*queue, (*tenant).clone()));
            }
        }
        has_new
    }

    /// Something may have changed: every queue may have due jobs again.
    pub(crate) fn refresh(&mut self) {
        self.next_due = None;
        for member in self.groups.iter_mut().flat_map(|group| &mut group.members) {
            member.supply = Supply::Unknown;
        }
    }

    /// A job falls due at this moment, in one of the queues.
    pub(crate) fn expect(&mut self, due: Timestamp, now: Timestamp) {
        if due <= now {
            self.refresh();
        } else {
            self.next_due = Some(self.next_due.map_or(due, |next| next.min(due)));
        }
    }

    pub(crate) fn group_of(&self, queue: QueueId) -> Option<usize> {
        self.group_of.get(&queue).copied()
    }

    /// Which queues to ask, and for how many jobs: together no more than one claim takes. A claim that ended at its
    /// limit would leave out the queues at the end of the list, which the plan counts as served. Each group's room is
    /// shared among its queues that may have work. Queues that get no share this time are first the next time.
    pub(crate) fn plan(&mut self, rooms: Vec<GroupRoom>) -> Vec<Share> {
        let asked =
            |(group, room): (&Group, &GroupRoom)| if group.may_have_work() { room.all } else { Room::default() };
        let all: Vec<Room> = self.groups.iter().zip(&rooms).map(asked).collect();
        let all = within(&all, MAX_CLAIM, self.next);
        self.next = (self.next + 1) % self.groups.len().max(1);
        let mut shares = Vec::new();
        for ((group, room), all) in self.groups.iter_mut().zip(rooms).zip(all) {
            group.plan(GroupRoom { all, ..room }, &mut shares);
        }
        shares
    }

    /// Which queues to ask, and for how many jobs, when only the whole claim is bounded, by `limit`. Every queue that
    /// may have work gets an equal part, at least one. A queue without work then costs no extra claim.
    pub(crate) fn plan_within(&mut self, limit: u32) -> Vec<Share> {
        let mut shares = Vec::new();
        for group in &mut self.groups {
            let count = group.members.len();
            let in_order = (0..count).map(|step| &group.members[(group.next + step) % count]);
            let asked: Vec<&Member> = in_order.filter(|member| member.supply != Supply::None).collect();
            let mut left = limit;
            for (at, member) in asked.iter().enumerate() {
                let slots = left.div_ceil((asked.len() - at) as u32).max(1);
                left = left.saturating_sub(slots);
                shares.push(Share { queue: member.queue, slots, ahead: 0 });
            }
            group.next = (group.next + 1) % count.max(1);
        }
        shares
    }

    /// Updates what is known of the queues from the result of a claim of `shares`.
    pub(crate) fn learn(&mut self, shares: &[Share], limit: u32, claimed: &Claimed) {
        self.next_due = [self.next_due, claimed.next_due].into_iter().flatten().min();
        if claimed.jobs.len() as u32 >= limit {
            return;
        }
        let mut taken: HashMap<QueueId, u32> = shares.iter().map(|share| (share.queue, 0)).collect();
        for job in &claimed.jobs {
            *taken.entry(job.queue_id).or_default() += 1;
        }
        let supply: HashMap<QueueId, Supply> = shares.iter().map(|t| (t.queue, supply(*t, taken[&t.queue]))).collect();
        for member in self.groups.iter_mut().flat_map(|group| &mut group.members) {
            member.supply = supply.get(&member.queue).copied().unwrap_or(member.supply);
        }
    }
}

impl Group {
    fn may_have_work(&self) -> bool {
        self.members.iter().any(|member| member.supply != Supply::None)
    }

    fn plan(&mut self, mut room: GroupRoom, shares: &mut Vec<Share>) {
        let mut askers = Askers::default();
        self.members.iter().for_each(|member| askers.count(member.supply));
        let mut last = None;
        let mut all_served = true;
        for step in 0..self.members.len() {
            let index = (self.next + step) % self.members.len();
            let member = &self.members[index];
            if member.supply == Supply::None {
                continue;
            }
            let most = room.tenants.as_ref().map_or(room.all, |tenants| tenants.of_queue(member));
            let share = askers.share(member, room.all, most);
            if share.slots + share.ahead > 0 {
                if let Some(tenants) = &mut room.tenants {
                    tenants.take(&member.tenant, share);
                }
                shares.push(share);
                last = Some(index);
            } else {
                all_served = false;
            }
        }
        if let Some(last) = last {
            self.next = if all_served { self.next + 1 } else { last + 1 } % self.members.len();
        }
    }
}

/// Cuts rooms until they hold at most `limit` jobs: first what is ahead of slots, then slots.
fn within(rooms: &[Room], limit: u32, first: usize) -> Vec<Room> {
    let slots = divide(&rooms.iter().map(|room| room.slots).collect::<Vec<u32>>(), limit, first);
    let left = limit - slots.iter().sum::<u32>();
    let ahead = divide(&rooms.iter().map(|room| room.ahead).collect::<Vec<u32>>(), left, first);
    slots.into_iter().zip(ahead).map(|(slots, ahead)| Room { slots, ahead }).collect()
}

/// Equal parts of `limit`, none larger than asked for. What the small ones leave goes to the others. If it does not
/// divide, those from `first` on get more.
fn divide(asked: &[u32], limit: u32, first: usize) -> Vec<u32> {
    let count = asked.len();
    let part = limit / count.max(1) as u32;
    let mut order: Vec<usize> = (0..count).map(|step| (first + step) % count).collect();
    order.sort_by_key(|at| asked[*at].min(part));
    let mut given = vec![0; count];
    let mut left = limit;
    for (step, at) in order.into_iter().enumerate() {
        given[at] = asked[at].min(left.div_ceil((count - step) as u32));
        left -= given[at];
    }
    given
}

/// A share that was not filled means the queue has no more due jobs. But if only its part ahead of the slots was not
/// filled, an at-most-once job may be waiting for a slot.
fn supply(share: Share, taken: u32) -> Supply {
    if taken >= share.slots + share.ahead {
        Supply::Unknown
    } else if taken >= share.slots {
        Supply::OnlyForSlots
    } else {
        Supply::None
    }
}

/// The queues of a group that have not had their share of its room.
#[derive(Debug, Clone, Default)]
struct Askers {
    slots: u32,
    ahead: u32,
    given: Room,
}

impl Askers {
    fn count(&mut self, supply: Supply) {
        match supply {
            Supply::Unknown => {
                self.slots += 1;
                self.ahead += 1;
            }
            Supply::OnlyForSlots => self.slots += 1,
            Supply::None => {}
        }
    }

    /// An equal part of what is left, rounded up, so that the first queues get the remainder, but not more than `most`.
    /// Who gets a slot more than the others gets fewer jobs ahead.
    fn share(&mut self, member: &Member, room: Room, most: Room) -> Share {
        let left = Room { slots: room.slots - self.given.slots, ahead: room.ahead - self.given.ahead };
        let slots = left.slots.div_ceil(self.slots.max(1)).min(most.slots);
        let mut ahead = 0;
        if member.supply == Supply::Unknown {
            let even = (left.slots + left.ahead).div_ceil(self.slots.max(1));
            ahead = even.saturating_sub(slots).max(left.ahead / self.ahead.max(1)).min(left.ahead).min(most.ahead);
            self.ahead -= 1;
        }
        self.slots -= 1;
        self.given = Room { slots: self.given.slots + slots, ahead: self.given.ahead + ahead };
        Share { queue: member.queue, slots, ahead }
    }
}

#[cfg(test)]
mod tests;
