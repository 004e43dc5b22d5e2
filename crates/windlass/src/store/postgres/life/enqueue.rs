//! Enqueue: new jobs, by one set statement. Enqueues with the same idempotency key run one at a time.

use crate::job::{NewJob, QueueId, RunAt};
use crate::store::json::{call_to_text, webhook_to_text};
use crate::store::postgres::Inner;
use crate::store::postgres::connection::fault::again;
use crate::store::postgres::connection::pool::{Lent, On, Params};
use crate::store::postgres::life::keys::{self, Plan};
use crate::store::postgres::life::names::{self, Numbers};
use crate::store::postgres::statements::Sql;
use crate::store::postgres::statements::arrays::{arrays, at};
use crate::store::postgres::statements::columns::Columns;
use crate::store::postgres::statements::row::Row;
use crate::store::{Atomicity, Enqueued, StoreError};
use crate::tally::{Tallies, Tally};
use futures_util::future::try_join;
use futures_util::join;
use std::collections::HashMap;
use windlass_core::{Delivery, JobId, Timestamp};

arrays!(
    /// New jobs, as the statement `enqueue` takes them.
    NewRows<'a> {
        queue: i64,
        run_at: Option<i64>,
        delay: Option<i64>,
        policy: i64,
        start_by: Option<i64>,
        timeout: Option<i64>,
        schedule: Option<i64>,
        parent: Option<i64>,
        priority: i16,
        at_most_once: bool,
        kind: &'a str,
        payload: &'a str,
        key: Option<&'a str>,
        http: Option<String>,
        webhook: Option<String>,
        traceparent: Option<&'a str>,
        limit_key: Option<&'a str>,
    }
);

impl<'a> NewRows<'a> {
    fn push(&mut self, job: &'a NewJob, numbers: Numbers) {
        let (run_at, delay) = due(job.run_at);
        self.queue.push(numbers.queue);
        self.run_at.push(run_at);
        self.delay.push(delay);
        self.policy.push(numbers.policy);
        self.start_by.push(job.start_by.map(Timestamp::as_millis));
        self.timeout.push(job.timeout.map(|span| span.get() as i64));
        self.schedule.push(job.schedule.map(|id| id.0));
        self.parent.push(job.parent.map(|id| id.0));
        self.priority.push(job.priority.rank());
        self.at_most_once.push(job.delivery == Delivery::AtMostOnce);
        self.kind.push(job.kind.as_str());
        self.payload.push(&job.payload);
        self.key.push(job.idempotency.as_ref().map(|idempotency| &*idempotency.key));
        self.http.push(job.http.as_deref().map(call_to_text));
        self.webhook.push(job.webhook.as_deref().map(webhook_to_text));
        self.traceparent.push(job.traceparent.as_deref());
        self.limit_key.push(job.limit_key.as_deref());
    }
}

/// A job as it was stored.
#[derive(Debug, Clone, Copy)]
pub(in crate::store::postgres) struct Stored {
    pub(in crate::store::postgres) id: JobId,
    pub(in crate::store::postgres) created_at: Timestamp,
    pub(in crate::store::postgres) due_at: Timestamp,
}

impl From<Stored> for Enqueued {
    fn from(stored: Stored) -> Self {
        Self::Created { id: stored.id, created_at: stored.created_at, due_at: stored.due_at }
    }
}

/// Stores jobs in a transaction of their own; if the database refuses one, each by itself.
pub(in crate::store::postgres) async fn enqueue(
    store: &Inner,
    jobs: &[NewJob],
    atomicity: Atomicity,
) -> Result<Vec<Enqueued>, StoreError> {
    let unstorable = refused_at_once(jobs, atomicity);
    if let Some(refused) = unstorable.all {
        return Ok(refused);
    }
    if !unstorable.items.is_empty() {
        return enqueue_the_rest(store, jobs, &unstorable.items).await;
    }
    match again(|| enqueue_once(store, jobs, atomicity)).await {
        Err(StoreError::Invalid(why)) if jobs.len() == 1 => Ok(vec![Enqueued::Refused(why)]),
        Err(StoreError::Invalid(_)) => enqueue_singly(store, jobs, atomicity).await,
        outcome => outcome,
    }
}

async fn enqueue_once(store: &Inner, jobs: &[NewJob], atomicity: Atomicity) -> Result<Vec<Enqueued>, StoreError> {
    let numbers = names::numbers(store, jobs).await?;
    let lent = store.pool.get().await?;
    if lent.is_direct() && lent.prepares() && are_alike(jobs, &numbers) {
        let stored = enqueue_alike(store, &lent, jobs, numbers[0]).await?;
        if matches!(jobs[0].run_at, RunAt::At(_)) {
            store.forget_places();
        }
        return Ok(stored.into_iter().map(Enqueued::from).collect());
    }
    let (begun, stored) = join!(lent.begin(), enqueue_on(store, On::Own(&lent), jobs, &numbers, atomicity));
    let stored = lent.conclude(begun, stored).await?;
    if jobs.iter().any(|job| matches!(job.run_at, RunAt::At(_))) {
        store.forget_places();
    }
    Ok(stored)
}

