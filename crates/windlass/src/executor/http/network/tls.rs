//! TLS for outgoing calls: rustls with the public roots and the operator's own. Certificates are always checked.

use std::sync::Arc;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

pub(in crate::executor::http) fn connector(extra_roots: &[CertificateDer<'static>]) -> TlsConnector {
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    let (_, refused) = roots.add_parsable_certificates(extra_roots.iter().cloned());
    if refused > 0 {
        tracing::error!(refused, "some of the extra root certificates cannot be read and are not trusted");
    }
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring's own cipher suites serve the default protocol versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    TlsConnector::from(Arc::new(config))
}
