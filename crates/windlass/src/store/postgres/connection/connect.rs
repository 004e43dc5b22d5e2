//! Connecting: URL or `PG*` variables, TLS, and the task that drives a connection and receives its notices.

use crate::store::StoreError;
use crate::store::postgres::connection::fault::{away, before};
use crate::store::postgres::connection::pooler::Prepared;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_postgres::config::SslMode;
use tokio_postgres::{AsyncMessage, Client, Config, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;
use tokio_util::task::AbortOnDropHandle;

/// Longest wait for a connection.
pub(in crate::store::postgres) const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A warning at COMMIT: the wait for synchronous replication was cancelled. The commit holds on this server, perhaps not on the standby.
const SYNC_WAIT_CANCELLED: &str = "01000";

/// How to reach the database.
#[derive(Clone)]
pub(in crate::store::postgres) struct Connector {
    config: Config,
    tls: Option<MakeRustlsConnect>,
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
        let mode = config.get_ssl_mode();
        let tls = if mode == SslMode::Disable {
            None
        } else if mode == SslMode::Prefer {
            // Encrypted if the server supports it, as in libpq. Encryption is not promised, so nothing is verified.
            Some(unverified()?)
        } else {
            Some(verified(root.as_deref())?)
        };
        Ok(Self { config, tls, prepared })
    }

    /// Whether statements may be prepared on this connection.
    pub(in crate::store::postgres) async fn prepares(&self, link: &Link) -> Result<bool, StoreError> {
        self.prepared.is_on(&link.client).await.map_err(before)
    }

    /// Opens a connection. Notifications go to `record_contact`, if anyone listens.
    pub(in crate::store::postgres) async fn connect(
        &self,
        record_contact: Option<mpsc::Sender<()>>,
    ) -> Result<Link, StoreError> {
        let opening = async {
            match &self.tls {
                Some(tls) => {
                    let (client, connection) = self.config.connect(tls.clone()).await?;
                    Ok(link(client, connection, record_contact))
                }
                None => {
                    let (client, connection) = self.config.connect(NoTls).await?;
                    Ok(link(client, connection, record_contact))
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
    record_contact: Option<mpsc::Sender<()>>,
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
            if let (AsyncMessage::Notification(_), Some(record_contact)) = (&message, &record_contact) {
                // A full channel already holds a notification.
                let _ = record_contact.try_send(());
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

fn verified(root: Option<&str>) -> Result<MakeRustlsConnect, StoreError> {
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    if let Some(path) = root {
        let unreadable = |error: &dyn std::fmt::Display| {
            StoreError::Invalid(format!("sslrootcert `{path}` cannot be read: {error}"))
        };
        for certificate in CertificateDer::pem_file_iter(path).map_err(|error| unreadable(&error))? {
            roots.add(certificate.map_err(|error| unreadable(&error))?).map_err(|error| unreadable(&error))?;
        }
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| StoreError::Invalid(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

fn unverified() -> Result<MakeRustlsConnect, StoreError> {
    let provider = Arc::new(ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| StoreError::Invalid(error.to_string()))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

/// Accepts any certificate: for `sslmode=prefer`, which would also connect without TLS.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls12_signature(message, cert, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(message, cert, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
