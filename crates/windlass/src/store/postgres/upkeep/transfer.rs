//! Transfer: jobs read with their history, and stored as they were elsewhere, by set statements.

use crate::job::Job;
use crate::store::postgres::Inner;
use crate::store::postgres::connection::fault::again;
use crate::store::postgres::connection::pool::{On, Params};
use crate::store::postgres::life::names::{self, Numbers};
use crate::store::postgres::statements::Sql;
use crate::store::postgres::statements::columns::{Columns, only};
use crate::store::postgres::statements::rows;
use crate::store::postgres::upkeep::import_rows::{Balances, JobRows, Keys, LedgerRows, OutcomeRows, WaitingRows};
use crate::store::postgres::upkeep::import_rows::{ScheduleRows, is_dead};
use crate::store::{IMPORT, Import, Imported, JobCopy, KeyHeld, StoreError};
use futures_util::join;
use std::collections::{HashMap, HashSet};
use windlass_core::{Attempt, JobId};

type Result<T> = std::result::Result<T, StoreError>;

pub(in crate::store::postgres) async fn last_id(store: &Inner) -> Result<JobId> {
    Ok(JobId(only(&store.read(Sql::IdsLast, &[]).await?, "last")?.unwrap_or_default()))
}

pub(in crate::store::postgres) async fn copies(
    store: &Inner,
    after: Option<JobId>,
    limit: u32,
) -> Result<Vec<JobCopy>> {
    again(|| async {
        let lent = store.pool.get().await?;
        let (begun, copies) = join!(lent.begin_snapshot(), copies_on(store, On::Own(&lent), after, limit));
        lent.conclude(begun, copies).await
    })
    .await
}

async fn copies_on(store: &Inner, on: On<'_>, after: Option<JobId>, limit: u32) -> Result<Vec<JobCopy>> {
    let (after, limit) = (after.map(|id| id.0), i64::from(limit));
    let (word, words): (Option<&str>, Option<Vec<&str>>) = (None, None);
    let (number, numbers): (Option<i64>, Option<Vec<i64>>) = (None, None);
    let page: Params<'_> = &[
        &after, &limit, &true, &words, &numbers, &word, &word, &number, &number, &number, &false, &word, &true, &true,
    ];
    let jobs = names::jobs_in(store, on, &on.query(Sql::JobsOldest, page).await?).await?;
    let ids: Vec<i64> = jobs.iter().map(|job| job.id.0).collect();
    let mut attempts: HashMap<JobId, Vec<Attempt>> = HashMap::new();
    for row in &on.query(Sql::CopyAttempts, &[&ids]).await? {
        let (job, attempt) = rows::attempt(row)?;
        attempts.entry(job).or_default().push(attempt);
    }
    let mut keys = keys_on(store, on, &jobs).await?;
    let copy = |job: Job| JobCopy {
        attempts: attempts.remove(&job.id).unwrap_or_default(),
        key: keys.remove(&job.id).filter(|held| *held != KeyHeld::Live || job.state.is_live()),
        job,
    };
    Ok(jobs.into_iter().map(copy).collect())
}

async fn keys_on(store: &Inner, on: On<'_>, jobs: &[Job]) -> Result<HashMap<JobId, KeyHeld>> {
    let (mut tenants, mut keys, mut ids) = (Vec::new(), Vec::new(), Vec::new());
    for job in jobs {
        if let Some(key) = job.idempotency_key.as_deref() {
            tenants.push(job.tenant.as_str());
            keys.push(key);
            ids.push(job.id.0);
        }
    }
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let found = on.query(Sql::CopyKeys, &[&store.fixed(), &tenants, &keys, &ids]).await?;
    let read = |row| {
        let c = Columns::new(row);
        Ok((JobId(c.get("job_id")?), KeyHeld::from_until(c.moment_if("expires_at")?)))
    };
    found.iter().map(read).collect()
}

