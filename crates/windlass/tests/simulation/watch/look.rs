//! Checks that the store holds what the record says: for the jobs a call touched, and now and then for all of them.

use crate::watch::record::{Known, Record};
use crate::watch::store::{Result, Watched};
use std::collections::{BTreeMap, BTreeSet};
use windlass::core::{JobId, State, Status};
use windlass::low_level::job::{Job, LeaseId, NewJob, RunAt};
use windlass::low_level::stores::{JobFilter, Order, Page, Scope};
use windlass::low_level::tally::Tally;

const ALL: Page = Page { after: None, limit: 10_000, order: Order::OldestFirst };

impl Watched {
    /// Compares these jobs with the record.
    pub async fn look_at(&self, ids: &[JobId]) {
        self.look_at_leases(|known| ids.contains(&known.id)).await;
        for id in ids {
            let Ok(stored) = self.inner.job(&Scope::All, *id).await else { continue };
            let mut record = self.record();
            match stored {
                Some(job) => record.compare(&job),
                None => record.demand_gone(*id),
            }
        }
    }

    /// Asks under which leases these jobs run.
    async fn look_at_leases(&self, is_asked: impl Fn(&Known) -> bool) {
        let open = |known: &Known| known.open.filter(|_| is_asked(known)).map(|lease| (known.id, lease));
        let expected: BTreeSet<_> = self.record().jobs.values().filter_map(open).collect();
        let leases: BTreeSet<LeaseId> = expected.iter().map(|(_, lease)| *lease).collect();
        let Ok(held) = self.inner.held(leases.into_iter().collect()).await else { return };
        let held: BTreeSet<_> = held.iter().map(|job| (job.id, job.lease)).collect();
        let mut record = self.record();
        for (id, lease) in expected {
            record.demand(held.contains(&(id, lease)), || format!("job {id} does not run under its lease {lease}"));
        }
    }

    /// Jobs as they are, to check later that nothing changed.
    pub async fn snapshots(&self, ids: &[JobId]) -> Vec<Option<Job>> {
        let mut jobs = Vec::with_capacity(ids.len());
        for id in ids {
            jobs.push(self.inner.job(&Scope::All, *id).await.ok().flatten());
        }
        jobs
    }

    /// Deliveries that the store made by itself when it ended these jobs.
    pub async fn find_deliveries(&self, parents: &[JobId]) {
        for parent in parents {
            let filter = JobFilter { parent: Some(*parent), ..JobFilter::default() };
            let Ok(found) = self.inner.jobs(&Scope::All, &filter, ALL).await else { continue };
            let mut record = self.record();
            for job in found {
                if !record.jobs.contains_key(&job.id) {
                    record.stored(job.id, &new_of(&job), job.created_at);
                }
            }
            record.demand_reported(*parent);
        }
    }

    /// Jobs that the record knows and the store no longer has.
    pub async fn missing(&self) -> Result<Vec<JobId>> {
        let stored = self.inner.jobs(&Scope::All, &JobFilter::default(), ALL).await?;
        let stored: BTreeSet<JobId> = stored.into_iter().map(|job| job.id).collect();
        let record = self.record();
        Ok(record.jobs.values().filter(|k| !k.pruned && !stored.contains(&k.id)).map(|k| k.id).collect())
    }

    /// Compares everything: no job is lost, invented or changed without a call.
    pub async fn look_at_all(&self) -> Result<()> {
        self.look_at_leases(|_| true).await;
        let stored = self.inner.jobs(&Scope::All, &JobFilter::default(), ALL).await?;
        let missing = self.missing().await?;
        let mut record = self.record();
        for job in &stored {
            record.compare(job);
        }
        for id in missing {
            record.demand_gone(id);
        }
        Ok(())
    }

