//! Expire: jobs that did not start by the time they had to end as failed.

use crate::job::NewJob;
use crate::leases::transition;
use crate::store::postgres::Inner;
use crate::store::postgres::connection::fault::again;
use crate::store::postgres::connection::pool::On;
use crate::store::postgres::life::{commit, names};
use crate::store::postgres::statements::Sql;
use crate::store::postgres::statements::columns::Columns;
use crate::store::{StoreError, Transitioned};
use futures_util::join;
use windlass_core::verdict;

pub(in crate::store::postgres) async fn expire(store: &Inner, limit: u32) -> Result<Vec<Transitioned>, StoreError> {
    again(|| async {
        let lent = store.pool.get().await?;
        let (begun, transitioned) = join!(lent.begin(), expire_on(store, On::Own(&lent), limit));
        lent.conclude(begun, transitioned).await
    })
    .await
}

async fn expire_on(store: &Inner, on: On<'_>, limit: u32) -> Result<Vec<Transitioned>, StoreError> {
    let rows = on.query(Sql::Expired, &[&store.fixed(), &i64::from(limit)]).await?;
    let Some(first) = rows.first() else {
        return Ok(Vec::new());
    };
    let now = Columns::new(first).moment("now")?;
    let mut jobs = names::jobs_in(store, on, &rows).await?;
    jobs.retain(|job| verdict::expires(&job.standing(), now));
    let mut deliveries: Vec<NewJob> = Vec::new();
    let mut transitioned = Vec::new();
    for job in &jobs {
        let (transition, delivery) = transition::ended_waiting(job, transition::EXPIRED, now);
        deliveries.extend(delivery);
        transitioned.push(Transitioned { job: job.clone(), transition, error_class: None, lease: None });
    }
    let numbers = names::numbers(store, &deliveries).await?;
    let endings: Vec<_> = jobs.into_iter().map(|job| (job, transition::EXPIRED)).collect();
    commit::end_waiting(store, on, &endings, &deliveries, &numbers).await?;
    Ok(transitioned)
}
