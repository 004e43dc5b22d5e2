//! Connections to servers that an operator named: plain, or with TLS. Calls of jobs go through the library's guarded
//! connector instead.

use std::path::Path;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{AlertDescription, CertificateError, ClientConfig, Error, RootCertStore};
use url::{Host, Url};

/// A connection, whatever it is made of.
pub(crate) trait Wire: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Wire for T {}

/// The host of a URL as it is resolved, without the brackets of an IPv6 address.
pub(crate) fn host_of(url: &Url) -> Option<String> {
    Some(match url.host()? {
        Host::Domain(name) => name.to_owned(),
        Host::Ipv4(address) => address.to_string(),
        Host::Ipv6(address) => address.to_string(),
    })
}

/// The version of HTTP that is spoken. Over TLS, the two sides agree on it first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    Http1,
    Http2,
}

/// The certificate authorities that servers are checked against.
#[derive(Debug, Clone)]
pub(crate) struct Authorities(Arc<RootCertStore>);

impl Authorities {
    /// Those that browsers trust.
    pub(crate) fn public() -> Self {
        Self(Arc::new(RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() }))
    }

    /// Only those in a PEM file.
    ///
    /// # Errors
    /// What is wrong with the file.
    pub(crate) fn of_file(path: &Path) -> Result<Self, String> {
        let wrong = |why: &dyn std::fmt::Display| format!("the certificates {} cannot be used: {why}", path.display());
        let text = std::fs::read(path).map_err(|error| wrong(&error))?;
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(&text) {
            let certificate = certificate.map_err(|error| wrong(&error))?;
            roots.add(certificate).map_err(|error| wrong(&error))?;
        }
        if roots.is_empty() {
            return Err(wrong(&"there is no certificate in PEM form in it"));
        }
        Ok(Self(Arc::new(roots)))
    }
}

/// Connects to the host of an http or https URL.
///
/// # Errors
/// Why there is no connection.
pub(crate) async fn dial(url: &Url, version: Version, trusted: &Authorities) -> Result<Box<dyn Wire>, String> {
    let host = host_of(url).ok_or("the URL names no host")?;
    let port = url.port_or_known_default().unwrap_or(80);
    let tcp = TcpStream::connect((host.as_str(), port)).await.map_err(|error| error.to_string())?;
    if url.scheme() == "http" {
        return Ok(Box::new(tcp));
    }
    let mut config = ClientConfig::builder().with_root_certificates(trusted.0.clone()).with_no_client_auth();
    if version == Version::Http2 {
        config.alpn_protocols = vec![b"h2".to_vec()];
    }
    let name = ServerName::try_from(host).map_err(|error| error.to_string())?;
    let tls = TlsConnector::from(Arc::new(config)).connect(name, tcp).await;
    Ok(Box::new(tls.map_err(|error| no_tls(&error))?))
}

/// Why there is no TLS, where the library's own words need its source code to be understood.
fn no_tls(error: &std::io::Error) -> String {
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<Error>());
    match cause {
        Some(Error::InvalidCertificate(CertificateError::UnknownIssuer)) => {
            "its certificate was not issued by a trusted authority".into()
        }
        Some(Error::InvalidMessage(_)) => "it does not speak TLS".into(),
        Some(Error::AlertReceived(AlertDescription::NoApplicationProtocol)) => "it does not speak HTTP/2".into(),
        Some(_) | None => error.to_string(),
    }
}
