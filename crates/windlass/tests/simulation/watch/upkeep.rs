//! Watching upkeep: renew, reap, expire, fire, prune.

use crate::watch::record::Record;
use crate::watch::rules::Close;
use crate::watch::store::{Result, Watched};
use windlass::core::{JobId, Millis, Next, Reason, State, Timestamp};
use windlass::low_level::job::LeaseId;
use windlass::low_level::stores::{Fired, Firing, Overlap, Reap, Renewed, Scope, Transitioned, Trigger, WorkerId};

impl Watched {
    pub async fn watch_renew(&self, worker: &WorkerId, leases: Vec<LeaseId>, lease_for: Millis) -> Result<Renewed> {
        let renewed = self.inner.renew(worker, leases.clone(), lease_for).await?;
        let now = self.now();
        let mut record = self.record();
        record.counts.calls += 1;
        for id in leases {
            let said_lost = renewed.lost.contains(&id);
            let is_gone = !record.leases.contains_key(&id);
            record.demand(said_lost == is_gone, || {
                format!("lease {id}: gone {is_gone}, but renewed as lost {said_lost}")
            });
            if let Some(lease) = record.leases.get_mut(&id) {
                (lease.expires_at, lease.length) = (now + lease_for, lease_for);
            }
            let asked = |known: &&crate::watch::record::Known| known.open == Some(id) && known.cancel_requested;
            let unreported = record.jobs.values().filter(asked).find(|k| !renewed.cancel_requested.contains(&k.id));
            let unreported = unreported.map(|known| known.id);
            record.demand(unreported.is_none(), || format!("renewal did not report the cancel of job {unreported:?}"));
        }
        Ok(renewed)
    }

    pub async fn watch_reap(&self, reap: Reap, limit: u32) -> Result<Vec<Transitioned>> {
        let transitioned = self.inner.reap(reap.clone(), limit).await?;
        let now = self.now();
        let (ids, reported) = {
            let mut record = self.record();
            record.counts.calls += 1;
            let over = record.over(&reap, now);
            let held = record.jobs.values().filter(|known| known.open.is_some_and(|lease| over.contains(&lease)));
            let expected: Vec<JobId> = held.map(|known| known.id).collect();
            let mut said: Vec<JobId> = transitioned.iter().map(|one| one.job.id).collect();
            said.sort();
            record.demand(said == expected, || format!("reaped {said:?}, should have reaped {expected:?}"));
            let reported = record.lose(&transitioned, now);
            for lease in over {
                record.leases.remove(&lease);
            }
            (said, reported)
        };
        self.find_deliveries(&reported).await;
        self.look_at(&ids).await;
        Ok(transitioned)
    }

    pub async fn watch_expire(&self, limit: u32) -> Result<Vec<Transitioned>> {
        let transitioned = self.inner.expire(limit).await?;
        let now = self.now();
        let ids: Vec<JobId> = transitioned.iter().map(|one| one.job.id).collect();
        let mut reported = Vec::new();
        for one in &transitioned {
            let mut record = self.record();
            let id = one.job.id;
            let is_expired = one.transition.next == Next::Failed(Reason::Expired);
            let Some(known) = record.jobs.get_mut(&id) else { continue };
            let was_due = known.is_waiting() && known.is_late(now);
            if known.finish(State::Failed, now) {
                reported.push(id);
            }
            record.demand(was_due && is_expired, || format!("job {id} expired without a reason"));
        }
        self.find_deliveries(&reported).await;
        self.look_at(&ids).await;
        Ok(transitioned)
    }

    pub async fn watch_fire(&self, firing: Firing) -> Result<Fired> {
        let before = self.inner.schedule(&Scope::All, firing.schedule).await?;
        let fired = self.inner.fire(firing.clone()).await?;
        let now = self.now();
        let mut record = self.record();
        record.counts.calls += 1;
        let id = firing.schedule;
        if let Trigger::Due { nominal, .. } = firing.trigger {
            let is_due = before.as_ref().is_some_and(|s| s.next_at == Some(nominal) && !s.paused);
            record.demand(is_due || fired == Fired::NotOurs, || format!("schedule {id} fired again for {nominal}"));
            let last = before.as_ref().filter(|s| s.spec.overlap == Overlap::Skip).and_then(|s| s.last_job);
            let overlaps = last.and_then(|last| record.jobs.get(&last)).is_some_and(|run| run.state.is_live());
            let is_run = matches!(fired, Fired::Enqueued(_));
            record.demand(!(overlaps && is_run), || format!("schedule {id} fired over its last run"));
            if is_run {
                let is_first = record.fired.insert((id, nominal));
                record.demand(is_first, || format!("schedule {id} has two runs for {nominal}"));
            }
        }
        if let (Fired::Enqueued(run), Some(new)) = (fired, &firing.job) {
            record.counts.firings += 1;
            record.stored(run, new, now);
        }
        Ok(fired)
    }

    pub async fn watch_prune(&self) -> Result<u64> {
        let count = self.inner.prune().await?;
        let now = self.now();
        let gone = self.missing().await?;
        let mut record = self.record();
        for id in gone {
            let keep = record.retention;
            let Some(known) = record.jobs.get_mut(&id) else { continue };
            let is_past = known.finished_at.is_some_and(|at| at + keep <= now) && !known.state.is_live();
            known.pruned = is_past;
            let state = known.state;
            record.demand(is_past, || format!("job {id} was pruned while {state}, before its retention was over"));
        }
        Ok(count)
    }
}

impl Record {
    /// The leases that a reap must end.
    fn over(&self, reap: &Reap, now: Timestamp) -> Vec<LeaseId> {
        let is_over = |lease: &crate::watch::record::Lease| match reap {
            Reap::Expired { spared } => lease.expires_at <= now && !spared.holds(lease.length),
            Reap::Of(worker) => lease.worker == *worker,
        };
        self.leases.iter().filter(|(_, lease)| is_over(lease)).map(|(id, _)| *id).collect()
    }

    /// Attempts were lost. Returns the jobs whose webhooks must be sent.
    fn lose(&mut self, transitioned: &[Transitioned], now: Timestamp) -> Vec<JobId> {
        let mut reported = Vec::new();
        for one in transitioned {
            self.counts.lost += 1;
            let id = one.job.id;
            let none_may = self.none_may_be_lost;
            self.demand(!none_may, || format!("job {id} was charged an attempt, but no worker was lost"));
            let close = Close { transition: one.transition, is_lost: true, decided_at: now };
            let Some(known) = self.jobs.get_mut(&id) else { continue };
            match known.close(close, now) {
                Ok(true) => reported.push(id),
                Ok(false) => {}
                Err(rule) => self.breaks(rule),
            }
        }
        reported
    }
}
