//! Options of the HTTP executor, with their defaults and the reasons for them.

use super::network::address::Egress;
use super::network::dial::{Dial, TcpDial};
use super::network::resolve::{Resolve, SystemResolver};
use ipnet::IpNet;
use std::sync::Arc;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use windlass_core::Millis;
use windlass_core::slots::SlotShares;

/// Calls under way to one host: enough to keep it busy, too few to overload it.
pub const DEFAULT_CALLS_PER_HOST: usize = 32;
/// Calls under way in all.
pub const DEFAULT_CALLS: usize = 512;
/// Longest that a call may take, from connecting to the end of the answer.
pub const DEFAULT_TIMEOUT: Millis = Millis::from_secs(30);
/// Longest that a call waits for its slot. After that, other calls are served first.
pub const DEFAULT_SLOT_WAIT: Millis = Millis::from_secs(30);

/// How outgoing calls are made.
#[derive(Debug, Clone)]
pub struct HttpOptions {
    /// Which networks calls may reach.
    pub egress: Egress,
    /// Networks that calls never reach, whatever `egress` says: the server's own addresses, its database.
    pub deny: Vec<IpNet>,
    /// Calls under way to one host.
    pub calls_per_host: usize,
    /// Calls under way in all.
    pub calls: usize,
    /// How much of a worker's slots one tenant and one host may hold.
    pub shares: SlotShares,
    /// For jobs without a timeout of their own.
    pub default_timeout: Millis,
    /// Longest wait for a slot; not part of the call's timeout.
    pub slot_wait: Millis,
    /// The `User-Agent` of calls.
    pub user_agent: String,
    /// Certificate authorities trusted in addition to the public ones.
    pub extra_roots: Vec<CertificateDer<'static>>,
    /// Looks names up; the operating system by default.
    pub resolver: Arc<dyn Resolve>,
    /// Opens connections; TCP by default.
    pub dialer: Arc<dyn Dial>,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            egress: Egress::Public,
            deny: Vec::new(),
            calls_per_host: DEFAULT_CALLS_PER_HOST,
            calls: DEFAULT_CALLS,
            shares: SlotShares::default(),
            default_timeout: DEFAULT_TIMEOUT,
            slot_wait: DEFAULT_SLOT_WAIT,
            user_agent: concat!("windlass/", env!("CARGO_PKG_VERSION")).into(),
            extra_roots: Vec::new(),
            resolver: Arc::new(SystemResolver::default()),
            dialer: Arc::new(TcpDial),
        }
    }
}

impl HttpOptions {
    /// Trusts the certificate authorities in a PEM file. Returns how many there were.
    ///
    /// # Errors
    /// The text is not PEM, or holds no certificate.
    pub fn trust(&mut self, pem: &[u8]) -> Result<usize, RootsError> {
        let roots: Vec<_> =
            CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>().map_err(|_| RootsError::NotPem)?;
        if roots.is_empty() {
            return Err(RootsError::Empty);
        }
        let count = roots.len();
        self.extra_roots.extend(roots);
        Ok(count)
    }
}

/// Not a list of certificate authorities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RootsError {
    /// It is not in PEM form.
    #[error("the certificates are not in PEM form")]
    NotPem,
    /// There is no certificate in it.
    #[error("the PEM text holds no certificate")]
    Empty,
}
