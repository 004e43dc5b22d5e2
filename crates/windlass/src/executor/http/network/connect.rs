//! The guarded connector: every outgoing connection goes through it. A name is resolved once, every address is checked,
//! only checked addresses are dialled, and the peer is compared with the dialled address. A name server cannot change
//! its answer between check and connect.

use crate::clock::Clock;
use crate::executor::http::fault::{Fault, Phase};
use crate::executor::http::limit::within;
use crate::executor::http::network::dial::Dial;
use crate::executor::http::network::resolve::Resolve;
use crate::executor::http::network::tls;
use crate::executor::http::network::wire::{Gauge, Stream, Wire};
use crate::executor::http::options::HttpOptions;
use crate::executor::http::target::{Denied, Scheme, Target, TargetHost, permits};
use futures_util::future::BoxFuture;
use http::Uri;
use hyper_util::rt::TokioIo;
use ipnet::IpNet;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tower_service::Service;
use windlass_core::Millis;

/// Longest that looking a name up may take.
pub(in crate::executor::http) const RESOLVE_LIMIT: Millis = Millis::from_secs(5);
/// Longest that connecting may take, over all addresses of a name.
pub(in crate::executor::http) const CONNECT_LIMIT: Millis = Millis::from_secs(5);
/// Longest that the TLS handshake may take.
pub(in crate::executor::http) const SECURE_LIMIT: Millis = Millis::from_secs(5);
/// How many of a name's addresses are tried. All of them are checked.
const MAX_DIALS: usize = 4;

/// Opens connections to permitted targets only. Cheap to clone.
#[derive(Clone)]
pub(in crate::executor::http) struct GuardedConnector(Arc<Guard>);

struct Guard {
    egress: crate::executor::http::network::address::Egress,
    deny: Vec<IpNet>,
    resolver: Arc<dyn Resolve>,
    dialer: Arc<dyn Dial>,
    tls: TlsConnector,
    clock: Clock,
    gauge: Gauge,
}

impl GuardedConnector {
    pub(in crate::executor::http) fn new(options: &HttpOptions, clock: Clock, gauge: Gauge) -> Self {
        Self(Arc::new(Guard {
            egress: options.egress.clone(),
            deny: options.deny.clone(),
            resolver: options.resolver.clone(),
            dialer: options.dialer.clone(),
            tls: tls::connector(&options.extra_roots),
            clock,
            gauge,
        }))
    }
}

impl Service<Uri> for GuardedConnector {
    type Response = TokioIo<Wire>;
    type Error = Fault;
    type Future = BoxFuture<'static, Result<TokioIo<Wire>, Fault>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let guard = self.0.clone();
        Box::pin(async move { guard.open(&uri).await.map(TokioIo::new) })
    }
}

impl Guard {
    async fn open(&self, uri: &Uri) -> Result<Wire, Fault> {
        let target = Target::parse(&uri.to_string()).map_err(Fault::bad_call)?;
        let addresses = self.judged(&target).await?;
        let stream = self.dial(&addresses, target.port).await?;
        let stream = match target.scheme {
            Scheme::Http => Stream::Plain(stream),
            Scheme::Https => self.secure(stream, target.host).await?,
        };
        Ok(Wire::new(stream, &self.gauge))
    }

    /// The addresses that may be dialled. One denied address denies them all: a name that mixes public and private
    /// addresses is an attack or a mistake.
    async fn judged(&self, target: &Target) -> Result<Vec<IpAddr>, Fault> {
        target.check(&self.egress, &self.deny)?;
        let addresses = match &target.host {
            TargetHost::Address(address) => vec![*address],
            TargetHost::Name(name) => self.resolve(name).await?,
        };
        if let Some(address) = addresses.iter().find(|address| !permits(&self.egress, &self.deny, **address)) {
            tracing::warn!(host = %target.host_key(), %address, "outgoing call denied");
            return Err(Denied.into());
        }
        Ok(addresses)
    }

    async fn resolve(&self, name: &str) -> Result<Vec<IpAddr>, Fault> {
        let answer = within(&self.clock, RESOLVE_LIMIT, self.resolver.resolve(name))
            .await
            .map_err(|_| Fault::Timeout { phase: Phase::Resolve, after: RESOLVE_LIMIT })?;
        match answer {
            Ok(addresses) if !addresses.is_empty() => {
                Ok(addresses.into_iter().map(|address| address.to_canonical()).collect())
            }
            Ok(_) => Err(Fault::Dns),
            Err(error) => {
                tracing::debug!(host = name, %error, "name not resolved");
                Err(Fault::Dns)
            }
        }
    }

    /// Tries one address after the other. Each gets an equal share of the time, so that a dead address cannot use up
    /// the time of the others.
    async fn dial(&self, addresses: &[IpAddr], port: u16) -> Result<TcpStream, Fault> {
        let tried = &addresses[..addresses.len().min(MAX_DIALS)];
        let share = Millis::new(CONNECT_LIMIT.get() / tried.len().max(1) as u64);
        let mut fault = Fault::Dns;
        for address in tried {
            let address = SocketAddr::new(*address, port);
            fault = match within(&self.clock, share, self.dialer.dial(address)).await {
                Ok(Ok(stream)) => return peer_is(address, stream),
                Ok(Err(error)) => Fault::Connect(error.kind().to_string()),
                Err(_) => Fault::Timeout { phase: Phase::Connect, after: share },
            };
        }
        Err(fault)
    }

    async fn secure(&self, stream: TcpStream, host: TargetHost) -> Result<Stream, Fault> {
        let name = match host {
            TargetHost::Address(address) => ServerName::IpAddress(address.into()),
            TargetHost::Name(name) => ServerName::try_from(name).map_err(|error| Fault::Tls(error.to_string()))?,
        };
        match within(&self.clock, SECURE_LIMIT, self.tls.connect(name, stream)).await {
            Ok(Ok(stream)) => Ok(Stream::Secured(Box::new(stream))),
            Ok(Err(error)) => Err(Fault::Tls(error.to_string())),
            Err(_) => Err(Fault::Timeout { phase: Phase::Secure, after: SECURE_LIMIT }),
        }
    }
}

/// The peer must be the checked address. Rules of the host's network may redirect a connection.
fn peer_is(address: SocketAddr, stream: TcpStream) -> Result<TcpStream, Fault> {
    let peer = stream.peer_addr().map_err(|error| Fault::Connect(error.kind().to_string()))?;
    if peer.ip().to_canonical() == address.ip() && peer.port() == address.port() {
        Ok(stream)
    } else {
        tracing::warn!(%address, %peer, "outgoing call reached a different address than the one dialled");
        Err(Denied.into())
    }
}
