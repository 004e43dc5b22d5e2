//! gRPC with TLS, against servers whose certificates come from an authority of their own.

use crate::config::{Protocol, Target};
use crate::telemetry::collector::{Answer, Collector, Signal};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::Response;
use hyper::header::HeaderMap;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_util::task::AbortOnDropHandle;

fn openssl(home: &Path, arguments: &str) {
    let output = Command::new("openssl").args(arguments.split(' ')).current_dir(home).output();
    let output = output.expect("these tests need the openssl command");
    assert!(output.status.success(), "openssl {arguments}: {}", String::from_utf8_lossy(&output.stderr));
}

/// An authority in `ca.crt`, another one in `other.crt`, and a certificate of the first for a name or an address.
fn certificates(subject: &str) -> TempDir {
    let home = tempfile::tempdir().unwrap();
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
    for name in ["ca", "other"] {
        let make =
            format!("req -x509 {key} -keyout {name}.key -out {name}.crt -days 30 -subj /CN=windlass-test-{name}");
        openssl(home.path(), &make);
    }
    openssl(home.path(), &format!("req {key} -keyout server.key -out server.csr -subj /CN=collector"));
    std::fs::write(home.path().join("names"), format!("subjectAltName={subject}")).unwrap();
    let sign =
        "x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 30 -out server.crt -extfile names";
    openssl(home.path(), sign);
    home
}

/// A collector that speaks these protocols over TLS, and the URL of it.
async fn serve(home: &Path, protocols: &[&str]) -> (String, AbortOnDropHandle<()>) {
    let chain = CertificateDer::pem_file_iter(home.join("server.crt")).unwrap().collect::<Result<_, _>>().unwrap();
    let key = PrivateKeyDer::from_pem_file(home.join("server.key")).unwrap();
    let mut config = ServerConfig::builder().with_no_client_auth().with_single_cert(chain, key).unwrap();
    config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let server = AbortOnDropHandle::new(tokio::spawn(async move {
        loop {
            let (tcp, _) = listener.accept().await.unwrap();
            let Ok(tls) = acceptor.accept(tcp).await else { continue };
            // Real gRPC servers close connections that have not agreed on HTTP/2.
            if tls.get_ref().1.alpn_protocol() != Some(b"h2") {
                continue;
            }
            let service = service_fn(async |_| {
                let trailers = HeaderMap::from_iter([("grpc-status".parse().unwrap(), 0.into())]);
                let body = Full::new(Bytes::from_static(b"\0\0\0\0\0"));
                Ok::<_, Infallible>(Response::new(body.with_trailers(std::future::ready(Some(Ok(trailers))))))
            });
            let _ = http2::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(tls), service).await;
        }
    }));
    (url, server)
}

async fn send(url: &str, certificate: Option<PathBuf>) -> Answer {
    let target = Target { url: url.parse().unwrap(), protocol: Protocol::Grpc, headers: Vec::new(), certificate };
    Collector::new(Signal::Traces, target).unwrap().send(Bytes::from_static(b"one")).await
}

fn why(answer: Answer) -> String {
    match answer {
        Answer::Later { why, .. } => why,
        Answer::Accepted { .. } | Answer::Refused(_) => panic!("{answer:?}"),
    }
}

#[tokio::test]
async fn a_collector_with_a_certificate_of_a_named_authority_is_trusted() {
    let home = certificates("IP:127.0.0.1,DNS:localhost");
    let (url, _server) = serve(home.path(), &["h2"]).await;
    let named = || Some(home.path().join("ca.crt"));
    assert_eq!(send(&url, named()).await, Answer::Accepted { rejected: 0 });
    assert_eq!(send(&url.replace("127.0.0.1", "localhost"), named()).await, Answer::Accepted { rejected: 0 });
}

#[tokio::test]
async fn whoever_cannot_be_trusted_gets_nothing_and_the_reason_is_clear() {
    let home = certificates("DNS:elsewhere.example");
    let (url, _server) = serve(home.path(), &["h2"]).await;
    let untrusted = "its certificate was not issued by a trusted authority";
    assert_eq!(why(send(&url, Some(home.path().join("other.crt"))).await), untrusted);
    assert_eq!(why(send(&url, None).await), untrusted);
    let misnamed = why(send(&url, Some(home.path().join("ca.crt"))).await);
    assert!(misnamed.contains("not valid for name \"127.0.0.1\""), "{misnamed}");

    let home = certificates("IP:127.0.0.1");
    let named = || Some(home.path().join("ca.crt"));
    let (url, _server) = serve(home.path(), &["http/1.1"]).await;
    assert_eq!(why(send(&url, named()).await), "it does not speak HTTP/2");
    let plain = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", plain.local_addr().unwrap());
    let _server = AbortOnDropHandle::new(tokio::spawn(async move {
        let (mut wire, _) = plain.accept().await.unwrap();
        // What is left unread would reset the connection before the answer arrives.
        let _ = wire.read(&mut [0; 4096]).await.unwrap();
        wire.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
        wire.read_to_end(&mut Vec::new()).await.unwrap();
    }));
    assert_eq!(why(send(&url, named()).await), "it does not speak TLS");
}

#[test]
fn certificates_that_cannot_be_used_are_named() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("ca.pem");
    let make = |url: &str| {
        let target = Target {
            url: url.parse().unwrap(),
            protocol: Protocol::Grpc,
            headers: Vec::new(),
            certificate: Some(path.clone()),
        };
        Collector::new(Signal::Traces, target).map(drop)
    };
    let begin = format!("the certificates {} cannot be used: ", path.display());
    assert_eq!(make("https://c:4317"), Err(format!("{begin}No such file or directory (os error 2)")));
    assert_eq!(make("http://c:4317"), Ok(()), "without TLS they are not needed");
    std::fs::write(&path, "hello").unwrap();
    assert_eq!(make("https://c:4317"), Err(format!("{begin}there is no certificate in PEM form in it")));
    std::fs::write(&path, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").unwrap();
    assert!(make("https://c:4317").unwrap_err().starts_with(&begin));
}
