//! Fair share: which queues to ask next and for how much, so that no queue and no tenant starves another. Pure.

use crate::job::QueueId;
use crate::store::{Claimed, Share};
use std::collections::HashMap;
use windlass_core::Timestamp;

/// How many jobs can be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Room {
    pub slots: u32,
    pub ahead: u32,
}

/// The queues a worker serves, in the order they are asked.
#[derive(Debug, Default)]
pub(crate) struct FairShare {
    members: Vec<Member>,
    /// Which queue is asked first next time.
    next: usize,
    /// When the queues without due jobs will next have one.
    pub next_due: Option<Timestamp>,
}

#[derive(Debug)]
struct Member {
    queue: QueueId,
    group: usize,
    supply: Supply,
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
        let members: Vec<Member> = queues.map(|queue| Member { queue, group: 0, supply: Supply::Unknown }).collect();
        Self { next: first % members.len().max(1), members, next_due: None }
    }

    /// Replaces the list of queues and their groups, and keeps what is known of queues that stay. Returns whether any
    /// is new.
    pub(crate) fn set(&mut self, queues: &[(QueueId, usize)]) -> bool {
        self.members.retain(|m| queues.contains(&(m.queue, m.group)));
        let before = self.members.len();
        for (queue, group) in queues {
            if !self.members.iter().any(|m| (m.queue, m.group) == (*queue, *group)) {
                self.members.push(Member { queue: *queue, group: *group, supply: Supply::Unknown });
            }
        }
        self.members.len() > before
    }

    /// Something may have changed: every queue may have due jobs again.
    pub(crate) fn refresh(&mut self) {
        self.next_due = None;
        for member in &mut self.members {
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
        self.members.iter().find(|m| m.queue == queue).map(|m| m.group)
    }

    /// Which queues to ask, and for how many jobs. Each group's room is shared among its queues that may have work.
    /// Queues that get no share this time are first the next time.
    pub(crate) fn plan(&mut self, rooms: &[Room]) -> Vec<Share> {
        let mut askers = vec![Askers::default(); rooms.len()];
        for member in &self.members {
            askers[member.group].count(member.supply);
        }
        let mut shares = Vec::new();
        let mut last = None;
        let mut all_served = true;
        for step in 0..self.members.len() {
            let index = (self.next + step) % self.members.len();
            let member = &self.members[index];
            if member.supply == Supply::None {
                continue;
            }
            let share = askers[member.group].share(member, rooms[member.group]);
            if share.slots + share.ahead > 0 {
                shares.push(share);
                last = Some(index);
            } else {
                all_served = false;
            }
        }
        if let Some(last) = last {
            self.next = if all_served { self.next + 1 } else { last + 1 } % self.members.len();
        }
        shares
    }

    /// Which queues to ask, and for how many jobs, when only the whole claim is bounded, by `limit`. Every queue that
    /// may have work gets an equal part, at least one. A queue without work then costs no extra claim.
    pub(crate) fn plan_within(&mut self, limit: u32) -> Vec<Share> {
        let count = self.members.len();
        let may_have = |member: &&Member| member.supply != Supply::None;
        let asked = self.members.iter().filter(may_have).count() as u32;
        let slots = limit.div_ceil(asked.max(1));
        let in_order = (0..count).map(|step| &self.members[(self.next + step) % count]);
        let shares = in_order.filter(may_have).map(|member| Share { queue: member.queue, slots, ahead: 0 }).collect();
        self.next = (self.next + 1) % count.max(1);
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
        for member in &mut self.members {
            member.supply = supply.get(&member.queue).copied().unwrap_or(member.supply);
        }
    }
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

    /// An equal part of what is left, rounded up, so that the first queues get the remainder.
    fn share(&mut self, member: &Member, room: Room) -> Share {
        let slots = (room.slots - self.given.slots).div_ceil(self.slots.max(1));
        self.slots -= 1;
        self.given.slots += slots;
        let mut ahead = 0;
        if member.supply == Supply::Unknown {
            ahead = (room.ahead - self.given.ahead).div_ceil(self.ahead.max(1));
            self.ahead -= 1;
            self.given.ahead += ahead;
        }
        Share { queue: member.queue, slots, ahead }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{ClaimedJob, Job, LeaseId, NewJob};
    use crate::store::memory::MemoryStore;
    use crate::store::{Atomicity, Options};
    use crate::store::{JobLife as _, Reads as _};
    use std::sync::Arc;
    use windlass_core::job::Kind;
    use windlass_core::policy::{Partial, Role};

    const ONE_SLOT: Room = Room { slots: 1, ahead: 0 };

    fn shares(count: i64) -> FairShare {
        let mut shares = FairShare::default();
        let queues: Vec<(QueueId, usize)> = (1..=count).map(|id| (QueueId(id), 0)).collect();
        assert!(shares.set(&queues));
        shares
    }

    fn asked(shares: &[Share]) -> Vec<(i64, u32, u32)> {
        shares.iter().map(|share| (share.queue.0, share.slots, share.ahead)).collect()
    }

    /// Any job, as if claimed from this queue.
    async fn job_of(queue: QueueId) -> ClaimedJob {
        let policy = Partial::resolve(&[Role::Handler.default_policy()], &[]).unwrap();
        let store = MemoryStore::new(Options::default());
        let new = NewJob::new(Kind::new("any").unwrap(), "{}", Arc::new(policy));
        let id = store.enqueue(vec![new], Atomicity::Each).await.unwrap()[0].id().unwrap();
        let job = store.job(&crate::store::Scope::All, id).await.unwrap().unwrap();
        ClaimedJob { job: Job { queue_id: queue, ..job }, lease: LeaseId(1) }
    }

    #[test]
    fn one_slot_goes_round_the_queues() {
        let mut shares = shares(3);
        let first: Vec<i64> = (0..6).map(|_| shares.plan(&[ONE_SLOT])[0].queue.0).collect();
        assert_eq!(first, [1, 2, 3, 1, 2, 3]);
    }

    #[test]
    fn room_is_shared_out_whole_and_what_does_not_divide_goes_round() {
        let mut shares = shares(3);
        let room = [Room { slots: 5, ahead: 4 }];
        assert_eq!(asked(&shares.plan(&room)), [(1, 2, 2), (2, 2, 1), (3, 1, 1)]);
        assert_eq!(asked(&shares.plan(&room)), [(2, 2, 2), (3, 2, 1), (1, 1, 1)]);
    }

    #[tokio::test]
    async fn an_empty_queue_leaves_its_share_to_the_others_until_something_may_have_changed() {
        let mut shares = shares(2);
        let room = [Room { slots: 2, ahead: 0 }];
        let plan = shares.plan(&room);
        let claimed = Claimed { jobs: vec![job_of(QueueId(2)).await], next_due: None };
        shares.learn(&plan, 2, &claimed);
        assert_eq!(asked(&shares.plan(&room)), [(2, 2, 0)]);
        shares.refresh();
        assert_eq!(shares.plan(&room).len(), 2);
    }

    #[tokio::test]
    async fn a_share_that_fell_short_only_ahead_of_its_slots_is_asked_again_for_slots() {
        let mut shares = shares(1);
        let plan = shares.plan(&[Room { slots: 1, ahead: 5 }]);
        let claimed = Claimed { jobs: vec![job_of(QueueId(1)).await], next_due: None };
        shares.learn(&plan, 6, &claimed);
        assert_eq!(asked(&shares.plan(&[Room { slots: 0, ahead: 5 }])), []);
        assert_eq!(asked(&shares.plan(&[Room { slots: 1, ahead: 5 }])), [(1, 1, 0)]);
    }

    #[tokio::test]
    async fn a_bounded_claim_asks_every_queue_and_then_those_that_have_more() {
        let mut shares = FairShare::starting_at(4, (1..=3).map(QueueId));
        let plan = shares.plan_within(4);
        assert_eq!(asked(&plan), [(2, 2, 0), (3, 2, 0), (1, 2, 0)]);
        let claimed = Claimed { jobs: vec![job_of(QueueId(3)).await, job_of(QueueId(3)).await], next_due: None };
        shares.learn(&plan, 4, &claimed);
        assert_eq!(asked(&shares.plan_within(2)), [(3, 2, 0)]);
        assert_eq!(asked(&FairShare::starting_at(0, (1..=3).map(QueueId)).plan_within(1)).len(), 3);
        assert!(FairShare::starting_at(7, [].into_iter()).plan_within(9).is_empty());
    }

    #[test]
    fn a_claim_cut_short_by_its_limit_says_nothing_of_the_queues_behind() {
        let mut shares = shares(2);
        let room = [Room { slots: 2, ahead: 0 }];
        let plan = shares.plan(&room);
        shares.learn(&plan, 0, &Claimed::default());
        assert_eq!(shares.plan(&room).len(), 2);
    }

    #[test]
    fn the_earliest_due_time_counts_and_a_past_one_asks_everyone_again() {
        let mut shares = shares(1);
        let at = Timestamp::from_millis;
        shares.expect(at(20), at(0));
        shares.expect(at(10), at(0));
        shares.expect(at(30), at(0));
        assert_eq!(shares.next_due, Some(at(10)));
        let plan = shares.plan(&[ONE_SLOT]);
        shares.learn(&plan, 1, &Claimed::default());
        assert!(shares.plan(&[ONE_SLOT]).is_empty());
        shares.expect(at(5), at(5));
        assert_eq!(shares.plan(&[ONE_SLOT]).len(), 1);
    }
}
