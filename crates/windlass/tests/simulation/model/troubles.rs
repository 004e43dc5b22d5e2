//! Troubles: crashes, restarts, drains, freezes, partitions, outages, clock jumps; and the calm after the storm.

use crate::model::agenda::{Event, Mishap};
use crate::model::message::sorted;
use crate::model::node::Done;
use crate::model::sim::Sim;
use crate::model::swarm::Spice;
use windlass::core::{Millis, Outcome, Progress};
use windlass::low_level::stores::JobLife;
use windlass::low_level::stores::Registry;
use windlass::low_level::stores::{Reap, ScheduleChange, Scope, SettingKey, WorkerId};

impl Sim {
    pub async fn begin(&mut self) {
        let kept = self.swarm.retention.to_string();
        let limits = self
            .swarm
            .limits
            .map(|limits| serde_json::json!({ "concurrency": limits.queue, "perKey": { "concurrency": limits.key } }));
        let setting = serde_json::json!({
            "retention": { "succeeded": kept, "cancelled": kept, "failed": kept },
            "limits": limits,
        })
        .to_string();
        for name in ["a", "b", "webhooks"] {
            let key = SettingKey::Queue { tenant: None, name: name.into() };
            self.store.put_setting(&key, Some(&setting)).await.expect("the store answers");
        }
        if self.swarm.has(Spice::Schedules) {
            self.add_schedules().await;
        }
        for node in 0..self.nodes.len() {
            self.agenda.plan(Millis::ZERO, Event::Mishap(Mishap::Restart(node)));
        }
        self.agenda.plan(Millis::ZERO, Event::Produce);
        self.agenda.plan(Millis::from_secs(5), Event::Operator);
        self.plan_troubles();
    }

    /// The first of each kind; each plans its next.
    fn plan_troubles(&mut self) {
        for node in 0..self.nodes.len() {
            self.next(Spice::Crashes, 80, Mishap::Crash(node));
            self.next(Spice::Drains, 80, Mishap::Drain(node));
            self.next(Spice::Freezes, 60, Mishap::Freeze(node));
            self.next(Spice::Partitions, 80, Mishap::CutOff(node));
        }
        self.next(Spice::Outages, 80, Mishap::OutageBegins);
        self.next(Spice::ClockJumps, 80, Mishap::ClockJumps);
    }

    fn next(&mut self, spice: Spice, within_seconds: u64, mishap: Mishap) {
        if self.swarm.has(spice) && !self.is_calm {
            let pause = Millis::new(1000 + self.pick(2 * within_seconds * 1000));
            self.plan_in(pause, Event::Mishap(mishap));
        }
    }

    pub async fn mishap(&mut self, mishap: Mishap) {
        match mishap {
            Mishap::Restart(node) => self.restart(node).await,
            Mishap::Rejoin(node) => self.nodes[node].plan.end_outage(),
            Mishap::OutageEnds => self.all_plans(false),
            Mishap::Crash(_)
            | Mishap::Drain(_)
            | Mishap::Freeze(_)
            | Mishap::CutOff(_)
            | Mishap::OutageBegins
            | Mishap::ClockJumps
                if self.is_calm => {}
            Mishap::Crash(node) => {
                self.crash(node);
                self.next(Spice::Crashes, 80, Mishap::Crash(node));
            }
            Mishap::Drain(node) => {
                self.drain(node);
                self.next(Spice::Drains, 80, Mishap::Drain(node));
            }
            Mishap::Freeze(node) => {
                let span = Millis::new(self.pick(3 * self.swarm.lease.get()));
                self.nodes[node].frozen_until = self.now() + span;
                self.next(Spice::Freezes, 60, Mishap::Freeze(node));
            }
            Mishap::CutOff(node) => {
                self.nodes[node].plan.begin_outage();
                let span = Millis::new(self.pick(3 * self.swarm.lease.get()));
                self.plan_in(span, Event::Mishap(Mishap::Rejoin(node)));
                self.next(Spice::Partitions, 80, Mishap::CutOff(node));
            }
            Mishap::OutageBegins => {
                self.all_plans(true);
                let span = Millis::new(self.pick(4 * self.swarm.lease.get()));
                self.plan_in(span, Event::Mishap(Mishap::OutageEnds));
                self.next(Spice::Outages, 80, Mishap::OutageBegins);
            }
            Mishap::ClockJumps => {
                let span = Millis::new(self.pick(3_600_000));
                self.clock.advance(span);
                self.next(Spice::ClockJumps, 80, Mishap::ClockJumps);
            }
        }
    }

