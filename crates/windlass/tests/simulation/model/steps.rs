//! The steps of nodes: what each event does.

use crate::model::agenda::{Event, Key, Life, Reply};
use crate::model::handler::{self, End};
use crate::model::message::{Answer, Call, Trouble, sorted};
use crate::model::node::{Done, Held};
use crate::model::sim::Sim;
use crate::model::swarm::Spice;
use windlass::core::{Executor, Millis, Outcome};
use windlass::low_level::job::{Job, LeaseId};
use windlass::low_level::stores::Registry;
use windlass::low_level::stores::{Claim, Claimed, Committed, Leases, Schedule, Share};
use windlass::low_level::upkeep::schedules::firing;

/// How often a node looks for work without a wake-up. Slower than the real one, to save steps.
const POLL: Millis = Millis::from_secs(5);
/// Slower than the real one too; still well within the silence that breaks a contact.
const UPKEEP: Millis = Millis::from_secs(2);
/// When a caller gives up waiting for a late answer.
const TIMEOUT: Millis = Millis::from_secs(2);

impl Sim {
    pub async fn step(&mut self, event: Event) {
        let Some(event) = self.awake(event) else { return };
        match event {
            Event::Fetch(life, number) => self.fetch(life, number).await,
            Event::Renew(life, number) => self.renew(life, number),
            Event::Upkeep(life) => self.upkeep(life),
            Event::SendOutcomes(life) => self.send_outcomes(life),
            Event::Finish(life, key) => self.finish(life, key),
            Event::Arrive(life, call, reply) => self.arrive(life, *call, reply).await,
            Event::Answer(life, answer) => self.answer(life, *answer),
            Event::Mishap(mishap) => self.mishap(mishap).await,
            Event::Produce => self.produce().await,
            Event::Repeat(jobs) => self.enqueue(jobs).await,
            Event::Operator => self.operator().await,
        }
    }

    /// Events of a dead node are dropped; events of a frozen node wait.
    fn awake(&mut self, event: Event) -> Option<Event> {
        let life = match &event {
            Event::Fetch(life, _)
            | Event::Renew(life, _)
            | Event::Upkeep(life)
            | Event::SendOutcomes(life)
            | Event::Finish(life, _)
            | Event::Answer(life, _) => *life,
            Event::Arrive(..) | Event::Mishap(_) | Event::Produce | Event::Repeat(_) | Event::Operator => {
                return Some(event);
            }
        };
        let node = &self.nodes[life.node];
        if node.life != life {
            return None;
        }
        if node.frozen_until > self.now() {
            self.agenda.plan(node.frozen_until, event);
            return None;
        }
        Some(event)
    }

    /// Sends a call. It may be late, or arrive twice.
    fn send(&mut self, life: Life, call: Call) {
        let soon = Millis::new(self.pick(30));
        if self.strikes(Spice::DoubledMessages, 20) && is_safe_to_double(&call) {
            let later = Millis::new(self.pick(60_000));
            self.plan_in(later, Event::Arrive(life, call.clone().into(), Reply::Ignored));
        }
        if self.strikes(Spice::LateMessages, 30) {
            let late = TIMEOUT + Millis::new(self.pick(3 * self.swarm.lease.get()));
            let unknown = call.unknown();
            self.plan_in(TIMEOUT, Event::Answer(life, unknown.into()));
            return self.plan_in(late, Event::Arrive(life, call.into(), Reply::Ignored));
        }
        self.plan_in(soon, Event::Arrive(life, call.into(), Reply::Awaited));
    }

    async fn arrive(&mut self, life: Life, call: Call, reply: Reply) {
        let store = self.nodes[life.node].store.clone();
        let answer = call.arriving(self.ticks.monotonic()).send(&*store).await;
        self.note(|| format!("  → {answer:?}"));
        let dies_meanwhile = self.nodes[life.node].life == life && self.strikes(Spice::Crashes, 150);
        if dies_meanwhile {
            return self.crash(life.node);
        }
        if reply == Reply::Awaited {
            let soon = Millis::new(self.pick(10));
            self.plan_in(soon, Event::Answer(life, answer.into()));
        }
    }

