//! The Faktory protocol: existing Faktory clients and workers in any language, on the same leases, ledger, policies and
//! dead letters as every other job. It translates; the client and `remote` decide.

mod command;
mod fetch;
mod finish;
mod hello;
mod info;
mod lines;
mod listen;
mod mutate;
mod outage;
mod push;
mod queues;
mod reply;
mod session;
#[cfg(test)]
mod tests;
mod tls;
mod wire;
mod workers;

pub(crate) use workers::{Connected, Signal, Workers};

use crate::config::Config;
use anyhow::{Context as _, bail};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use windlass::remote::Remote;
use windlass::{Clock, Windlass};
use windlass_core::Millis;

/// A job as `PUSH` takes it, in this queue, for jobs that come another way.
///
/// # Errors
/// The field that is wrong, and what is accepted.
pub(crate) fn pushed(
    text: &str,
    queue: &windlass_core::job::QueueName,
    catalogue: &windlass::protocol::Catalogue,
) -> Result<windlass::protocol::Draft, String> {
    wire::draft(&wire::WireJob::read(text)?.in_queue(queue), catalogue)
}

/// How the protocol is offered.
#[derive(Clone)]
pub(crate) struct Options {
    password: Option<String>,
    allow_flush: bool,
    max_connections: usize,
}

/// Leaves out the password, because debug output may end up in a log.
impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options").field("allow_flush", &self.allow_flush).finish_non_exhaustive()
    }
}

/// A bound listener.
pub(crate) struct Faktory {
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    options: Options,
}

impl Faktory {
    /// Binds the configured address; `None` if there is none.
    ///
    /// # Errors
    /// The address is taken, would be open to everyone, or the TLS files cannot be used.
    pub(crate) fn bind(config: &Config) -> anyhow::Result<Option<Self>> {
        if config.text("faktory.listen").is_empty() {
            return Ok(None);
        }
        let address: SocketAddr = config
            .text("faktory.listen")
            .parse()
            .context("faktory.listen must be an address such as 127.0.0.1:7419")?;
        let password = Some(config.text("faktory.password").to_owned()).filter(|password| !password.is_empty());
        if !address.ip().is_loopback() && password.is_none() {
            bail!("{address} can be reached from other machines: set faktory.password, or listen on 127.0.0.1");
        }
        let (certificate, key) = (config.text("faktory.tlsCertificate"), config.text("faktory.tlsKey"));
        let tls = match (certificate.is_empty(), key.is_empty()) {
            (true, true) => None,
            (false, false) => Some(tls::acceptor(Path::new(certificate), Path::new(key))?),
            (true, false) | (false, true) => bail!("give both faktory.tlsCertificate and faktory.tlsKey, or neither"),
        };
        let listener = crate::http::connection::listen::bind(address);
        let listener = listener.with_context(|| format!("cannot listen on {address}"))?;
        let options = Options {
            password,
            allow_flush: config.flag("faktory.allowFlush"),
            max_connections: config.whole("faktory.maxConnections") as usize,
        };
        Ok(Some(Self { listener, tls, options }))
    }

    /// # Errors
    /// The socket is not bound.
    pub(crate) fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until `stop`.
    pub(crate) async fn serve(
        self,
        windlass: Windlass,
        remote: Remote,
        workers: Workers,
        stop: CancellationToken,
        grace: Duration,
    ) {
        let counters = Arc::new(Counters::new(windlass.clock()));
        let shared = session::Shared { windlass, remote, workers, options: Arc::new(self.options), counters };
        listen::serve(self.listener, self.tls, shared, stop, grace).await;
    }
}

/// Counts for INFO.
#[derive(Debug)]
struct Counters {
    began: Millis,
    commands: AtomicU64,
    connections: AtomicU64,
}

/// An open connection; counted until it is dropped.
struct Open(Arc<Counters>);

impl Counters {
    fn new(clock: &Clock) -> Self {
        Self { began: clock.monotonic(), commands: AtomicU64::new(0), connections: AtomicU64::new(0) }
    }

    fn command(&self) {
        self.commands.fetch_add(1, Ordering::Relaxed);
    }

    fn commands(&self) -> u64 {
        self.commands.load(Ordering::Relaxed)
    }

    fn connections(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }

    fn uptime(&self, clock: &Clock) -> Millis {
        clock.monotonic() - self.began
    }

    fn open(self: &Arc<Self>) -> Open {
        self.connections.fetch_add(1, Ordering::Relaxed);
        Open(self.clone())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}
