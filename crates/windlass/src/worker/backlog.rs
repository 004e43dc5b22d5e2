//! Backlog: jobs that are held and wait for a slot. In a plain backlog the first one is next. In a shared one, the next
//! is the first whose tenant and destination may start another call.

use super::pace::{MAX_AHEAD, Pace};
use crate::client::tenants::quota::HttpQuotas;
use crate::job::QueueId;
use crate::leases::fair_share::{Room, TenantRooms};
use std::collections::{HashMap, HashSet, VecDeque};
use windlass_core::Millis;
use windlass_core::job::Tenant;
use windlass_core::slots::{InUse, SlotLimits, SlotVerdict};

/// A job that waits longer than this for its destination or tenant is handed back: others may be able to start.
const LONGEST_WAIT: Millis = Millis::from_secs(5);
/// The most tenants without jobs whose pace is remembered.
const MAX_IDLE: usize = 256;

/// What a job's slot is counted under.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Line {
    pub tenant: Tenant,
    pub destination: String,
}

/// Why a job is handed back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unstarted {
    /// It can be claimed again at once.
    NoSlot,
    /// Its destination is busy: it should wait, so that jobs for other destinations come first.
    DestinationBusy,
}

/// Jobs whose slots are shared between tenants and destinations.
#[derive(Debug)]
pub(super) struct SharedBacklog<T> {
    limits: SlotLimits,
    quotas: HttpQuotas,
    waiting: HashMap<Line, VecDeque<Waiting<T>>>,
    /// The lines with waiting jobs. They are asked in rotation.
    rotation: VecDeque<Line>,
    tenants: HashMap<Tenant, TenantUse>,
    /// Calls under way to each destination.
    destinations: HashMap<String, u32>,
}

#[derive(Debug)]
struct Waiting<T> {
    job: T,
    queue: QueueId,
    since: Millis,
}

/// One tenant's part of the slots.
#[derive(Debug, Default)]
struct TenantUse {
    running: u32,
    waiting: u32,
    finished: u64,
    pace: Pace,
    ahead: u32,
}

impl<T> SharedBacklog<T> {
    pub(super) fn new(limits: SlotLimits) -> Self {
        Self {
            limits,
            quotas: HttpQuotas::default(),
            waiting: HashMap::new(),
            rotation: VecDeque::new(),
            tenants: HashMap::new(),
            destinations: HashMap::new(),
        }
    }

    /// Narrows what tenants may hold. Calls under way go on.
    pub(super) fn set_quotas(&mut self, quotas: HttpQuotas) {
        self.quotas = quotas;
    }

    pub(super) fn push(&mut self, line: Line, queue: QueueId, job: T, now: Millis) {
        self.forget_idle();
        self.tenants.entry(line.tenant.clone()).or_default().waiting += 1;
        let jobs = self.waiting.entry(line.clone()).or_default();
        if jobs.is_empty() {
            self.rotation.push_back(line);
        }
        jobs.push_back(Waiting { job, queue, since: now });
    }

    /// Whether any job may start.
    pub(super) fn has_next(&self) -> bool {
        self.rotation.iter().any(|line| self.judge(line) == SlotVerdict::Start)
    }

    /// Starts the next job that may start.
    pub(super) fn next(&mut self, now: Millis) -> Option<(Line, T)> {
        let place = self.rotation.iter().position(|line| self.judge(line) == SlotVerdict::Start)?;
        let line = self.rotation.remove(place)?;
        let jobs = self.waiting.get_mut(&line)?;
        let next = jobs.pop_front()?;
        if jobs.is_empty() {
            self.waiting.remove(&line);
        } else {
            self.rotation.push_back(line.clone());
        }
        *self.destinations.entry(line.destination.clone()).or_default() += 1;
        let tenant = self.tenants.entry(line.tenant.clone()).or_default();
        tenant.waiting -= 1;
        tenant.change(tenant.running + 1, now);
        Some((line, next.job))
    }

    /// A job that was started has ended. Returns whether its tenant has room for a claim.
    pub(super) fn ended(&mut self, line: &Line, now: Millis) -> bool {
        if let Some(running) = self.destinations.get_mut(&line.destination) {
            *running -= 1;
            if *running == 0 {
                self.destinations.remove(&line.destination);
            }
        }
        let Some(tenant) = self.tenants.get_mut(&line.tenant) else { return false };
        tenant.change(tenant.running - 1, now);
        tenant.finished += 1;
        tenant.waiting <= tenant.ahead / 2
    }

