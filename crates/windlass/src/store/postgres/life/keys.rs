//! Idempotency keys: one caller at a time per key; core judges what a second enqueue gets.

use crate::job::{Idempotency, KeyWindow, NewJob};
use crate::store::postgres::Inner;
use crate::store::postgres::connection::pool::On;
use crate::store::postgres::life::enqueue::Stored;
use crate::store::postgres::statements::Sql;
use crate::store::postgres::statements::arrays::arrays;
use crate::store::postgres::statements::columns::Columns;
use crate::store::postgres::statements::row::Row;
use crate::store::{Atomicity, Enqueued, StoreError};
use std::collections::HashMap;
use windlass_core::key::{KeyHolder, KeyVerdict, Request};
use windlass_core::{JobId, Timestamp};

/// What to do with a job of a batch that has keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::store::postgres) enum Plan {
    Store,
    Known(Enqueued),
    /// Its key is that of an earlier job of the batch, at this place, and so are kind and payload.
    Like(usize),
    /// Its key is that of an earlier job of the batch, with another kind or payload.
    Unlike(usize),
}

/// Locks the keys of a batch and says what to do with each job.
pub(in crate::store::postgres) async fn plan(
    store: &Inner,
    on: On<'_>,
    jobs: &[NewJob],
    atomicity: Atomicity,
) -> Result<Vec<Plan>, StoreError> {
    let keyed = jobs.iter().filter_map(|job| Some((job.tenant.as_str(), &*job.idempotency.as_ref()?.key)));
    let (tenants, keys): (Vec<&str>, Vec<&str>) = keyed.unzip();
    on.query(Sql::KeyLock, &[&tenants, &keys]).await?;
    let found = on.query(Sql::KeyFind, &[&store.fixed(), &tenants, &keys]).await?;
    let known = found.iter().map(KnownKey::read).collect::<Result<Vec<_>, _>>()?;
    let known = known.into_iter().map(|known| ((known.tenant, known.key), known)).collect();
    Ok(plan_known(jobs, &known, atomicity))
}

/// Assigns the keys of these jobs to them.
pub(in crate::store::postgres) async fn put(
    on: On<'_>,
    jobs: &[NewJob],
    places: &[usize],
    stored: &[Stored],
) -> Result<(), StoreError> {
    let mut keys = Keys::default();
    for (place, stored) in places.iter().zip(stored) {
        if let Some(Idempotency { key, window }) = &jobs[*place].idempotency {
            keys.tenant.push(jobs[*place].tenant.as_str());
            keys.key.push(key);
            keys.job.push(stored.id.0);
            keys.expires_at.push(match window {
                KeyWindow::For(span) => Some((stored.created_at + *span).as_millis()),
                KeyWindow::Live => None,
            });
        }
    }
    if !keys.key.is_empty() {
        on.query(Sql::KeyPut, &keys.params()).await?;
    }
    Ok(())
}

arrays!(
    /// Keys, as the statement `key_put` takes them.
    Keys<'a> {
        tenant: &'a str,
        key: &'a str,
        job: i64,
        expires_at: Option<i64>,
    }
);

/// The job that a key last belonged to.
struct KnownKey<'a> {
    tenant: &'a str,
    key: &'a str,
    holder: KeyHolder,
    /// The original request, if the job is still kept.
    first: Option<Request<'a>>,
    now: Timestamp,
}

impl<'a> KnownKey<'a> {
    fn read(row: &'a Row) -> Result<Self, StoreError> {
        let c = Columns::new(row);
        let (kind, payload): (Option<&str>, Option<&str>) = (c.get("kind")?, c.get("payload")?);
        let holder =
            KeyHolder { job: JobId(c.get("job_id")?), until: c.moment_if("expires_at")?, is_live: c.get("is_live")? };
        Ok(Self {
            tenant: c.text("tenant")?,
            key: c.text("key")?,
            holder,
            first: kind.zip(payload).map(|(kind, payload)| Request { kind, payload }),
            now: c.moment("now")?,
        })
    }

    /// The answer to an enqueue with this key; `None` if the key is free again.
    fn judge(&self, job: &NewJob) -> Option<Enqueued> {
        self.holder.verdict(self.first, request(job), self.now).map(|verdict| match verdict {
            KeyVerdict::Existing(id) => Enqueued::Existing(id),
            KeyVerdict::Conflict(id) => Enqueued::KeyConflict(id),
        })
    }
}

type KnownKeys<'a> = HashMap<(&'a str, &'a str), KnownKey<'a>>;

fn request(job: &NewJob) -> Request<'_> {
    Request::new(&job.kind, &job.payload)
}

fn plan_known(jobs: &[NewJob], known: &KnownKeys<'_>, atomicity: Atomicity) -> Vec<Plan> {
    let mut in_batch: HashMap<(&str, &str), usize> = HashMap::new();
    let mut plans: Vec<Plan> = Vec::with_capacity(jobs.len());
    for (place, job) in jobs.iter().enumerate() {
        let key = job.idempotency.as_ref().map(|idempotency| (job.tenant.as_str(), &*idempotency.key));
        plans.push(match key {
            None => Plan::Store,
            Some(key) => match (known.get(&key).and_then(|known| known.judge(job)), in_batch.get(&key)) {
                (Some(judged), _) => Plan::Known(judged),
                (None, Some(first)) if request(&jobs[*first]).is_same(request(job)) => Plan::Like(*first),
                (None, Some(first)) => Plan::Unlike(*first),
                (None, None) => {
                    in_batch.insert(key, place);
                    Plan::Store
                }
            },
        });
    }
    let is_conflict = |plan: &Plan| matches!(plan, Plan::Unlike(_) | Plan::Known(Enqueued::KeyConflict(_)));
    if atomicity == Atomicity::All && plans.iter().any(is_conflict) {
        for plan in &mut plans {
            if !matches!(plan, Plan::Known(_)) {
                *plan = Plan::Known(Enqueued::NotStored);
            }
        }
    }
    plans
}
