//! Wake-ups across processes: a listener with a connection of its own, and a debounced notifier. They are hints: where
//! a pooler drops them, workers poll.

use crate::store::StoreError;
use crate::store::postgres::Inner;
use crate::store::postgres::connection::connect::Link;
use crate::store::postgres::connection::contact;
use crate::store::postgres::connection::fault::before;
use crate::store::postgres::connection::pool::Source;
use crate::store::postgres::statements::Sql;
use crate::store::postgres::statements::texts::channel;
use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
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
    let contact = tokio::spawn(contact::watch(inner.clone()));
    let listener = tokio::spawn(listen(inner.clone()));
    let notifier = tokio::spawn(notify(inner.clone()));
    [listener, notifier, contact].map(AbortOnDropHandle::new).into()
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
        match Listener::open(&inner).await {
            Ok(Some(mut listener)) => {
                if !is_tested {
                    send(&inner).await;
                    if tokio::time::timeout(TEST, listener.next()).await.is_err() {
                        tracing::warn!("notifications do not arrive (a pooler?): workers poll for work");
                        return;
                    }
                    is_tested = true;
                }
                // A notification may have been missed while nobody listened.
                inner.wake.ring();
                // `None` comes with the end of the connection.
                while listener.next().await.is_some() {
                    inner.wake.ring();
                }
            }
            // The caller's pool cannot listen.
            Ok(None) => return,
            Err(error) => tracing::debug!(%error, "the listener cannot connect"),
        }
        tokio::time::sleep(RECONNECT).await;
    }
}

enum Listener {
    Own { notifications: mpsc::Receiver<()>, _link: Link },
    Callers(BoxStream<'static, ()>),
}

impl Listener {
    async fn open(inner: &Inner) -> Result<Option<Self>, StoreError> {
        let channel = channel(inner.pool.texts().schema());
        match inner.pool.source() {
            Source::Own(connector) => {
                let (notified, notifications) = mpsc::channel(1);
                let link = connector.connect(Some(notified)).await?;
                link.server().await?;
                let listening = format!("LISTEN \"{channel}\"");
                link.asking(link.client.batch_execute(&listening)).await.map_err(before)?;
                Ok(Some(Self::Own { notifications, _link: link }))
            }
            Source::Callers(pool) => {
                Ok(pool.listen(&channel).await.map_err(StoreError::unavailable)?.map(Self::Callers))
            }
        }
    }

    async fn next(&mut self) -> Option<()> {
        match self {
            Self::Own { notifications, .. } => notifications.recv().await,
            Self::Callers(stream) => stream.next().await,
        }
    }
}