    /// Takes all waiting jobs.
    pub(super) fn take_all(&mut self) -> Vec<T> {
        self.rotation.clear();
        self.tenants.values_mut().for_each(|tenant| tenant.waiting = 0);
        self.waiting.drain().flat_map(|(_, jobs)| jobs).map(|waiting| waiting.job).collect()
    }

    /// Takes the jobs that have waited too long.
    pub(super) fn take_late(&mut self, now: Millis) -> Vec<(T, Unstarted)> {
        let mut late = Vec::new();
        for (line, jobs) in &mut self.waiting {
            while jobs.front().is_some_and(|first| now - first.since >= LONGEST_WAIT) {
                let running = self.destinations.get(&line.destination).copied().unwrap_or_default();
                let is_busy = running >= self.limits.destination;
                let why = if is_busy { Unstarted::DestinationBusy } else { Unstarted::NoSlot };
                late.extend(jobs.pop_front().map(|waiting| (waiting.job, why)));
                self.tenants.entry(line.tenant.clone()).or_default().waiting -= 1;
            }
        }
        if !late.is_empty() {
            self.waiting.retain(|_, jobs| !jobs.is_empty());
            let waiting = &self.waiting;
            self.rotation.retain(|line| waiting.contains_key(line));
        }
        late
    }

    /// How many jobs can be taken now when `free` slots have no job, in all and of each tenant.
    pub(super) fn room(&mut self, free: u32, claim_took: Millis, now: Millis) -> (Room, TenantRooms) {
        let mut ready: HashMap<&Tenant, u32> = HashMap::new();
        let mut blocked: HashMap<QueueId, u32> = HashMap::new();
        let mut left: HashMap<&str, u32> = HashMap::new();
        for line in &self.rotation {
            let running = self.destinations.get(&line.destination).copied().unwrap_or_default();
            let left = left.entry(&line.destination).or_insert(self.limits.destination.saturating_sub(running));
            for job in &self.waiting[line] {
                if *left > 0 {
                    *left -= 1;
                    *ready.entry(&line.tenant).or_default() += 1;
                } else {
                    *blocked.entry(job.queue).or_default() += 1;
                }
            }
        }
        let ready_in_all: u32 = ready.values().sum();
        let (mut known, mut ahead_in_all, mut most_ahead) = (HashMap::new(), 0, 0);
        for (name, tenant) in &mut self.tenants {
            tenant.pace.measure(tenant.running, tenant.finished, now);
            let limit = self.limits.within(self.quotas.of(name)).tenant;
            tenant.ahead = tenant.pace.hold(limit, claim_took).ahead;
            let ready = ready.get(name).copied().unwrap_or_default();
            let slots = limit.saturating_sub(tenant.running + ready);
            let ahead = if tenant.waiting <= tenant.ahead / 2 { tenant.ahead - tenant.waiting } else { 0 };
            known.insert(name.clone(), Room { slots, ahead });
            ahead_in_all += ahead;
            most_ahead = most_ahead.max(tenant.ahead);
        }
        for name in self.quotas.tenants() {
            let slots = self.limits.within(self.quotas.of(name)).tenant;
            known.entry(name.clone()).or_insert(Room { slots, ahead: 0 });
        }
        let room = Room { slots: free.saturating_sub(ready_in_all), ahead: ahead_in_all.min(MAX_AHEAD) };
        // A queue whose jobs wait for busy destinations is left alone until they have moved on.
        let most_blocked = self.limits.destination.max(most_ahead) / 2;
        let skipped: HashSet<QueueId> =
            blocked.into_iter().filter(|(_, count)| *count > most_blocked).map(|(queue, _)| queue).collect();
        let others = Room { slots: self.limits.within(self.quotas.default).tenant, ahead: 0 };
        (room, TenantRooms { known, others, skipped })
    }

    fn judge(&self, line: &Line) -> SlotVerdict {
        self.limits.within(self.quotas.of(&line.tenant)).judge(InUse {
            tenant: self.tenants.get(&line.tenant).map_or(0, |tenant| tenant.running),
            destination: self.destinations.get(&line.destination).copied().unwrap_or_default(),
        })
    }

    fn forget_idle(&mut self) {
        if self.tenants.len() > MAX_IDLE {
            self.tenants.retain(|_, tenant| tenant.running + tenant.waiting > 0);
        }
    }
}

