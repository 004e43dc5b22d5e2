use super::*;
use crate::job::{ClaimedJob, Job, LeaseId, NewJob};
use crate::store::memory::MemoryStore;
use crate::store::{Atomicity, Options};
use crate::store::{JobLife as _, Reads as _};
use std::sync::Arc;
use windlass_core::job::Kind;
use windlass_core::policy::{Partial, Role};

const ONE_SLOT: Room = Room { slots: 1, ahead: 0 };

impl FairShare {
    /// Room without limits per tenant.
    fn plan_rooms(&mut self, rooms: &[Room]) -> Vec<Share> {
        self.plan(rooms.iter().copied().map(GroupRoom::from).collect())
    }

    /// Queues of one tenant.
    fn set_groups(&mut self, queues: &[(QueueId, usize)]) -> bool {
        let tenant = Tenant::default();
        self.set(&queues.iter().map(|(queue, at)| (*queue, &tenant, *at)).collect::<Vec<_>>())
    }
}

fn shares(count: i64) -> FairShare {
    let mut shares = FairShare::default();
    let queues: Vec<(QueueId, usize)> = (1..=count).map(|id| (QueueId(id), 0)).collect();
    assert!(shares.set_groups(&queues));
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
    ClaimedJob { job: Job { queue_id: queue, ..job }, lease: LeaseId(1), is_probe: false }
}

#[test]
fn one_slot_goes_round_the_queues() {
    let mut shares = shares(3);
    let first: Vec<i64> = (0..6).map(|_| shares.plan_rooms(&[ONE_SLOT])[0].queue.0).collect();
    assert_eq!(first, [1, 2, 3, 1, 2, 3]);
}

#[test]
fn room_is_shared_out_whole_and_what_does_not_divide_goes_round() {
    let mut shares = shares(3);
    let room = [Room { slots: 5, ahead: 4 }];
    assert_eq!(asked(&shares.plan_rooms(&room)), [(1, 2, 1), (2, 2, 1), (3, 1, 2)]);
    assert_eq!(asked(&shares.plan_rooms(&room)), [(2, 2, 1), (3, 2, 1), (1, 1, 2)]);
}

#[tokio::test]
async fn an_empty_queue_leaves_its_share_to_the_others_until_something_may_have_changed() {
    let mut shares = shares(2);
    let room = [Room { slots: 2, ahead: 0 }];
    let plan = shares.plan_rooms(&room);
    let claimed = Claimed { jobs: vec![job_of(QueueId(2)).await], ..Claimed::default() };
    shares.learn(&plan, 2, &claimed);
    assert_eq!(asked(&shares.plan_rooms(&room)), [(2, 2, 0)]);
    shares.refresh();
    assert_eq!(shares.plan_rooms(&room).len(), 2);
}

#[tokio::test]
async fn a_share_that_fell_short_only_ahead_of_its_slots_is_asked_again_for_slots() {
    let mut shares = shares(1);
    let plan = shares.plan_rooms(&[Room { slots: 1, ahead: 5 }]);
    let claimed = Claimed { jobs: vec![job_of(QueueId(1)).await], ..Claimed::default() };
    shares.learn(&plan, 6, &claimed);
    assert_eq!(asked(&shares.plan_rooms(&[Room { slots: 0, ahead: 5 }])), []);
    assert_eq!(asked(&shares.plan_rooms(&[Room { slots: 1, ahead: 5 }])), [(1, 1, 0)]);
}

#[tokio::test]
async fn a_bounded_claim_asks_every_queue_and_then_those_that_have_more() {
    let mut shares = FairShare::starting_at(4, (1..=3).map(QueueId));
    let plan = shares.plan_within(4);
    assert_eq!(asked(&plan), [(2, 2, 0), (3, 1, 0), (1, 1, 0)]);
    let claimed = Claimed { jobs: vec![job_of(QueueId(3)).await, job_of(QueueId(3)).await], ..Claimed::default() };
    shares.learn(&plan, 4, &claimed);
    assert_eq!(asked(&shares.plan_within(2)), [(3, 2, 0)]);
    assert_eq!(asked(&FairShare::starting_at(0, (1..=3).map(QueueId)).plan_within(1)).len(), 3);
    assert!(FairShare::starting_at(7, [].into_iter()).plan_within(9).is_empty());
}

#[test]
fn a_claim_cut_short_by_its_limit_says_nothing_of_the_queues_behind() {
    let mut shares = shares(2);
    let room = [Room { slots: 2, ahead: 0 }];
    let plan = shares.plan_rooms(&room);
    shares.learn(&plan, 0, &Claimed::default());
    assert_eq!(shares.plan_rooms(&room).len(), 2);
}