/// Whether jobs differ in nothing but their payload, and have none of the rarer fields. Jobs of one request share its
/// trace.
fn are_alike(jobs: &[NewJob], numbers: &[Numbers]) -> bool {
    let (first, number) = (&jobs[0], numbers[0]);
    let is_plain = |job: &NewJob| {
        job.idempotency.is_none()
            && job.start_by.is_none()
            && job.timeout.is_none()
            && job.schedule.is_none()
            && job.parent.is_none()
            && job.http.is_none()
            && job.webhook.is_none()
            && job.limit_key.is_none()
    };
    let is_same = |job: &NewJob| {
        job.kind == first.kind
            && job.priority == first.priority
            && job.delivery == first.delivery
            && job.run_at == first.run_at
            && job.traceparent == first.traceparent
    };
    jobs.iter().all(|job| is_plain(job) && is_same(job)) && numbers.iter().all(|other| *other == number)
}

/// Stores jobs that are alike by one statement that commits by itself.
async fn enqueue_alike(
    store: &Inner,
    lent: &Lent,
    jobs: &[NewJob],
    numbers: Numbers,
) -> Result<Vec<Stored>, StoreError> {
    let first = &jobs[0];
    let (run_at, delay) = due(first.run_at);
    let payloads: Vec<&str> = jobs.iter().map(|job| &*job.payload).collect();
    let rank = first.priority.rank();
    let is_once = first.delivery == Delivery::AtMostOnce;
    let kind = first.kind.as_str();
    let (now, traceparent) = (store.fixed(), first.traceparent.as_deref());
    let params: Params<'_> =
        &[&now, &numbers.queue, &run_at, &delay, &numbers.policy, &rank, &is_once, &kind, &payloads, &traceparent];
    let rows = lent.run_alone(Sql::EnqueueAlike, params).await?;
    store.unfolded.wrote(1);
    let row = rows.first().ok_or_else(|| StoreError::corrupt("enqueue", "it answers what it stored"))?;
    let c = Columns::new(row);
    let (mut ids, created_at, due_at): (Vec<i64>, _, _) = (c.get("ids")?, c.moment("created_at")?, c.moment("due_at")?);
    ids.sort_unstable();
    Ok(ids.into_iter().map(|id| Stored { id: JobId(id), created_at, due_at }).collect())
}

/// A job's own time, or how long after now it is due.
fn due(run_at: RunAt) -> (Option<i64>, Option<i64>) {
    match run_at {
        RunAt::Now => (None, Some(0)),
        RunAt::At(moment) => (Some(moment.as_millis()), None),
        RunAt::After(span) => (None, Some(span.get() as i64)),
    }
}

/// What a statement stored. Ids grow in the order of the arrays; rows come back in any order.
fn stored_in(rows: &[Row]) -> Result<Vec<Stored>, StoreError> {
    let read = |row| {
        let c = Columns::new(row);
        Ok(Stored { id: JobId(c.get("id")?), created_at: c.moment("created_at")?, due_at: c.moment("due_at")? })
    };
    let mut stored: Vec<Stored> = rows.iter().map(read).collect::<Result<_, StoreError>>()?;
    stored.sort_by_key(|stored| stored.id);
    Ok(stored)
}

/// Items that no database text can hold are refused; the others are stored.
async fn enqueue_the_rest(store: &Inner, jobs: &[NewJob], refused: &[bool]) -> Result<Vec<Enqueued>, StoreError> {
    let rest: Vec<NewJob> = jobs.iter().zip(refused).filter(|(_, no)| !**no).map(|(job, _)| job.clone()).collect();
    let mut stored = Box::pin(enqueue(store, &rest, Atomicity::Each)).await?.into_iter();
    let result = |no: &bool| if *no { Some(Enqueued::Refused(UNSTORABLE.into())) } else { stored.next() };
    Ok(refused.iter().filter_map(result).collect())
}

/// The database refused a batch: find the jobs it refuses, and store the others (or, all or nothing, none).
async fn enqueue_singly(store: &Inner, jobs: &[NewJob], atomicity: Atomicity) -> Result<Vec<Enqueued>, StoreError> {
    let numbers = names::numbers(store, jobs).await?;
    let lent = store.pool.get().await?;
    let on = On::Own(&lent);
    lent.begin().await?;
    let mut results = Vec::with_capacity(jobs.len());
    let mut is_refused = false;
    for (job, numbers) in jobs.iter().zip(&numbers) {
        on.run("SAVEPOINT item").await?;
        let one = (std::slice::from_ref(job), std::slice::from_ref(numbers));
        match enqueue_on(store, on, one.0, one.1, Atomicity::Each).await {
            Ok(stored) => results.extend(stored),
            Err(StoreError::Invalid(why)) => {
                on.run("ROLLBACK TO SAVEPOINT item").await?;
                is_refused = true;
                results.push(Enqueued::Refused(why));
            }
            Err(error) => return Err(error),
        }
    }
    if is_refused && atomicity == Atomicity::All {
        on.run("ROLLBACK").await?;
        on.run("BEGIN").await?;
        for result in &mut results {
            if matches!(result, Enqueued::Created { .. }) {
                *result = Enqueued::NotStored;
            }
        }
    }
    lent.conclude(Ok(()), Ok(results)).await
}

