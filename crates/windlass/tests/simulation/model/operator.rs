//! Operators: they cancel, replay, discard, amend, pause and trigger while everything runs, sometimes jobs of another
//! tenant.

use crate::model::agenda::Event;
use crate::model::message::sorted;
use crate::model::sim::Sim;
use crate::model::swarm::Spice;
use windlass::core::job::QueueName;
use windlass::core::{JobId, Millis, Priority};
use windlass::low_level::job::NewJob;
use windlass::low_level::stores::JobLife;
use windlass::low_level::stores::Registry;
use windlass::low_level::stores::{
    Amend, Discard, Firing, Replay, ReplayOnly, ScheduleChange, Scope, Spacing, Trigger,
};

#[derive(Debug, Clone, Copy)]
enum OperatorAction {
    Cancel,
    Replay,
    Discard,
    Amend,
    Pause,
    ToggleSchedule,
}

const ACTIONS: [(Spice, OperatorAction); 6] = [
    (Spice::Cancels, OperatorAction::Cancel),
    (Spice::Replays, OperatorAction::Replay),
    (Spice::Discards, OperatorAction::Discard),
    (Spice::Amends, OperatorAction::Amend),
    (Spice::Pauses, OperatorAction::Pause),
    (Spice::Schedules, OperatorAction::ToggleSchedule),
];

impl Sim {
    pub async fn operator(&mut self) {
        if self.is_calm {
            return;
        }
        let actions: Vec<OperatorAction> =
            ACTIONS.into_iter().filter(|(spice, _)| self.swarm.has(*spice)).map(|(_, action)| action).collect();
        if actions.is_empty() {
            return;
        }
        let action = actions[self.pick(actions.len() as u64) as usize];
        let scope = if self.pick(3) == 0 { Scope::Tenant(self.some_tenant()) } else { Scope::All };
        let count = 1 + self.pick(3);
        let ids: Vec<JobId> = (0..count).filter_map(|_| self.some_job()).collect();
        let said = self.act(action, &scope, ids).await;
        self.note(|| format!("  {action:?} {scope:?} → {said}"));
        let pause = Millis::new(self.pick(8000));
        self.plan_in(pause, Event::Operator);
    }

    async fn act(&mut self, action: OperatorAction, scope: &Scope, ids: Vec<JobId>) -> String {
        let store = self.operations.clone();
        match action {
            OperatorAction::Cancel => format!("{:?}", sorted(store.cancel(scope, ids).await)),
            OperatorAction::Replay => {
                let only = if self.pick(2) == 0 { ReplayOnly::Any } else { ReplayOnly::DeadLetters };
                let spacing = Spacing::every(Millis::new(self.pick(3000)));
                let replay = Replay { spacing, ..Replay::new(ids, only, "ann") };
                format!("{:?}", sorted(store.replay(scope, replay).await))
            }
            OperatorAction::Discard => {
                let discard = Discard { ids, reason: "known".into(), by: "ann".into(), what: String::new() };
                format!("{:?}", sorted(store.discard(scope, discard).await))
            }
            OperatorAction::Amend => {
                let Some(id) = ids.first() else { return String::new() };
                let run_at = (self.pick(2) == 0).then(|| self.clock.now() + Millis::new(self.pick(30_000)));
                let priority = (self.pick(2) == 0).then(|| Priority::HIGHEST_FIRST[self.pick(5) as usize]);
                format!("{:?}", sorted(store.amend(scope, *id, Amend { priority, run_at }).await))
            }
            OperatorAction::Pause => {
                let name = QueueName::new(["a", "b", "webhooks"][self.pick(3) as usize]).expect("a name");
                let paused = self.pick(3) == 0;
                format!("{:?}", sorted(store.pause_queue(&self.some_tenant(), &name, paused).await))
            }
            OperatorAction::ToggleSchedule => self.toggle_schedule(scope).await,
        }
    }

    async fn toggle_schedule(&mut self, scope: &Scope) -> String {
        let Some(id) = self.schedules.get(self.pick(self.schedules.len() as u64) as usize).copied() else {
            return String::new();
        };
        let store = self.operations.clone();
        if self.pick(2) == 0 {
            let found = self.store.schedule(&Scope::All, id).await.expect("the store answers");
            let Some(schedule) = found else { return String::new() };
            let job = NewJob { schedule: Some(id), ..schedule.spec.template };
            let firing = Firing { schedule: id, trigger: Trigger::Operator, job: Some(job) };
            return format!("{:?}", sorted(store.fire(firing).await));
        }
        let change = ScheduleChange { paused: Some(self.pick(2) == 0), ..ScheduleChange::default() };
        format!("{:?}", sorted(store.change_schedule(scope, id, change).await).is_ok())
    }

    fn some_job(&self) -> Option<JobId> {
        let record = self.store.record();
        let count = record.jobs.len() as u64;
        record.jobs.keys().nth(self.pick(count) as usize).copied()
    }
}