impl TenantUse {
    fn change(&mut self, running: u32, now: Millis) {
        self.pace.count(self.running, now);
        self.running = running;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_core::slots::SlotShares;

    const QUEUE: QueueId = QueueId(1);
    const NOW: Millis = Millis::ZERO;

    fn line(tenant: &str, destination: &str) -> Line {
        Line { tenant: Tenant::new(tenant).unwrap(), destination: destination.into() }
    }

    /// Eight slots: four for a tenant, two for a destination.
    fn backlog(jobs: &[(&str, &str)]) -> SharedBacklog<usize> {
        let mut backlog = SharedBacklog::new(SlotShares::default().of(8));
        for (number, (tenant, destination)) in jobs.iter().enumerate() {
            backlog.push(line(tenant, destination), QUEUE, number, NOW);
        }
        backlog
    }

    fn len(backlog: &SharedBacklog<usize>) -> usize {
        backlog.waiting.values().map(VecDeque::len).sum()
    }

    fn start_all(backlog: &mut SharedBacklog<usize>) -> Vec<usize> {
        std::iter::from_fn(|| backlog.next(NOW)).map(|(_, number)| number).collect()
    }

    #[test]
    fn jobs_beyond_a_limit_wait_and_later_ones_start() {
        let mut backlog =
            backlog(&[("a", "x"), ("a", "x"), ("a", "x"), ("a", "y"), ("a", "z"), ("a", "z"), ("b", "y")]);
        let mut started = start_all(&mut backlog);
        started.sort_unstable();
        assert_eq!(started, [0, 1, 3, 4, 6], "the third x and the fifth of a wait");
        assert!(!backlog.has_next());
        // The end of one call makes room for its tenant at every destination that has room.
        backlog.ended(&line("a", "x"), NOW);
        assert!(backlog.has_next());
        assert_eq!(start_all(&mut backlog).len(), 1);
        assert_eq!(len(&backlog), 1);
    }

    #[test]
    fn a_tenant_at_its_limit_gets_no_room_and_others_get_theirs() {
        let mut backlog = backlog(&[("a", "w"), ("a", "x"), ("a", "y"), ("a", "z")]);
        start_all(&mut backlog);
        let (room, tenants) = backlog.room(4, NOW, NOW);
        assert_eq!(room, Room { slots: 4, ahead: 0 });
        assert_eq!(tenants.of(&Tenant::new("a").unwrap()), Room::default());
        assert_eq!(tenants.of(&Tenant::new("b").unwrap()), Room { slots: 4, ahead: 0 });
    }

    #[test]
    fn a_quota_narrows_its_tenant_and_nobody_else() {
        let (a, b) = (Tenant::new("a").unwrap(), Tenant::new("b").unwrap());
        let mut backlog = backlog(&[("a", "w"), ("a", "x"), ("b", "w"), ("b", "x"), ("b", "y")]);
        let own = [(a.clone(), 1), (b.clone(), 100)].into();
        backlog.set_quotas(HttpQuotas { default: Some(3), own });
        assert_eq!(backlog.room(8, NOW, NOW).1.others.slots, 3);
        let mut started = start_all(&mut backlog);
        started.sort_unstable();
        assert_eq!(started, [0, 2, 3, 4], "one of a; the quota of b is beyond its share");
        let (_, tenants) = backlog.room(4, NOW, NOW);
        assert_eq!((tenants.of(&a).slots, tenants.of(&b).slots), (0, 1));
        backlog.ended(&line("a", "w"), NOW);
        assert_eq!(start_all(&mut backlog), [1]);
    }

    #[test]
    fn jobs_for_a_busy_destination_take_no_room_but_their_queue_is_left_alone() {
        let mut backlog = backlog(&[("a", "x"), ("a", "x"), ("a", "x"), ("a", "x")]);
        start_all(&mut backlog);
        let (room, tenants) = backlog.room(6, NOW, NOW);
        assert_eq!(room.slots, 6);
        assert_eq!(tenants.of(&Tenant::new("a").unwrap()).slots, 2);
        assert!(tenants.skipped.contains(&QUEUE));
    }

    #[test]
    fn jobs_that_waited_too_long_are_handed_back() {
        let mut backlog = backlog(&[("a", "x"), ("a", "x"), ("a", "x")]);
        start_all(&mut backlog);
        assert!(backlog.take_late(Millis::from_secs(4)).is_empty());
        assert_eq!(backlog.take_late(LONGEST_WAIT), [(2, Unstarted::DestinationBusy)]);
        assert_eq!(len(&backlog), 0);
        assert!(!backlog.room(6, NOW, LONGEST_WAIT).1.skipped.contains(&QUEUE));
    }

    #[test]
    fn everything_that_waits_can_be_taken() {
        let mut backlog = backlog(&[("a", "x"), ("a", "y"), ("b", "y")]);
        assert_eq!(backlog.take_all().len(), 3);
        assert_eq!((len(&backlog), backlog.next(NOW)), (0, None));
    }
}
