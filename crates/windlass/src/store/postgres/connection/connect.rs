//! Connecting: URL or `PG*` variables, TLS, and the task that drives a connection and receives its notices.

use crate::store::StoreError;
use crate::store::postgres::connection::fault::{away, before};
use crate::store::postgres::connection::pooler::{Prepared, is_direct};
use crate::store::postgres::connection::tls::{Tls, tls_for};
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_postgres::config::SslMode;
use tokio_postgres::{AsyncMessage, Client, Config, NoTls};
use tokio_util::task::AbortOnDropHandle;

/// Longest wait for a connection.
pub(in crate::store::postgres) const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A warning at COMMIT: the wait for synchronous replication was cancelled. The commit holds on this server, perhaps
/// not on the standby.
const SYNC_WAIT_CANCELLED: &str = "01000";

/// How to reach the database.
#[derive(Clone)]
pub(in crate::store::postgres) struct Connector {
    config: Config,
    tls: Option<Tls>,
    prepared: Prepared,
}

impl std::fmt::Debug for Connector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Not the config: it holds the password.
        f.debug_struct("Connector").field("hosts", &self.config.get_hosts()).finish_non_exhaustive()
    }
}

/// An open connection, driven until it is dropped.
#[derive(Debug)]
pub(in crate::store::postgres) struct Link {
    pub(in crate::store::postgres) client: Client,
    /// Set when the server warned that a commit may not be durable.
    pub(in crate::store::postgres) warned: Arc<AtomicBool>,
    _driver: AbortOnDropHandle<()>,
}

impl Connector {
    /// # Errors
    /// [`StoreError::Invalid`] if the URL or a variable cannot be read.
    pub(in crate::store::postgres) fn new(url: &str) -> Result<Self, StoreError> {
        let Target { mut config, root, prepared } = read(url)?;
        config.connect_timeout(CONNECT_TIMEOUT);
        if config.get_application_name().is_none() {
            config.application_name("windlass");
        }
        let tls = tls_for(config.get_ssl_mode(), root.as_deref())?;
        Ok(Self { config, tls, prepared })
    }

    /// Whether a connection goes straight to the server, and whether statements may be prepared on it.
    pub(in crate::store::postgres) async fn prepares(&self, link: &Link) -> Result<(bool, bool), StoreError> {
        let is_direct = is_direct(&link.client).await.map_err(before)?;
        Ok((is_direct, self.prepared.is_on(is_direct)))
    }

    /// Opens a connection. Notifications go to `notified`, if given.
    pub(in crate::store::postgres) async fn connect(
        &self,
        notified: Option<mpsc::Sender<()>>,
    ) -> Result<Link, StoreError> {
        let opening = async {
            match &self.tls {
                Some(tls) => {
                    let (client, connection) = self.config.connect(tls.clone()).await?;
                    Ok(link(client, connection, notified))
                }
                None => {
                    let (client, connection) = self.config.connect(NoTls).await?;
                    Ok(link(client, connection, notified))
                }
            }
        };
        tokio::time::timeout(CONNECT_TIMEOUT, opening)
            .await
            .map_err(|_| StoreError::unavailable("no connection to Postgres in time"))?
            .map_err(away)
    }
}

fn link<S, T>(
    client: Client,
    mut connection: tokio_postgres::Connection<S, T>,
    notified: Option<mpsc::Sender<()>>,
) -> Link
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
    T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let warned = Arc::new(AtomicBool::new(false));
    let warning = warned.clone();
    let driver = tokio::spawn(async move {
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
    });
    Link { client, warned, _driver: AbortOnDropHandle::new(driver) }
}

/// What a URL, or the environment, asks for.
struct Target {
    config: Config,
    root: Option<String>,
    prepared: Prepared,
}

fn read(url: &str) -> Result<Target, StoreError> {
    let invalid = |what: String| StoreError::Invalid(what);
    let bare = url.split('?').next().unwrap_or_default().trim_end_matches('/');
    let mut parsed = url::Url::parse(url).map_err(|error| invalid(format!("not a Postgres URL: {error}")))?;
    // Parameters that libpq has and the driver lacks, and our own; the others stay as they are.
    let (mut root, mut prepared, mut kept) = (None, Prepared::default(), Vec::new());
    for pair in parsed.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = url::form_urlencoded::parse(pair.as_bytes()).next().unwrap_or_default();
        match (&*name, &*value) {
            ("sslrootcert", path) => root = Some(path.to_owned()),
            ("prepared", text) => {
                let forms = "auto, on or off";
                prepared = Prepared::parse(text)
                    .ok_or_else(|| invalid(format!("prepared `{text}` in the Postgres URL is not one of {forms}")))?;
            }
            ("sslmode", "verify-ca" | "verify-full") => kept.push("sslmode=require".to_owned()),
            ("sslmode", "allow") => kept.push("sslmode=prefer".to_owned()),
            _ => kept.push(pair.to_owned()),
        }
    }
    parsed.set_query((!kept.is_empty()).then(|| kept.join("&")).as_deref());
    if matches!(bare, "postgres:" | "postgresql:") && parsed.query().is_none() {
        let (config, reported) = from_environment()?;
        return Ok(Target { config, root: root.or(reported), prepared });
    }
    let config = parsed.as_str().parse().map_err(|error| invalid(format!("not a Postgres URL: {error}")))?;
    Ok(Target { config, root, prepared })
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
