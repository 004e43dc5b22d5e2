//! Connections to servers that an operator named: plain, or with TLS and the public certificate authorities. Calls of
//! jobs go through the library's guarded connector instead.

use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
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

/// Connects to the host of an http or https URL.
///
/// # Errors
/// Why there is no connection.
pub(crate) async fn dial(url: &Url, version: Version) -> Result<Box<dyn Wire>, String> {
    let host = host_of(url).ok_or("the URL names no host")?;
    let port = url.port_or_known_default().unwrap_or(80);
    let tcp = TcpStream::connect((host.as_str(), port)).await.map_err(|error| error.to_string())?;
    if url.scheme() == "http" {
        return Ok(Box::new(tcp));
    }
    let roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    let mut config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    if version == Version::Http2 {
        config.alpn_protocols = vec![b"h2".to_vec()];
    }
    let name = ServerName::try_from(host).map_err(|error| error.to_string())?;
    let tls = TlsConnector::from(Arc::new(config)).connect(name, tcp).await.map_err(|error| error.to_string())?;
    Ok(Box::new(tls))
}
