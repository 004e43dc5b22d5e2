//! Watching what operators do: cancel, replay, discard, amend.

use crate::watch::record::Known;
use crate::watch::store::{Result, Watched};
use std::collections::HashMap;
use windlass::core::job::{QueueName, Tenant};
use windlass::core::{JobId, Millis, State, Timestamp};
use windlass::low_level::stores::{Amend, Amended, Cancelled, Discard, Discarded, Replay, ReplayOnly, Replayed, Scope};

fn in_scope<'a>(known: Option<&'a mut Known>, scope: &Scope) -> Option<&'a mut Known> {
    known.filter(|known| scope.covers(&known.new.tenant) && !known.pruned)
}

impl Watched {
    pub async fn watch_cancel(&self, scope: &Scope, ids: Vec<JobId>) -> Result<Vec<Cancelled>> {
        let answers = self.inner.cancel(scope, ids.clone()).await?;
        let now = self.now();
        let mut reported = Vec::new();
        {
            let mut record = self.record();
            record.counts.operations += 1;
            for (id, answer) in ids.iter().zip(&answers) {
                let known = in_scope(record.jobs.get_mut(id), scope);
                let expected = known.map_or(Cancelled::NotFound, |known| cancel(known, now, &mut reported));
                record.demand(*answer == expected, || format!("cancel of job {id}: {answer:?}, not {expected:?}"));
            }
        }
        self.find_deliveries(&reported).await;
        self.look_at(&ids).await;
        Ok(answers)
    }

    pub async fn watch_replay(&self, scope: &Scope, replay: Replay) -> Result<Vec<Replayed>> {
        let answers = self.inner.replay(scope, replay.clone()).await?;
        let now = self.now();
        {
            let mut record = self.record();
            record.counts.operations += 1;
            let mut sent = 0;
            for (id, answer) in replay.ids.iter().zip(&answers) {
                let known = in_scope(record.jobs.get_mut(id), scope);
                let expected =
                    known.map_or(Replayed::NotFound, |known| again(known, replay.only, replay.due_at(sent, now), now));
                sent += u64::from(expected == Replayed::Queued);
                record.demand(*answer == expected, || format!("replay of job {id}: {answer:?}, not {expected:?}"));
            }
        }
        self.look_at(&replay.ids).await;
        Ok(answers)
    }

    pub async fn watch_discard(&self, scope: &Scope, discard: Discard) -> Result<Vec<Discarded>> {
        let answers = self.inner.discard(scope, discard.clone()).await?;
        {
            let mut record = self.record();
            record.counts.operations += 1;
            for (id, answer) in discard.ids.iter().zip(&answers) {
                let expected = match in_scope(record.jobs.get_mut(id), scope) {
                    None => Discarded::NotFound,
                    Some(known) if known.state == State::Failed => {
                        known.discarded = true;
                        Discarded::Done
                    }
                    Some(_) => Discarded::NotDead,
                };
                record.demand(*answer == expected, || format!("discard of job {id}: {answer:?}, not {expected:?}"));
            }
        }
        self.look_at(&discard.ids).await;
        Ok(answers)
    }

    pub async fn watch_amend(&self, scope: &Scope, id: JobId, change: Amend) -> Result<Amended> {
        let answer = self.inner.amend(scope, id, change).await?;
        {
            let mut record = self.record();
            record.counts.operations += 1;
            let expected = match in_scope(record.jobs.get_mut(&id), scope) {
                None => Amended::NotFound,
                Some(known) if known.is_waiting() => {
                    known.due_at = change.run_at.unwrap_or(known.due_at);
                    Amended::Done
                }
                Some(known) => Amended::NotWaiting(known.state),
            };
            record.demand(answer == expected, || format!("amending job {id}: {answer:?}, not {expected:?}"));
        }
        self.look_at(&[id]).await;
        Ok(answer)
    }
}

impl Watched {
    /// A resumed queue may move its replayed jobs, so that a replay keeps its rate: all by the same span, none to an
    /// earlier time, and the first of them to now.
    pub async fn watch_respacing(&self, tenant: &Tenant, name: &QueueName) {
        let is_meant = |known: &&Known| {
            known.new.tenant == *tenant && known.new.queue == *name && known.state == State::Queued && known.replays > 0
        };
        let ids: Vec<JobId> = self.record().jobs.values().filter(is_meant).map(|known| known.id).collect();
        let Ok(stored) = self.inner.jobs_by_id(&Scope::All, &ids).await else { return };
        let now = self.now();
        let mut record = self.record();
        // Jobs for workers and jobs that call URLs are in two queues of the same name.
        let mut moved: HashMap<bool, (Timestamp, Millis)> = HashMap::new();
        for job in stored {
            let Some(known) = record.jobs.get_mut(&job.id) else { continue };
            let before = std::mem::replace(&mut known.due_at, job.due_at);
            record.demand(before <= job.due_at, || format!("a resumed queue moved job {} to an earlier time", job.id));
            if before < job.due_at {
                let by = job.due_at.since(before);
                let (first, span) = moved.entry(job.http.is_some()).or_insert((job.due_at, by));
                *first = job.due_at.min(*first);
                let span = *span;
                record.demand(span == by, || format!("job {} moved by {by:?}, others by {span:?}", job.id));
            }
        }
        for (first, _) in moved.into_values() {
            record.demand(first == now, || format!("a resumed queue moved its first replay to {first}"));
        }
    }
}

fn cancel(known: &mut Known, now: Timestamp, reported: &mut Vec<JobId>) -> Cancelled {
    match known.state {
        State::Queued | State::Retrying => {
            if known.finish(State::Cancelled, now) {
                reported.push(known.id);
            }
            Cancelled::Now
        }
        State::Running => {
            known.cancel_requested = true;
            Cancelled::Requested
        }
        State::Succeeded | State::Failed | State::Cancelled => Cancelled::Finished(known.state),
    }
}

fn again(known: &mut Known, only: ReplayOnly, due_at: Timestamp, now: Timestamp) -> Replayed {
    if known.state == State::Running {
        return Replayed::Running;
    }
    if known.state.is_live() {
        if only == ReplayOnly::Any {
            known.due_at = known.due_at.min(now);
        }
        return Replayed::AlreadyLive;
    }
    if only == ReplayOnly::DeadLetters && (known.state != State::Failed || known.discarded) {
        return Replayed::NotDead;
    }
    known.state = State::Queued;
    known.replays += 1;
    (known.failures, known.crashes, known.due_at) = (0, 0, due_at);
    (known.first_attempt_at, known.finished_at) = (None, None);
    (known.cancel_requested, known.discarded) = (false, false);
    known.start_by = known.start_by.filter(|by| *by > now);
    Replayed::Queued
}