    fn answer(&mut self, life: Life, answer: Answer) {
        let contact = answer.contact();
        let node = &mut self.nodes[life.node];
        node.store_contact.record_contact(&contact, &self.ticks);
        match answer {
            Answer::Claimed(_, Ok(claimed)) => self.claimed(life, claimed),
            // Which jobs did the claim take? Ask until the store knows.
            Answer::Claimed(lease, Err(Trouble::Unknown)) => self.send(life, Call::Held(lease)),
            Answer::Claimed(_, Err(Trouble::Unavailable)) => {
                node.is_claiming = false;
                let pause = self.reconnect(life);
                self.fetch_in(pause, life);
            }
            Answer::Held(_, Ok(jobs)) => self.claimed(life, Claimed { jobs, ..Claimed::default() }),
            Answer::Held(lease, Err(_)) => {
                let call = Event::Arrive(life, Call::Held(lease).into(), Reply::Awaited);
                self.again(life, call);
            }
            Answer::Committed(result) => self.committed(life, result),
            Answer::Renewed(Ok(renewed)) => {
                self.ask_to_stop(life, |held| renewed.lost.contains(&held.lease()));
                for held in self.nodes[life.node].held.values_mut() {
                    held.cancel_requested |= renewed.cancel_requested.contains(&held.job.id);
                }
                self.ask_to_stop(life, |held| held.cancel_requested);
            }
            Answer::Renewed(Err(_)) => self.renew_in(Millis::from_secs(1), life),
            Answer::Due(Ok(due)) => self.fire(life, &due),
            Answer::Due(Err(_)) | Answer::Answered(_) => {}
        }
    }

    /// Tries again later, a little later each time.
    fn again(&mut self, life: Life, event: Event) {
        let pause = self.reconnect(life);
        self.plan_in(pause, event);
    }

    fn reconnect(&mut self, life: Life) -> Millis {
        let node = &mut self.nodes[life.node];
        node.troubles = (node.troubles + 1).min(6);
        let longest = 50 << node.troubles;
        Millis::new(longest / 2 + self.pick(longest / 2))
    }

    async fn fetch(&mut self, life: Life, number: u32) {
        let node = &mut self.nodes[life.node];
        if !node.next_fetch.rings(number) || node.is_claiming || node.is_draining {
            return;
        }
        let store = node.store.clone();
        let queues = sorted(store.queues().await);
        let node = &mut self.nodes[life.node];
        let contact = queues.map_err(|_| windlass::low_level::stores::StoreError::unavailable("trouble"));
        node.store_contact.record_contact(&contact, &self.ticks);
        let Ok(queues) = contact else {
            let pause = self.reconnect(life);
            return self.fetch_in(pause, life);
        };
        let taken = node.held.values().filter(|held| held.done.is_none()).count() as u32;
        let slots = self.swarm.slots.saturating_sub(taken);
        let ahead = if self.swarm.has(Spice::ClaimsAhead) && taken <= self.swarm.slots { 2 } else { 0 };
        if slots + ahead == 0 || queues.is_empty() {
            return self.fetch_in(POLL, life);
        }
        let node = &mut self.nodes[life.node];
        node.is_claiming = true;
        node.share += 1;
        let first = node.share % queues.len();
        let mut shares: Vec<Share> = queues.iter().map(|q| Share { queue: q.id, slots: 0, ahead: 0 }).collect();
        shares.rotate_left(first);
        for step in 0..slots + ahead {
            let share = &mut shares[step as usize % queues.len()];
            if step < slots { share.slots += 1 } else { share.ahead += 1 }
        }
        shares.retain(|share| share.slots + share.ahead > 0);
        let lease = LeaseId::draw(&self.random);
        let claim = Claim {
            worker: node.worker.clone(),
            leases: Leases::Shared(lease),
            lease_for: self.swarm.lease,
            shares,
            limit: slots + ahead,
            suspects: u32::from(node.suspects() == 0),
            kinds: None,
        };
        self.send(life, Call::Claim(claim, lease));
    }

    fn claimed(&mut self, life: Life, claimed: Claimed) {
        let node = &mut self.nodes[life.node];
        node.is_claiming = false;
        node.troubles = 0;
        let (is_empty, now) = (claimed.jobs.is_empty(), self.clock.now());
        for job in claimed.jobs {
            node.held.insert((job.id, job.attempt), Held::new(job));
        }
        if node.is_draining {
            return self.drain(life.node);
        }
        self.start_waiting(life);
        let next_due = claimed.next_due.map_or(POLL, |due| due.since(now));
        let pause = if is_empty { next_due.min(POLL) } else { Millis::ZERO };
        self.fetch_in(pause, life);
    }

    /// Starts held jobs while there are free slots.
    fn start_waiting(&mut self, life: Life) {
        let now = self.clock.now();
        while self.nodes[life.node].running() < self.swarm.slots as usize {
            let waiting = self.nodes[life.node].held.iter().find(|(_, h)| h.started_at.is_none() && h.done.is_none());
            let Some((key, job)) = waiting.map(|(key, held)| (*key, held.job.clone())) else { return };
            self.record_start(&job);
            let random = self.random.clone();
            let play = handler::play(&self.swarm, &job, &mut |n| random.number() % n.max(1));
            let takes = play.takes;
            let held = self.nodes[life.node].held.get_mut(&key).expect("it was just found");
            (held.started_at, held.play) = (Some(now), Some(play));
            self.plan_in(takes, Event::Finish(life, key));
        }
    }

