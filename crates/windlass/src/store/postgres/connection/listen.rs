//! Wake-ups across processes: a listener with a connection of its own, and a debounced notifier. They are hints: where
//! a pooler drops them, workers poll.

use crate::store::postgres::Inner;
use crate::store::postgres::statements::Sql;
use crate::store::postgres::statements::texts::channel;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

/// At least this long between two notifications of one process.
const DEBOUNCE: Duration = Duration::from_millis(75);
/// How long to wait before the listener connects again.
const RECONNECT: Duration = Duration::from_secs(1);
/// How long a notification to this process may take.
const TEST: Duration = Duration::from_secs(3);

/// The tasks; they end when this is dropped.
pub(in crate::store::postgres) fn tasks(inner: &Arc<Inner>) -> Vec<AbortOnDropHandle<()>> {
    let listener = tokio::spawn(listen(inner.clone()));
    let notifier = tokio::spawn(notify(inner.clone()));
    vec![AbortOnDropHandle::new(listener), AbortOnDropHandle::new(notifier)]
}

async fn notify(inner: Arc<Inner>) {
    loop {
        inner.news.notified().await;
        send(&inner).await;
        tokio::time::sleep(DEBOUNCE).await;
    }
}

/// Wakes the fleet. A lost notification only costs latency.
async fn send(inner: &Inner) {
    if let Ok(lent) = inner.pool.get().await
        && let Err(error) = lent.query(Sql::Notify, &[]).await
    {
        tracing::debug!(%error, "a wake-up could not be sent");
    }
}

async fn listen(inner: Arc<Inner>) {
    let mut is_tested = false;
    loop {
        let (notified, mut notifications) = mpsc::channel(1);
        match open(&inner, notified).await {
            Ok(_link) => {
                if !is_tested {
                    send(&inner).await;
                    if tokio::time::timeout(TEST, notifications.recv()).await.is_err() {
                        tracing::warn!("notifications do not arrive (a pooler?): workers poll for work");
                        return;
                    }
                    is_tested = true;
                }
                // A notification may have been missed while nobody listened.
                inner.wake.ring();
                // The channel closes with the connection.
                while notifications.recv().await.is_some() {
                    inner.wake.ring();
                }
            }
            Err(error) => tracing::debug!(%error, "the listener cannot connect"),
        }
        tokio::time::sleep(RECONNECT).await;
    }
}

async fn open(
    inner: &Inner,
    notified: mpsc::Sender<()>,
) -> Result<crate::store::postgres::connection::connect::Link, crate::store::StoreError> {
    let link = inner.pool.connector().connect(Some(notified)).await?;
    let statement = format!("LISTEN \"{}\"", channel(inner.pool.texts().schema()));
    link.client.batch_execute(&statement).await.map_err(crate::store::postgres::connection::fault::before)?;
    Ok(link)
}
