//! ACK and FAIL: how a reserved job ended. They name a jid, on any connection, also after a restart of the server.

use super::command::Fail;
use super::reply::Reply;
use super::session::Session;
use super::wire::{self, AtTheEnd};
use windlass::StoreError;
use windlass::client::{JobFilter, Page};
use windlass::remote::{Answer, AttemptResult, HeldAttempt, Keyed};
use windlass_core::failure::ERROR;
use windlass_core::job::Tenant;
use windlass_core::{Failure, JobId, Outcome, State};

/// Running jobs read at once, and how many are read at most, to find a job with `unique_for`.
const PAGE: u32 = 500;
const MAX_SEARCHED: u32 = 10_000;

/// What is known of a jid.
enum Found {
    Running(HeldAttempt),
    /// Its job waits: the reservation has ended.
    Waiting(JobId),
    /// No live job has it.
    Unknown,
}

impl Session {
    pub(super) async fn ack(&self, jid: &str) -> Result<Reply, Reply> {
        self.end(jid, Outcome::Succeeded).await.map(|(reply, _)| reply)
    }

    pub(super) async fn fail(&self, fail: Fail) -> Result<Reply, Reply> {
        let class = fail.errtype.filter(|class| !class.is_empty()).unwrap_or_else(|| ERROR.into());
        let mut failure = Failure::new(fail.message.unwrap_or_default()).class(class);
        if let Some(lines) = fail.backtrace.filter(|lines| !lines.is_empty()) {
            failure = failure.trace(lines.join("\n"));
        }
        let (reply, ended) = self.end(&fail.jid, Outcome::Failed(failure)).await?;
        if let Some(id) = ended {
            self.discard_if_asked(id).await?;
        }
        Ok(reply)
    }

    async fn end(&self, jid: &str, outcome: Outcome) -> Result<(Reply, Option<JobId>), Reply> {
        let held = match self.find(jid).await? {
            Found::Running(held) => held,
            Found::Waiting(id) => return Err(reservation_over(jid, id)),
            // It has ended, as when a client repeats what it said before its connection broke.
            Found::Unknown => return Ok((Reply::Ok, None)),
        };
        let result = AttemptResult { held, outcome, note: None, result: None };
        let answers = self.remote().finish(&self.worker(), &[result]).await?;
        self.workers().forget(self.name(), jid);
        match answers.first() {
            Some(Answer::Ok | Answer::Cancel) => Ok((Reply::Ok, Some(held.job))),
            Some(Answer::Stale) | None => Err(reservation_over(jid, held.job)),
        }
    }

    async fn find(&self, jid: &str) -> Result<Found, StoreError> {
        if let Some(held) = self.workers().held(self.name(), jid).or_else(|| wire::own_attempt(jid)) {
            return Ok(Found::Running(held));
        }
        let key = wire::key_of(jid);
        for tenant in self.tenants().await? {
            if let Some(found) = self.remote().keyed(&tenant, &key).await? {
                return Ok(found.into());
            }
        }
        self.find_unique(jid).await
    }

    /// The default tenant, then the others.
    async fn tenants(&self) -> Result<Vec<Tenant>, StoreError> {
        let mut tenants: Vec<Tenant> =
            self.windlass().queues().rows().await?.into_iter().map(|row| row.tenant).collect();
        tenants.sort_by_key(|tenant| (*tenant != Tenant::default(), tenant.to_string()));
        tenants.dedup();
        Ok(tenants)
    }

    /// A job with `unique_for` has its key from its content, not from its jid: it is searched among the running ones.
    async fn find_unique(&self, jid: &str) -> Result<Found, StoreError> {
        let filter = JobFilter { states: vec![State::Running], ..JobFilter::default() };
        let mut page = Page::newest(PAGE);
        let mut searched = 0;
        while searched < MAX_SEARCHED {
            let jobs = self.windlass().jobs().list(&filter, page).await?;
            for job in &jobs {
                let key = job.idempotency_key.as_deref().filter(|key| key.starts_with(wire::UNIQUE_KEY));
                if let Some(key) = key
                    && wire::of(job).jid().as_deref() == Some(jid)
                    && let Some(found) = self.remote().keyed(&job.tenant, key).await?
                {
                    return Ok(found.into());
                }
            }
            searched += jobs.len() as u32;
            page.after = jobs.last().map(|job| job.id);
            if (jobs.len() as u32) < PAGE {
                break;
            }
        }
        Ok(Found::Unknown)
    }

    /// `retry: 0` discards a job that failed.
    async fn discard_if_asked(&self, id: JobId) -> Result<(), StoreError> {
        let dead = self.windlass().dead_letters();
        let Some(job) = dead.get(id).await? else { return Ok(()) };
        if wire::of(&job).at_the_end() == AtTheEnd::Discard {
            dead.by("faktory").discard_ids(vec![id], "the job says retry: 0").await?;
        }
        Ok(())
    }
}

impl From<Keyed> for Found {
    fn from(keyed: Keyed) -> Self {
        match keyed {
            Keyed::Running(held) => Self::Running(held),
            Keyed::Waiting(id) => Self::Waiting(id),
        }
    }
}

fn reservation_over(jid: &str, id: JobId) -> Reply {
    Reply::Error(format!("the reservation of {jid} (job {id}) has ended; nothing was recorded"))
}