    fn record_start(&self, job: &Job) {
        let mut record = self.store.record();
        record.started(job);
        if job.executor == Executor::Http {
            record.received(job);
        }
    }

    fn finish(&mut self, life: Life, key: Key) {
        let random = self.random.clone();
        let mut pick = |n: u64| random.number() % n.max(1);
        let node = &mut self.nodes[life.node];
        let Some(held) = node.held.get_mut(&key).filter(|held| held.is_running()) else { return };
        let end = match &held.play {
            _ if held.is_asked_to_stop => End::Outcome(handler::stopped(&mut pick)),
            Some(play) => play.end.clone(),
            None => End::Outcome(Outcome::Succeeded),
        };
        match end {
            End::Crash => self.crash(life.node),
            End::Outcome(outcome) => {
                held.done = Some(Done { outcome, at: self.clock.now(), roll: self.random.roll() });
                self.start_waiting(life);
                self.send_outcomes(life);
                self.fetch_in(Millis::ZERO, life);
            }
        }
    }

    /// Asks handlers to stop; they do so soon.
    fn ask_to_stop(&mut self, life: Life, is_chosen: impl Fn(&Held) -> bool) {
        let mut reported = Vec::new();
        for (key, held) in &mut self.nodes[life.node].held {
            if is_chosen(held) && held.is_running() && !held.is_asked_to_stop {
                held.is_asked_to_stop = true;
                reported.push(*key);
            }
        }
        for key in reported {
            let soon = Millis::new(self.pick(3000));
            self.plan_in(soon, Event::Finish(life, key));
        }
    }

    pub fn send_outcomes(&mut self, life: Life) {
        let node = &mut self.nodes[life.node];
        if !node.sent.is_empty() {
            return;
        }
        let (commits, ended) = node.outcomes();
        node.ending.clone_from(&ended);
        if !commits.is_empty() {
            self.send(life, Call::Commit(commits, ended));
        }
    }

    fn committed(&mut self, life: Life, result: Result<Vec<Committed>, Trouble>) {
        let node = &mut self.nodes[life.node];
        let (sent, ending) = (std::mem::take(&mut node.sent), std::mem::take(&mut node.ending));
        let Ok(answers) = result else {
            // Repeating is safe: a commit that happened is recognised.
            return self.again(life, Event::SendOutcomes(life));
        };
        node.troubles = 0;
        node.over.retain(|lease| !ending.contains(lease));
        for (key, answer) in sent.into_iter().zip(answers) {
            match answer {
                Committed::Applied(_) | Committed::Repeated | Committed::Stale => node.close(key, &ending),
                Committed::CancelRequested => {
                    if let Some(held) = node.held.get_mut(&key) {
                        held.cancel_requested = true;
                    }
                }
            }
        }
        let is_drained = node.is_draining && node.held.is_empty() && !node.is_claiming;
        if is_drained {
            return self.stop(life.node);
        }
        self.send_outcomes(life);
    }

    fn renew(&mut self, life: Life, number: u32) {
        if !self.nodes[life.node].next_renewal.rings(number) {
            return;
        }
        let every = Millis::new(self.swarm.lease.get() / 3);
        self.renew_in(every, life);
        let node = &self.nodes[life.node];
        let leases = node.leases();
        if leases.is_empty() || self.strikes(Spice::LostRenewals, 3) {
            return;
        }
        let call = Call::Renew(node.worker.clone(), leases, self.swarm.lease);
        self.send(life, call);
    }

    fn upkeep(&mut self, life: Life) {
        let next = UPKEEP + Millis::new(self.pick(1000));
        self.plan_in(next, Event::Upkeep(life));
        let spared = self.nodes[life.node].store_contact.spared(&self.ticks, Millis::ZERO);
        self.send(life, Call::Reap(spared, self.ticks.monotonic()));
        self.send(life, Call::Expire);
        if !self.schedules.is_empty() {
            self.send(life, Call::Due);
        }
        if self.swarm.has(Spice::Pruning) && self.pick(6) == 0 {
            self.send(life, Call::Prune);
        }
    }

    fn fire(&mut self, life: Life, due: &[Schedule]) {
        for schedule in due {
            if let Some(firing) = firing(schedule, self.clock.now()).expect("the cadence can be read") {
                self.send(life, Call::Fire(firing));
            }
        }
    }
}

/// A network that delivers twice does not do so to a claim: a database runs each statement once. A commit, though, is
/// sent again by the worker itself.
fn is_safe_to_double(call: &Call) -> bool {
    match call {
        Call::Commit(..) | Call::Renew(..) | Call::Expire | Call::Fire(_) | Call::Prune | Call::Due => true,
        Call::Claim(..) | Call::Held(_) | Call::Reap(..) => false,
    }
}
