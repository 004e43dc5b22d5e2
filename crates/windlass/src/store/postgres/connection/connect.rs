//! Connecting: URL or `PG*` variables, TLS, and the task that drives a connection and receives its notices.

use crate::store::StoreError;
use crate::store::postgres::connection::contact::{Contact, LinkState, SILENCE};
use crate::store::postgres::connection::fault::{away, before, message};
use crate::store::postgres::connection::hosts;
use crate::store::postgres::connection::pooler::{Prepared, first, is_direct};
use crate::store::postgres::connection::tls::{Tls, tls_for};
use futures_util::{FutureExt as _, join};
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_postgres::config::SslMode;
use tokio_postgres::{AsyncMessage, Client, Config, NoTls};
use tokio_util::task::AbortOnDropHandle;
use windlass_core::Millis;

/// How long each host has to accept a connection, unless the URL says otherwise.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// Data that the server's machine does not acknowledge within this time ends the connection, and so do unanswered
/// probes of an idle one.
const TCP_TIMEOUT: Duration = Duration::from_secs(10);
const KEEPALIVE: (Duration, Duration, u32) = (Duration::from_secs(5), Duration::from_secs(2), 3);
/// What `silence` may be in the URL.
const SHORTEST_SILENCE: Millis = Millis::from_secs(1);
const LONGEST_SILENCE: Millis = Millis::from_secs(600);
/// Names the server process.
const SERVER: &str = "SELECT pg_postmaster_start_time()::text";

/// A warning at COMMIT: the wait for synchronous replication was cancelled. The commit holds on this server, perhaps
/// not on the standby.
const SYNC_WAIT_CANCELLED: &str = "01000";

/// How to reach the database.
#[derive(Clone)]
pub(in crate::store::postgres) struct Connector {
    /// One for each host.
    hosts: Vec<Config>,
    /// The host that accepted the last connection is tried first.
    last: Arc<AtomicUsize>,
    tls: Option<Tls>,
    prepared: Prepared,
    contact: Arc<Contact>,
}