/// Stores jobs in an open transaction.
pub(in crate::store::postgres) async fn enqueue_on(
    store: &Inner,
    on: On<'_>,
    jobs: &[NewJob],
    numbers: &[Numbers],
    atomicity: Atomicity,
) -> Result<Vec<Enqueued>, StoreError> {
    if jobs.iter().all(|job| job.idempotency.is_none()) {
        let all: Vec<usize> = (0..jobs.len()).collect();
        return Ok(insert(store, on, jobs, numbers, &all).await?.into_iter().map(Enqueued::from).collect());
    }
    let plan = keys::plan(store, on, jobs, atomicity).await?;
    let fresh: Vec<usize> = (0..jobs.len()).filter(|place| plan[*place] == Plan::Store).collect();
    let stored: HashMap<usize, Stored> =
        fresh.iter().copied().zip(insert(store, on, jobs, numbers, &fresh).await?).collect();
    let result = |(place, plan): (usize, Plan)| match plan {
        Plan::Store => stored[&place].into(),
        Plan::Known(known) => known,
        Plan::Like(first) => Enqueued::Existing(stored[&first].id),
        Plan::Unlike(first) => Enqueued::KeyConflict(stored[&first].id),
    };
    Ok(plan.into_iter().enumerate().map(result).collect())
}

/// Inserts the jobs at these places, with their keys and tallies.
pub(in crate::store::postgres) async fn insert(
    store: &Inner,
    on: On<'_>,
    jobs: &[NewJob],
    numbers: &[Numbers],
    places: &[usize],
) -> Result<Vec<Stored>, StoreError> {
    if places.is_empty() {
        return Ok(Vec::new());
    }
    let mut rows = NewRows::default();
    let mut tallies = Tallies::default();
    for place in places {
        rows.push(&jobs[*place], numbers[*place]);
        let enqueued = Tally { enqueued: 1, ..Tally::default() };
        tallies.add(QueueId(numbers[*place].queue), &jobs[*place].kind, enqueued);
    }
    let now = store.fixed();
    let params = at(&now, rows.params());
    let (inserted, ()) = try_join(on.query(Sql::Enqueue, &params), tally(store, on, &tallies)).await?;
    let stored = stored_in(&inserted)?;
    keys::put(on, jobs, places, &stored).await?;
    Ok(stored)
}

/// Counts what this transaction adds.
pub(in crate::store::postgres) async fn tally(store: &Inner, on: On<'_>, tallies: &Tallies) -> Result<(), StoreError> {
    if tallies.is_empty() {
        return Ok(());
    }
    let (mut queues, mut kinds, mut values) = (Vec::new(), Vec::new(), Vec::new());
    for (queue, kind, tally) in tallies.iter() {
        queues.push(queue.0);
        kinds.push(kind.as_str());
        values.extend(tally.values());
    }
    on.query(Sql::Tally, &[&store.fixed(), &queues, &kinds, &values]).await?;
    store.unfolded.wrote(queues.len() as u64);
    Ok(())
}

/// Why a text is refused before the database sees it.
const UNSTORABLE: &str = "Postgres cannot hold a NUL character in a text";

struct Unstorable {
    /// Whether each job is unstorable; empty if none is.
    items: Vec<bool>,
    /// The answer, if the whole batch is refused.
    all: Option<Vec<Enqueued>>,
}

fn refused_at_once(jobs: &[NewJob], atomicity: Atomicity) -> Unstorable {
    let has_nul = |job: &NewJob| {
        let key = job.idempotency.as_ref().map(|idempotency| &*idempotency.key);
        let texts = [key, Some(&*job.payload), job.traceparent.as_deref(), job.limit_key.as_deref()];
        texts.into_iter().flatten().any(|text| text.contains('\0'))
    };
    if !jobs.iter().any(has_nul) {
        return Unstorable { items: Vec::new(), all: None };
    }
    let items: Vec<bool> = jobs.iter().map(has_nul).collect();
    let answer = |no: &bool| if *no { Enqueued::Refused(UNSTORABLE.into()) } else { Enqueued::NotStored };
    let all = (atomicity == Atomicity::All || items.iter().all(|no| *no)).then(|| items.iter().map(answer).collect());
    Unstorable { items, all }
}
