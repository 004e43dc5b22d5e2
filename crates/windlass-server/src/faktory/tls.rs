//! TLS of the listener: a certificate chain and its key, as PEM files.

use anyhow::Context as _;
use std::path::Path;
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// # Errors
/// A file cannot be read, or the key does not belong to the certificate.
pub(super) fn acceptor(certificate: &Path, key: &Path) -> anyhow::Result<TlsAcceptor> {
    let chain = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .with_context(|| format!("the certificate {} cannot be read", certificate.display()))?;
    let key = PrivateKeyDer::from_pem_file(key).with_context(|| format!("the key {} cannot be read", key.display()))?;
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .context("the key does not belong to the certificate")?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}
