//! The state shared by all handlers: the store, and short-lived copies of its tokens and settings.

use super::cached::Cached;
use super::output::problem::Problem;
use super::shares::Shares;
use crate::dashboard::{Live, Operations};
use crate::faktory::Workers;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use windlass::Metrics;
use windlass::Random;
use windlass::Windlass;
use windlass::alert::Operator;
use windlass::client::{Health, Session, Token};
use windlass::protocol::Catalogue;
use windlass::remote::Remote;
use windlass_core::{Millis, Timestamp};

/// A copy older than this is loaded again by one caller; the others use the old copy in the meantime.
const REFRESH_AFTER: Millis = Millis::from_secs(1);
/// A copy older than this is not used. A revoked token is therefore refused everywhere within this time.
const STALE_AFTER: Millis = Millis::from_secs(5);
/// The store is probed at most this often, however many ask for it.
const PROBE_EVERY: Millis = Millis::from_secs(1);

/// Who may call without a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Anyone, until the first token is created: the server listens on loopback.
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
    faktory: Workers,
    shares: Shares,
    health: Cached<Health>,
    metrics: Metrics,
    draining: CancellationToken,
    base_path: String,
    operators: Vec<Operator>,
    live: Live,
    operations: Operations,
}

/// Where the server is reached.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    /// Who may call without a token.
    pub(crate) access: Access,
    /// Host names of browsers, besides localhost.
    pub(crate) allowed_hosts: Vec<String>,
    /// Before every path, behind a proxy: empty, or `/name`.
    pub(crate) base_path: String,
    /// Who is notified of alerts.
    pub(crate) operators: Vec<Operator>,
}

impl Place {
    /// At the root, under the names of this machine.
    pub(crate) fn new(access: Access) -> Self {
        Self { access, allowed_hosts: Vec::new(), base_path: String::new(), operators: Vec::new() }
    }
}

/// All existing tokens, and the browsers that have signed in with them.
#[derive(Debug)]
pub(crate) struct Tokens {
    all: Vec<Token>,
    sessions: Vec<Session>,
    access: Access,
}

impl Tokens {
    /// Whether anyone may call. This ends with the first token, even if it is revoked later: revoking the last token
    /// must not give access to everyone.
    pub(crate) fn is_open(&self) -> bool {
        self.access == Access::OpenUntilFirstToken && self.all.is_empty()
    }

    /// Browsers that have signed in.
    pub(crate) fn sessions(&self) -> &[Session] {
        &self.sessions
    }

    pub(crate) fn find(&self, id: &str) -> Option<&Token> {
        self.all.iter().find(|token| token.id == id)
    }
}

impl App {
    /// With metrics of its own.
    pub(crate) fn new(windlass: Windlass, place: Place) -> Self {
        let metrics = Metrics::new(&windlass);
        Self::with_metrics(windlass, place, metrics)
    }

    /// With the metrics of this process.
    pub(crate) fn with_metrics(windlass: Windlass, place: Place, metrics: Metrics) -> Self {
        let clock = windlass.clock().clone();
        Self(Arc::new(Shared {
            remote: windlass.remote(),
            windlass,
            access: place.access,
            allowed_hosts: place.allowed_hosts,
            base_path: place.base_path,
            operators: place.operators,
            live: Live::default(),
            operations: Operations::default(),
            health: Cached::new(clock.clone(), PROBE_EVERY, STALE_AFTER),
            tokens: Cached::new(clock, REFRESH_AFTER, STALE_AFTER),
            faktory: Workers::default(),
            shares: Shares::default(),
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

    /// Before every path of a link: empty, or `/name`.
    pub(crate) fn base_path(&self) -> &str {
        &self.0.base_path
    }

    /// Who is notified of alerts.
    pub(crate) fn operators(&self) -> &[Operator] {
        &self.0.operators
    }

    /// Refuses a rule that notifies operators whom this node does not know. A node that knows nobody accepts all names.
    ///
    /// # Errors
    /// The unknown name, and those that are known.
    pub(crate) fn check_notified(&self, fields: &serde_json::Map<String, serde_json::Value>) -> Result<(), String> {
        let named = fields.get("notify").and_then(serde_json::Value::as_array).into_iter().flatten();
        crate::config::check_notified(named.filter_map(serde_json::Value::as_str), self.operators())
    }

    /// The pages that browsers watch.
    pub(crate) fn live(&self) -> &Live {
        &self.0.live
    }

    /// Long actions that the dashboard started.
    pub(crate) fn operations(&self) -> &Operations {
        &self.0.operations
    }

    /// Serves workers outside this process.
    pub(crate) fn remote(&self) -> &Remote {
        &self.0.remote
    }

    /// The workers connected by the Faktory protocol.
    pub(crate) fn faktory(&self) -> &Workers {
        &self.0.faktory
    }

    /// What tokens and tenants keep open.
    pub(crate) fn shares(&self) -> &Shares {
        &self.0.shares
    }

    /// The state of the store. Callers share one probe, because it writes: strangers may ask.
    ///
    /// # Errors
    /// The store cannot be used.
    pub(crate) async fn health(&self) -> Result<Arc<Health>, Problem> {
        self.0.health.get(async || Ok(self.windlass().health().await?)).await
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    /// Cancelled when the server stops, so that waiting requests end at once.
    pub(crate) fn draining(&self) -> &CancellationToken {
        &self.0.draining
    }

    /// # Errors
    /// The store cannot be read.
    pub(crate) async fn tokens(&self) -> Result<Arc<Tokens>, Problem> {
        self.0.tokens.get(async || self.load_tokens().await).await
    }

    /// Whether anyone may call. While the store cannot be read, the last copy counts however old it is: what it closed
    /// never opens again.
    pub(crate) async fn is_open(&self) -> bool {
        if self.0.access == Access::TokensOnly {
            return false;
        }
        let known = self.tokens().await.ok().or_else(|| self.0.tokens.last());
        known.is_none_or(|tokens| tokens.is_open())
    }

    /// The current tokens, for a caller whose token is not in the copy yet.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(crate) async fn newest_tokens(&self) -> Result<Arc<Tokens>, Problem> {
        self.0.tokens.newest(async || self.load_tokens().await).await
    }

    async fn load_tokens(&self) -> Result<Tokens, Problem> {
        let all = self.windlass().tokens().list().await?;
        // Without tokens nobody can have signed in.
        let sessions = if all.is_empty() { Vec::new() } else { self.windlass().sessions().list().await? };
        Ok(Tokens { all, sessions, access: self.0.access })
    }

    /// # Errors
    /// The store cannot be read.
    pub(crate) async fn catalogue(&self) -> Result<Arc<Catalogue>, Problem> {
        Ok(self.windlass().catalogue().await?)
    }
}
