//! Stats: sums over windows, by queue, kind and tenant.

use super::world;
use crate::client;
use crate::world::{job, job_in, tenant};
use windlass::client::Scope;
use windlass::core::Millis;
use windlass::low_level::job::NewJob;

const MINUTE: Millis = Millis::from_secs(60);
const HOUR: Millis = Millis::from_secs(3600);

#[tokio::test]
async fn windows_count_what_happened_in_them() {
    let w = world().await;
    let windlass = client(&w);
    w.put(job_in("old")).await;
    w.advance(Millis::from_secs(600));
    w.put_all(vec![job(), NewJob { tenant: tenant("shop"), ..job() }]).await;
    let claimed = w.claim_one().await;
    w.fail(&claimed).await;
    w.advance(Millis::from_secs(10));
    let claimed = w.claim_one().await;
    w.succeed(&claimed).await;

    let windows = windlass.stats().windows(&[MINUTE, HOUR]).await.unwrap();
    let [minute, hour] = &windows[..] else { panic!("{windows:?}") };
    assert_eq!((minute.span, minute.total.enqueued, hour.total.enqueued), (MINUTE, 2, 3));
    assert_eq!((minute.queues.len(), hour.queues["old"].enqueued), (1, 1));
    assert_eq!((minute.tenants["shop"].enqueued, minute.kinds["email"].enqueued), (1, 2));
    let total = minute.total;
    assert_eq!((total.attempts, total.retries, total.succeeded, total.successful_retries), (2, 1, 1, 1));
    assert_eq!((total.retry_success_rate(), total.retry_rate()), (Some(1.0), Some(1.0)));
    assert_eq!(total.mean_backoff_ms(), Some(10_000.0));
    assert_eq!(hour.queues["old"].retry_success_rate(), None);

    let shop = windlass.stats().within(&Scope::Tenant(tenant("shop"))).over(HOUR).await.unwrap();
    assert_eq!((shop.total.enqueued, shop.total.attempts), (1, 0));
    let rows = windlass.stats().by_queue_and_kind(HOUR).await.unwrap();
    assert_eq!(rows.iter().map(|(_, _, tally)| tally.enqueued).sum::<i64>(), 3);
}