impl std::fmt::Debug for Connector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Not the config: it holds the password.
        f.debug_struct("Connector")
            .field("hosts", &self.hosts.iter().map(Config::get_hosts).collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

/// An open connection, driven until it is dropped.
#[derive(Debug)]
pub(in crate::store::postgres) struct Link {
    pub(in crate::store::postgres) client: Client,
    /// Set when the server warned that a commit may not be durable.
    pub(in crate::store::postgres) warned: Arc<AtomicBool>,
    /// Which of the hosts it leads to.
    host: usize,
    state: Arc<LinkState>,
    _driver: AbortOnDropHandle<()>,
}

impl Link {
    /// Sends something to the server. Meanwhile the server is watched.
    pub(in crate::store::postgres) async fn asking<T>(&self, work: impl Future<Output = T>) -> T {
        let _under_way = self.state.ask();
        work.await
    }

    /// Asks which server process this is, behind which host.
    pub(in crate::store::postgres) async fn server(&self) -> Result<String, StoreError> {
        let answers = self.asking(self.client.simple_query(SERVER)).await.map_err(before)?;
        let server = format!("{} {}", self.host, first(&answers).unwrap_or_default());
        self.state.is_of(server.clone());
        Ok(server)
    }
}

impl Connector {
    /// # Errors
    /// [`StoreError::Invalid`] if the URL or a variable cannot be read.
    pub(in crate::store::postgres) fn new(url: &str) -> Result<Self, StoreError> {
        let Target { mut config, root, prepared, silence } = read(url)?;
        let limit = config.get_connect_timeout().copied().unwrap_or(CONNECT_TIMEOUT);
        config.connect_timeout(limit);
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(TCP_TIMEOUT);
        }
        if config.get_keepalives_interval().is_none() {
            let (idle, interval, retries) = KEEPALIVE;
            config.keepalives_idle(idle).keepalives_interval(interval).keepalives_retries(retries);
        }
        if config.get_application_name().is_none() {
            config.application_name("windlass");
        }
        let tls = tls_for(config.get_ssl_mode(), root.as_deref())?;
        let (hosts, last) = (hosts::each(&config), Arc::default());
        Ok(Self { hosts, last, tls, prepared, contact: Contact::new(silence.unwrap_or(SILENCE)) })
    }

    pub(in crate::store::postgres) fn contact(&self) -> &Arc<Contact> {
        &self.contact
    }

    /// Whether a connection goes straight to the server, and whether statements may be prepared on it.
    pub(in crate::store::postgres) async fn prepares(&self, link: &Link) -> Result<(bool, bool), StoreError> {
        let (is_direct, server) = join!(link.asking(is_direct(&link.client)), link.server());
        server?;
        let is_direct = is_direct.map_err(before)?;
        Ok((is_direct, self.prepared.is_on(is_direct)))
    }

    /// Opens a connection. Notifications go to `notified`, if given.
    pub(in crate::store::postgres) async fn connect(
        &self,
        notified: Option<mpsc::Sender<()>>,
    ) -> Result<Link, StoreError> {
        let limit = self.hosts.first().and_then(Config::get_connect_timeout).copied();
        self.connect_within(notified, limit.unwrap_or(CONNECT_TIMEOUT)).await
    }

    pub(in crate::store::postgres) fn has_one_host(&self) -> bool {
        self.hosts.len() == 1
    }

    /// The same, with so much time for each host.
    pub(in crate::store::postgres) async fn connect_within(
        &self,
        notified: Option<mpsc::Sender<()>>,
        limit: Duration,
    ) -> Result<Link, StoreError> {
        let (count, last) = (self.hosts.len().max(1), self.last.load(Ordering::Relaxed));
        let attempts = (0..self.hosts.len()).map(|nth| {
            let (at, notified) = ((last + nth) % count, notified.clone());
            let connecting = tokio::time::timeout(limit, self.connect_to(at, notified));
            let late = || StoreError::unavailable("no connection to Postgres in time");
            async move { Ok((at, connecting.await.map_err(|_| late())??)) }.boxed()
        });
        let no_host = || Err(StoreError::Invalid("the Postgres URL names no host".into()));
        let (at, link) = hosts::first(attempts.collect()).await.unwrap_or_else(no_host)?;
        self.last.store(at, Ordering::Relaxed);
        Ok(link)
    }

    async fn connect_to(&self, at: usize, notified: Option<mpsc::Sender<()>>) -> Result<Link, StoreError> {
        let host = &self.hosts[at];
        match &self.tls {
            Some(tls) => {
                let (client, connection) = host.connect(tls.clone()).await.map_err(away)?;
                Ok(link(client, connection, notified, (at, self.contact.add())))
            }
            None => {
                let (client, connection) = host.connect(NoTls).await.map_err(away)?;
                Ok(link(client, connection, notified, (at, self.contact.add())))
            }
        }
    }
}

fn link<S, T>(
    client: Client,
    mut connection: tokio_postgres::Connection<S, T>,
    notified: Option<mpsc::Sender<()>>,
    (host, state): (usize, Arc<LinkState>),
) -> Link
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
    T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let warned = Arc::new(AtomicBool::new(false));
    let warning = warned.clone();
    let end = state.end.clone();
    let receive = async move {
        while let Some(Ok(message)) = poll_fn(|cx| connection.poll_message(cx)).await {
            if let AsyncMessage::Notice(notice) = &message
                && notice.code().code() == SYNC_WAIT_CANCELLED
            {
                warning.store(true, Ordering::Release);
            }
            if let (AsyncMessage::Notification(_), Some(notified)) = (&message, &notified) {
                // A full channel already holds a notification.
                let _ = notified.try_send(());
            }
        }
    };
    // Ending it closes the connection, and every statement under way on it fails.
    let driver = tokio::spawn(async move {
        tokio::select! { () = receive => {}, () = end.cancelled() => {} }
    });
    Link { client, warned, host, state, _driver: AbortOnDropHandle::new(driver) }
}

