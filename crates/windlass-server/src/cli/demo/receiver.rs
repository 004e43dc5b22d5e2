//! A webhook receiver on this machine: it refuses every call until it is repaired.

use axum::Router;
use axum::extract::State;
use axum::routing::post;
use hyper::StatusCode;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;

/// Listens until it is dropped.
#[derive(Debug)]
pub(super) struct Receiver {
    address: SocketAddr,
    repaired: Arc<AtomicBool>,
    _serving: AbortOnDropHandle<()>,
}

impl Receiver {
    pub(super) async fn open() -> std::io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let repaired = Arc::new(AtomicBool::new(false));
        let router = Router::new().route("/hooks", post(answer)).with_state(repaired.clone());
        let serving = tokio::spawn(async move {
            // Ends when it is dropped; until then it keeps accepting, even after an error.
            let _ = axum::serve(listener, router).await;
        });
        Ok(Self { address, repaired, _serving: AbortOnDropHandle::new(serving) })
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/hooks", self.address)
    }

    pub(super) fn repair(&self) {
        self.repaired.store(true, Ordering::Release);
    }
}

async fn answer(State(repaired): State<Arc<AtomicBool>>) -> (StatusCode, &'static str) {
    if repaired.load(Ordering::Acquire) {
        (StatusCode::NO_CONTENT, "")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "down for maintenance")
    }
}
