//! Waiting for the database when a node starts: the process is alive and not ready, and everything else is refused.
//! What no waiting will change (a wrong password, a database that does not exist) ends the process at once.

use crate::config::Config;
use crate::http;
use crate::http::connection::listen::{self, Limits};
use crate::serve::{Api, open};
use anyhow::Context as _;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use windlass::{Clock, OpenError, StoreError, Windlass};
use windlass_core::Millis;

/// The pause between two tries.
const PAUSE: Millis = Millis::new(500);
/// How often the log says that the node still waits.
const REMIND_EVERY: Millis = Millis::from_secs(60);
/// How long requests that are being refused may take when the wait is over.
const GRACE: Duration = Duration::from_secs(1);

/// Whether a node waits for a database that cannot be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    Yes,
    No,
}

/// Opens the store, and the listener if the node had to wait.
///
/// # Errors
/// The store cannot be used, and waiting is not allowed or would not help; or the address is taken.
pub(super) async fn open_store(
    config: &Config,
    api: Api,
    wait: Wait,
) -> anyhow::Result<(Windlass, Option<TcpListener>)> {
    let error = match open(config).await {
        Ok(windlass) => return Ok((windlass, None)),
        Err(error) if wait == Wait::No || !may_pass(config, &error) => return Err(error),
        Err(error) => error,
    };
    tracing::warn!("{error:#}: waiting for it (--no-wait exits instead)");
    let opened = CancellationToken::new();
    let opening = async {
        let windlass = keep_trying(config).await;
        opened.cancel();
        windlass
    };
    let Api::On = api else { return Ok((opening.await?, None)) };
    let (ours, theirs) = bind(config)?;
    if let Ok(address) = ours.local_addr() {
        tracing::info!("http://{address} answers health checks meanwhile");
    }
    let limits = Limits {
        connections: config.whole("maxConnections") as usize,
        of_address: config.percent("addressShare"),
        of_token: config.percent("tokenShare"),
    };
    let answering = listen::serve(theirs, http::waiting(), Clock::system(), limits, opened.clone(), GRACE);
    let ((), windlass) = tokio::join!(answering, opening);
    Ok((windlass?, Some(ours)))
}

/// The same socket twice, so that it stays open when the wait is over.
fn bind(config: &Config) -> anyhow::Result<(TcpListener, TcpListener)> {
    let address: SocketAddr = config.text("listen").parse().context("listen")?;
    let listener = listen::bind(address).with_context(|| format!("cannot listen on {address}"))?.into_std()?;
    let again = listener.try_clone()?;
    Ok((TcpListener::from_std(listener)?, TcpListener::from_std(again)?))
}

async fn keep_trying(config: &Config) -> anyhow::Result<Windlass> {
    let clock = Clock::system();
    let mut reminded = clock.monotonic();
    loop {
        clock.sleep(PAUSE).await;
        match open(config).await {
            Ok(windlass) => {
                tracing::info!("the store is there after {}", clock.monotonic());
                return Ok(windlass);
            }
            Err(error) if !may_pass(config, &error) => return Err(error),
            Err(error) => {
                let now = clock.monotonic();
                if now - reminded >= REMIND_EVERY {
                    reminded = now;
                    tracing::warn!("{error:#}: still waiting, for {now} so far");
                }
            }
        }
    }
}

/// Whether the store may be reached later without anybody changing this node's settings.
fn may_pass(config: &Config, error: &anyhow::Error) -> bool {
    let is_server = config.text("store").starts_with("postgres");
    is_server && matches!(error.downcast_ref(), Some(OpenError::Store(StoreError::Unavailable(_))))
}