pub(in crate::store::postgres) async fn import(store: &Inner, import: &Import) -> Result<Imported> {
    let numbers = numbers(store, &import.jobs).await?;
    let imported = again(|| async {
        let lent = store.pool.get().await?;
        let (begun, imported) = join!(lent.begin(), import_on(store, On::Own(&lent), import, &numbers));
        lent.conclude(begun, imported).await
    })
    .await;
    store.forget_places();
    imported
}

async fn numbers(store: &Inner, jobs: &[JobCopy]) -> Result<Vec<Numbers>> {
    let mut numbers = Vec::with_capacity(jobs.len());
    for JobCopy { job, .. } in jobs {
        numbers.push(Numbers {
            queue: names::queue_number(store, &job.tenant, &job.queue, job.executor).await?,
            policy: names::policy_number(store, &job.policy).await?,
        });
    }
    Ok(numbers)
}

async fn import_on(store: &Inner, on: On<'_>, import: &Import, numbers: &[Numbers]) -> Result<Imported> {
    on.query(Sql::ImportLock, &[]).await?;
    let found = on.query(Sql::ImportMark, &[&IMPORT]).await?;
    if only::<Option<String>>(&found, "mark")?.flatten() != import.before {
        return Ok(Imported::Overtaken);
    }
    if let Some(origin) = &import.origin {
        if !only(&found, "is_empty")?.unwrap_or(false) {
            return Ok(Imported::NotEmpty);
        }
        on.query(Sql::InstallationPut, &[&origin.installation]).await?;
        on.query(Sql::IdsRaise, &[&origin.last_id.0]).await?;
    }
    on.query(Sql::SettingPut, &[&store.fixed(), &"server", &"*", &IMPORT, &"", &import.after, &""]).await?;
    let mut existing = 0;
    if !import.schedules.is_empty() {
        let rows = ScheduleRows::of(&import.schedules);
        existing += import.schedules.len() - on.query(Sql::ImportSchedules, &rows.params()).await?.len();
    }
    if !import.jobs.is_empty() {
        existing += put_jobs(on, &import.jobs, numbers).await?;
    }
    Ok(Imported::Done { existing: existing as u64 })
}

/// Returns how many of the jobs existed.
async fn put_jobs(on: On<'_>, jobs: &[JobCopy], numbers: &[Numbers]) -> Result<usize> {
    let inserted = on.query(Sql::ImportJobs, &JobRows::of(jobs, numbers).params()).await?;
    let inserted = inserted.iter().map(|row| Columns::new(row).get("id"));
    let inserted: HashSet<i64> = inserted.collect::<Result<_>>()?;
    let fresh = || jobs.iter().zip(numbers).filter(|(copy, _)| inserted.contains(&copy.job.id.0));
    let (mut waiting, mut ledger, mut outcomes) =
        (WaitingRows::default(), LedgerRows::default(), OutcomeRows::default());
    let (mut keys, mut balances) = (Keys::default(), HashMap::<i64, (i64, i64)>::new());
    for (copy, numbers) in fresh() {
        ledger.push(copy);
        keys.push(copy);
        let balance = balances.entry(numbers.queue).or_default();
        if copy.job.state.is_live() {
            waiting.push(&copy.job, numbers.queue);
            balance.0 += 1;
        } else {
            outcomes.push(copy, numbers.queue);
            balance.1 += i64::from(is_dead(&copy.job));
        }
    }
    on.query(Sql::ImportWaiting, &waiting.params()).await?;
    on.query(Sql::ImportAttempts, &ledger.params()).await?;
    on.query(Sql::ImportOutcomes, &outcomes.params()).await?;
    on.query(Sql::ImportKeys, &keys.params()).await?;
    // Whoever counts the jobs anew does so before or after this transaction, not during it.
    on.query(Sql::TallyLock, &[]).await?;
    on.query(Sql::ImportBalances, &Balances::of(balances).params()).await?;
    Ok(jobs.len() - inserted.len())
}