    /// What must add up when everything is quiet: ledgers, deliveries, tallies, depths.
    pub async fn look_at_records(&self) -> Result<()> {
        self.look_at_all().await?;
        let ids: Vec<JobId> = self.record().jobs.values().filter(|k| !k.pruned).map(|k| k.id).collect();
        for id in ids {
            let ledger = self.inner.attempts(&Scope::All, id, 1000).await?;
            let lines: Vec<_> = ledger.iter().map(|line| (line.number, line.retry, line.status)).collect();
            let is_timely = ledger.iter().all(|line| line.started_at <= line.finished_at);
            let mut record = self.record();
            record.demand(is_timely, || format!("job {id}: an attempt ended before it began"));
            record.demand_ledger(id, &lines);
            record.demand_reported(id);
        }
        let tallies = self.inner.tallies(&Scope::All, None).await?;
        let depths = self.inner.depths(&Scope::All).await?;
        let mut sum = Tally::default();
        tallies.into_iter().for_each(|(_, _, tally)| sum += tally);
        let in_queues: u64 = depths.iter().map(|depth| depth.due + depth.later + depth.running).sum();
        let dead: u64 = depths.iter().map(|depth| depth.dead).sum();
        self.record().demand_sums(&sum, in_queues, dead);
        Ok(())
    }
}

impl Record {
    fn compare(&mut self, job: &Job) {
        let id = job.id;
        let Some(known) = self.jobs.get(&id) else { return self.breaks(format!("job {id} is a phantom: {job:?}")) };
        if let Some(difference) = known.differs(job) {
            self.breaks(difference);
        }
    }

    fn demand_gone(&mut self, id: JobId) {
        let may_be_gone = self.jobs.get(&id).is_none_or(|known| known.pruned);
        self.demand(may_be_gone, || format!("acknowledged job {id} is lost"));
    }

    /// One delivery for each time the job finished in a state that its webhook reports.
    fn demand_reported(&mut self, parent: JobId) {
        let made = self.jobs.values().filter(|known| known.new.parent == Some(parent)).count();
        let reported = self.jobs.get(&parent).map_or(0, |known| known.reported);
        self.demand(made == reported, || format!("job {parent} has {made} deliveries, should have {reported}"));
    }

    fn demand_ledger(&mut self, id: JobId, lines: &[(u32, u32, Status)]) {
        let Some(known) = self.jobs.get(&id) else { return };
        let expected: Vec<_> = known.lines.iter().map(|line| (line.number, line.retry, line.status)).collect();
        let is_gapless = lines.iter().zip(1..).all(|((number, ..), expected)| *number == expected);
        let unrecorded = known.starts.iter().find(|(attempt, _)| !lines.iter().any(|(n, ..)| n == attempt)).copied();
        let is_running = known.state == State::Running;
        self.demand(is_gapless, || format!("job {id}: the ledger has gaps: {lines:?}"));
        self.demand(lines == expected, || format!("job {id}: the ledger is {lines:?}, should be {expected:?}"));
        self.demand(unrecorded.is_none() || is_running, || format!("job {id}: start {unrecorded:?} is not on record"));
    }

    fn demand_sums(&mut self, sum: &Tally, in_queues: u64, dead: u64) {
        let live = self.live() as i64;
        let lines: i64 = self.jobs.values().map(|known| known.lines.len() as i64).sum();
        let by_status = |wanted: Status| {
            let all = self.jobs.values().flat_map(|known| &known.lines);
            all.filter(|line| line.status == wanted).count() as i64
        };
        let succeeded = by_status(Status::Succeeded);
        let undone = self.jobs.values().filter(|k| k.state == State::Failed && !k.discarded && !k.pruned).count();
        let sums = BTreeMap::from([
            ("live", (sum.live(), live)),
            ("enqueued", (sum.enqueued, self.jobs.len() as i64)),
            ("attempts", (sum.attempts, lines)),
            ("succeeded", (sum.succeeded, succeeded)),
            ("replayed", (sum.replayed, self.jobs.values().map(|known| i64::from(known.replays)).sum())),
            ("jobs in queues", (in_queues as i64, live)),
            ("dead letters", (dead as i64, undone as i64)),
        ]);
        for (what, (counted, is)) in sums {
            self.demand(counted == is, || format!("{what}: counted {counted}, there are {is}"));
        }
    }
}

fn new_of(job: &Job) -> NewJob {
    NewJob {
        tenant: job.tenant.clone(),
        queue: job.queue.clone(),
        executor: job.executor,
        priority: job.priority,
        run_at: RunAt::At(job.due_at),
        start_by: job.start_by,
        delivery: job.delivery,
        timeout: job.timeout,
        http: job.http.clone(),
        webhook: job.webhook.clone(),
        schedule: job.schedule,
        parent: job.parent,
        ..NewJob::new(job.kind.clone(), job.payload.clone(), job.policy.clone())
    }
}