    fn all_plans(&self, is_out: bool) {
        for plan in self.nodes.iter().map(|node| &node.plan).chain([&self.operator_plan]) {
            if is_out { plan.begin_outage() } else { plan.end_outage() }
        }
    }

    pub fn crash(&mut self, node: usize) {
        if !self.nodes[node].is_up {
            return;
        }
        self.crashes += 1;
        self.quiet_since = self.clock.now();
        self.stop(node);
    }

    /// The process ends; another one follows.
    pub fn stop(&mut self, node: usize) {
        self.nodes[node].die();
        let pause = Millis::new(500 + self.pick(if self.is_calm { 3000 } else { 60_000 }));
        self.plan_in(pause, Event::Mishap(Mishap::Restart(node)));
    }

    /// As `Identity::take` and the worker's start do it.
    async fn restart(&mut self, index: usize) {
        if self.nodes[index].is_up {
            return;
        }
        let store = self.nodes[index].store.clone();
        let lives = self.nodes[index].life.epoch;
        let name = if self.strikes(Spice::SameName, 4) { self.pick(self.nodes.len() as u64) as usize } else { index };
        let asked = match self.swarm.has(Spice::SameName) {
            true => WorkerId::new(&format!("node-{name}")),
            false => WorkerId::new(&format!("node-{index}-{lives}")),
        };
        let mut lock = match sorted(store.lock_worker(&asked).await) {
            Ok(lock) => lock,
            Err(_) => return self.plan_in(Millis::from_secs(1), Event::Mishap(Mishap::Restart(index))),
        };
        let mut worker = asked.clone();
        if lock.is_some() {
            // The process that held leases under this name is gone.
            match sorted(store.reap(Reap::Of(asked), 100).await) {
                Ok(_) => {}
                Err(_) => return self.plan_in(Millis::from_secs(1), Event::Mishap(Mishap::Restart(index))),
            }
        } else {
            worker = WorkerId::new(&format!("{asked}-{:x}", self.random.number()));
            lock = sorted(store.lock_worker(&worker).await).ok().flatten();
        }
        let node = &mut self.nodes[index];
        (node.worker, node.lock, node.is_up) = (worker, lock, true);
        let life = node.life;
        self.fetch_in(Millis::ZERO, life);
        let pause = Millis::new(self.swarm.lease.get() / 3);
        self.renew_in(pause, life);
        let pause = Millis::new(self.pick(5000));
        self.plan_in(pause, Event::Upkeep(life));
    }

    /// A graceful stop: claim no more, give back running jobs, commit everything.
    pub fn drain(&mut self, index: usize) {
        let (now, random) = (self.clock.now(), self.random.clone());
        let node = &mut self.nodes[index];
        if !node.is_up {
            return;
        }
        node.is_draining = true;
        for held in node.held.values_mut().filter(|held| held.done.is_none()) {
            let progress = if held.started_at.is_some() { Progress::Started } else { Progress::NotStarted };
            held.done = Some(Done { outcome: Outcome::Released(progress), at: now, roll: random.roll() });
        }
        let life = node.life;
        if node.held.is_empty() && !node.is_claiming {
            return self.stop(index);
        }
        self.send_outcomes(life);
    }

    /// From now on nothing goes wrong: what is due must finish.
    pub async fn calm_down(&mut self) {
        self.is_calm = true;
        // What a frozen node had planned waits until it wakes.
        let frozen = self.nodes.iter().map(|node| node.frozen_until - self.now()).max().unwrap_or_default();
        self.quiet_since = self.clock.now() + frozen;
        self.operator_plan.calm();
        for index in 0..self.nodes.len() {
            let node = &mut self.nodes[index];
            node.plan.calm();
            if !node.is_up {
                self.plan_in(Millis::ZERO, Event::Mishap(Mishap::Restart(index)));
            }
        }
        for queue in self.store.queues().await.expect("the store answers") {
            self.store.pause_queue(&queue.tenant, &queue.name, false).await.expect("the store answers");
        }
        for schedule in self.schedules.clone() {
            let pause = ScheduleChange { paused: Some(true), ..ScheduleChange::default() };
            self.store.change_schedule(&Scope::All, schedule, pause).await.expect("the store answers");
        }
    }
}
