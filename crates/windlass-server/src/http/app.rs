//! What every handler shares: the store, and short-lived copies of what it says about tokens and settings.

use super::cached::Cached;
use super::events::Streams;
use super::output::problem::Problem;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use windlass::Random;
use windlass::Windlass;
use windlass::client::Token;
use windlass::protocol::Catalogue;
use windlass::remote::Remote;
use windlass::{Metrics, TenantLabel};
use windlass_core::{Millis, Timestamp};

/// Copies older than this are fetched anew, by one caller while the others go on with the old one.
const REFRESH_AFTER: Millis = Millis::from_secs(1);
/// No copy older than this is used: a revoked token is refused everywhere within this time.
const STALE_AFTER: Millis = Millis::from_secs(5);

/// Who may call without a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Anyone, until the first token is made: the server listens on loopback.
    OpenUntilFirstToken,
    /// Nobody.
    TokensOnly,
}

/// The shared state of all handlers. Clones are the same.
#[derive(Debug, Clone)]
pub(crate) struct App(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    windlass: Windlass,
    access: Access,
    allowed_hosts: Vec<String>,
    tokens: Cached<Tokens>,
    remote: Remote,
    streams: Streams,
    metrics: Metrics,
    draining: CancellationToken,
}

/// The tokens there are.
#[derive(Debug)]
pub(crate) struct Tokens {
    all: Vec<Token>,
    access: Access,
}

impl Tokens {
    /// Whether anyone may call. One token, even a revoked one, ends that for good: revoking the last token must not open
    /// the door.
    pub(crate) fn is_open(&self) -> bool {
        self.access == Access::OpenUntilFirstToken && self.all.is_empty()
    }

    pub(crate) fn find(&self, id: &str) -> Option<&Token> {
        self.all.iter().find(|token| token.id == id)
    }
}

impl App {
    pub(crate) fn new(windlass: Windlass, access: Access, allowed_hosts: Vec<String>, tenants: TenantLabel) -> Self {
        let clock = windlass.clock().clone();
        let metrics = Metrics::with_tenants(&windlass, tenants);
        Self(Arc::new(Shared {
            remote: windlass.remote(),
            windlass,
            access,
            allowed_hosts,
            tokens: Cached::new(clock, REFRESH_AFTER, STALE_AFTER),
            streams: Streams::default(),
            metrics,
            draining: CancellationToken::new(),
        }))
    }

    pub(crate) fn windlass(&self) -> &Windlass {
        &self.0.windlass
    }

    pub(crate) fn random(&self) -> &Random {
        self.0.windlass.random()
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.windlass().clock().now()
    }

    pub(crate) fn allowed_hosts(&self) -> &[String] {
        &self.0.allowed_hosts
    }

    /// Serves workers outside this process.
    pub(crate) fn remote(&self) -> &Remote {
        &self.0.remote
    }

    pub(crate) fn streams(&self) -> &Streams {
        &self.0.streams
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    /// Cancelled when the server stops: waiting requests end at once.
    pub(crate) fn draining(&self) -> &CancellationToken {
        &self.0.draining
    }

    /// # Errors
    /// The store cannot be asked.
    pub(crate) async fn tokens(&self) -> Result<Arc<Tokens>, Problem> {
        self.0.tokens.get(async || self.load_tokens().await).await
    }

    /// The tokens as they are now, for a caller with one that is not known yet.
    ///
    /// # Errors
    /// The store cannot be asked.
    pub(crate) async fn newest_tokens(&self) -> Result<Arc<Tokens>, Problem> {
        self.0.tokens.newest(async || self.load_tokens().await).await
    }

    async fn load_tokens(&self) -> Result<Tokens, Problem> {
        Ok(Tokens { all: self.windlass().tokens().list().await?, access: self.0.access })
    }

    /// # Errors
    /// The store cannot be asked.
    pub(crate) async fn catalogue(&self) -> Result<Arc<Catalogue>, Problem> {
        Ok(self.windlass().catalogue().await?)
    }
}
