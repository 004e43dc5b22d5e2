//! The accept loop. It bounds the connections, and ends them when the server stops.

use super::session::{self, Shared};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How long to wait after the system refused to accept a connection (out of file descriptors).
const AFTER_REFUSAL: Duration = Duration::from_millis(50);
/// How long a client may take for the TLS handshake.
const TLS_TIMEOUT: Duration = Duration::from_secs(10);

/// Serves until `stop`. A command under way may finish within `grace`.
pub(super) async fn serve(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    shared: Shared,
    stop: CancellationToken,
    grace: Duration,
) {
    let slots = Arc::new(Semaphore::new(shared.options.max_connections));
    let connections = TaskTracker::new();
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, _)) = accepted else {
            tokio::time::sleep(AFTER_REFUSAL).await;
            continue;
        };
        // Beyond the limit a connection is closed at once: its client tries again.
        let Ok(slot) = slots.clone().try_acquire_owned() else { continue };
        connections.spawn(connection(stream, tls.clone(), shared.clone(), stop.clone(), slot));
    }
    drop(listener);
    connections.close();
    if tokio::time::timeout(grace, connections.wait()).await.is_err() {
        tracing::warn!(open = connections.len(), "Faktory connections were still open at the end of the grace time");
    }
}

async fn connection(
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    shared: Shared,
    stop: CancellationToken,
    _slot: OwnedSemaphorePermit,
) {
    // Replies are small and clients wait for them. If this cannot be set, the socket is about to fail anyway.
    let _ = stream.set_nodelay(true);
    let _open = shared.counters.open();
    let serve = async {
        match tls {
            None => session::run(stream, shared).await,
            Some(tls) => match tokio::time::timeout(TLS_TIMEOUT, tls.accept(stream)).await {
                Ok(Ok(stream)) => session::run(stream, shared).await,
                Ok(Err(_)) | Err(_) => Ok(()),
            },
        }
    };
    tokio::select! {
        ended = serve => {
            if let Err(error) = ended {
                tracing::debug!(%error, "a Faktory connection ended");
            }
        }
        // Nothing that was acknowledged is lost: what runs stays reserved, and clients connect again.
        () = stop.cancelled() => {}
    }
}