#[test]
fn the_earliest_due_time_counts_and_a_past_one_asks_everyone_again() {
    let mut shares = shares(1);
    let at = Timestamp::from_millis;
    shares.expect(at(20), at(0));
    shares.expect(at(10), at(0));
    shares.expect(at(30), at(0));
    assert_eq!(shares.next_due, Some(at(10)));
    let plan = shares.plan_rooms(&[ONE_SLOT]);
    shares.learn(&plan, 1, &Claimed::default());
    assert!(shares.plan_rooms(&[ONE_SLOT]).is_empty());
    shares.expect(at(5), at(5));
    assert_eq!(shares.plan_rooms(&[ONE_SLOT]).len(), 1);
}

#[test]
fn a_plan_is_no_larger_than_a_claim_so_that_no_queue_is_cut_off() {
    let mut shares = shares(100);
    let plan = shares.plan_rooms(&[Room { slots: 50, ahead: 4 * MAX_CLAIM }]);
    assert_eq!(plan.len(), 100);
    assert!(plan.iter().all(|share| share.slots + share.ahead == MAX_CLAIM / 100), "{plan:?}");
}

#[test]
fn groups_divide_what_a_claim_can_take_and_small_ones_leave_the_rest() {
    assert_eq!(divide(&[10, 100, 100], 100, 0), [10, 45, 45]);
    assert_eq!(divide(&[100, 100, 100], 100, 1), [33, 34, 33]);
    assert_eq!(divide(&[1, 2, 3], 100, 2), [1, 2, 3]);
    assert_eq!(divide(&[], 100, 0), [0; 0]);
    let cut = within(&[Room { slots: 5, ahead: 50 }, Room { slots: 8, ahead: 0 }], 20, 0);
    assert_eq!(cut, [Room { slots: 5, ahead: 7 }, Room { slots: 8, ahead: 0 }]);
    let more_groups_than_jobs: Vec<u32> = (0..5).flat_map(|first| divide(&[9, 1, 1, 9, 5], 1, first)).collect();
    assert_eq!(more_groups_than_jobs.iter().filter(|given| **given == 1).count(), 5);
    assert!((0..5).all(|group| more_groups_than_jobs.iter().skip(group).step_by(5).sum::<u32>() == 1));
}

#[test]
fn queues_of_one_group_alternate_whatever_another_group_does() {
    let mut shares = FairShare::default();
    shares.set_groups(&[(QueueId(1), 0), (QueueId(2), 0), (QueueId(3), 0), (QueueId(9), 1)]);
    let served: Vec<i64> = (0..6).map(|_| shares.plan_rooms(&[ONE_SLOT, ONE_SLOT])[0].queue.0).collect();
    assert_eq!(served, [1, 2, 3, 1, 2, 3]);
    assert_eq!(shares.group_of(QueueId(9)), Some(1));
    assert!(shares.set_groups(&[(QueueId(1), 1), (QueueId(3), 0)]), "a queue that changes its group is new there");
    assert_eq!(asked(&shares.plan_rooms(&[ONE_SLOT, ONE_SLOT])), [(3, 1, 0), (1, 1, 0)]);
    assert_eq!(shares.group_of(QueueId(2)), None);
}

#[test]
fn a_tenant_gets_no_more_than_its_room_and_the_others_get_the_rest() {
    let tenants = ["big", "small"].map(|name| Tenant::new(name).unwrap());
    let mut shares = FairShare::default();
    let queues: Vec<_> = (1..=4).map(|id| (QueueId(id), &tenants[usize::from(id == 4)], 0)).collect();
    assert!(shares.set(&queues));
    let rooms = |known: &[(usize, Room)]| GroupRoom {
        all: Room { slots: 8, ahead: 6 },
        tenants: Some(TenantRooms {
            known: known.iter().map(|(at, room)| (tenants[*at].clone(), *room)).collect(),
            others: Room { slots: 4, ahead: 0 },
            skipped: HashSet::new(),
        }),
    };
    let plan = shares.plan(vec![rooms(&[])]);
    assert_eq!(asked(&plan), [(1, 2, 0), (2, 2, 0), (4, 4, 0)]);
    let plan = shares.plan(vec![rooms(&[(0, Room { slots: 0, ahead: 6 })])]);
    assert_eq!(plan.iter().map(|share| share.slots).sum::<u32>(), 4, "only the other tenant has slots");
    assert!(plan.iter().filter(|share| share.queue != QueueId(4)).map(|share| share.ahead).sum::<u32>() <= 6);
    let mut room = rooms(&[]);
    room.tenants.as_mut().unwrap().skipped.insert(QueueId(4));
    assert!(shares.plan(vec![room]).iter().all(|share| share.queue != QueueId(4)));
}