/// What a URL, or the environment, asks for.
struct Target {
    config: Config,
    root: Option<String>,
    prepared: Prepared,
    silence: Option<Duration>,
}

fn read(url: &str) -> Result<Target, StoreError> {
    let invalid = |what: String| StoreError::Invalid(what);
    // Not read as a URL: several hosts, each with its port, are none by the standard.
    let url = url.split('#').next().unwrap_or_default();
    let (place, query) = url.split_once('?').unwrap_or((url, ""));
    let bare = place.trim_end_matches('/');
    // Parameters that libpq has and the driver lacks, and our own; the others stay as they are.
    let (mut root, mut prepared, mut silence, mut kept) = (None, Prepared::default(), None, Vec::new());
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = url::form_urlencoded::parse(pair.as_bytes()).next().unwrap_or_default();
        match (&*name, &*value) {
            ("sslrootcert", path) => root = Some(path.to_owned()),
            ("prepared", text) => {
                let forms = "auto, on or off";
                prepared = Prepared::parse(text)
                    .ok_or_else(|| invalid(format!("prepared `{text}` in the Postgres URL is not one of {forms}")))?;
            }
            ("silence", text) => {
                let parsed =
                    Millis::parse(text).ok().filter(|span| (SHORTEST_SILENCE..=LONGEST_SILENCE).contains(span));
                let forms = format!("a duration from {SHORTEST_SILENCE} to {LONGEST_SILENCE}, such as 4s");
                let wrong = || invalid(format!("silence `{text}` in the Postgres URL is not {forms}"));
                silence = Some(parsed.ok_or_else(wrong)?.to_std());
            }
            ("sslmode", "verify-ca" | "verify-full") => kept.push("sslmode=require".to_owned()),
            ("sslmode", "allow") => kept.push("sslmode=prefer".to_owned()),
            _ => kept.push(pair.to_owned()),
        }
    }
    if matches!(bare, "postgres:" | "postgresql:") && kept.is_empty() {
        let (config, reported) = from_environment()?;
        return Ok(Target { config, root: root.or(reported), prepared, silence });
    }
    let mark = if kept.is_empty() { "" } else { "?" };
    let plain = format!("{place}{mark}{}", kept.join("&"));
    // Anything else would be read as `name=value` pairs.
    let is_url = ["postgres://", "postgresql://"].iter().any(|scheme| plain.starts_with(scheme));
    let config = is_url.then(|| plain.parse()).ok_or_else(|| invalid("not a Postgres URL".into()))?;
    let config =
        config.map_err(|error: tokio_postgres::Error| invalid(format!("not a Postgres URL: {}", message(&error))))?;
    Ok(Target { config, root, prepared, silence })
}

fn from_environment() -> Result<(Config, Option<String>), StoreError> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let mut config = Config::new();
    config.host(variable("PGHOST").unwrap_or_else(|| "localhost".into()));
    if let Some(port) = variable("PGPORT") {
        config.port(port.parse().map_err(|_| StoreError::Invalid(format!("PGPORT `{port}` is not a port")))?);
    }
    let user = variable("PGUSER").or_else(|| variable("USER")).unwrap_or_else(|| "postgres".into());
    config.dbname(variable("PGDATABASE").unwrap_or_else(|| user.clone()));
    config.user(user);
    if let Some(password) = variable("PGPASSWORD") {
        config.password(password);
    }
    if let Some(name) = variable("PGAPPNAME") {
        config.application_name(name);
    }
    config.ssl_mode(match variable("PGSSLMODE").as_deref() {
        Some("disable") => SslMode::Disable,
        None | Some("prefer" | "allow") => SslMode::Prefer,
        Some("require" | "verify-ca" | "verify-full") => SslMode::Require,
        Some(other) => {
            let forms = "disable, allow, prefer, require, verify-ca or verify-full";
            return Err(StoreError::Invalid(format!("PGSSLMODE `{other}` is not one of {forms}")));
        }
    });
    Ok((config, variable("PGSSLROOTCERT")))
}
