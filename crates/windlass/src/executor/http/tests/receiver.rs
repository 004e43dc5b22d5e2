//! A receiver on loopback that reads requests and then answers, stalls or hangs up as the test chose.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// The authority that signed the receiver's certificate, which is valid for `hooks.example` and 127.0.0.1.
pub(super) const AUTHORITY: &[u8] = include_bytes!("certificates/authority.pem");

/// What the receiver does with a request.
#[derive(Debug, Clone)]
pub(super) enum Reply {
    /// Answers and keeps the connection.
    Send(Vec<u8>),
    /// Sends these bytes, possibly a partial response, and hangs up.
    SendAndClose(Vec<u8>),
    /// Sends a partial response and then nothing more.
    SendAndStall(Vec<u8>),
    /// Resets the connection after reading.
    Reset,
    /// Answers 200 once [`Receiver::release`] allows it.
    Hold,
}

impl Reply {
    pub(super) fn status(status: u16) -> Self {
        Self::with(status, "", "")
    }

    /// `headers` are whole lines, each with its line end.
    pub(super) fn with(status: u16, headers: &str, body: &str) -> Self {
        let length = body.len();
        Self::Send(format!("HTTP/1.1 {status} So\r\nContent-Length: {length}\r\n{headers}\r\n{body}").into_bytes())
    }
}

/// A request as it was received.
#[derive(Debug, Clone)]
pub(super) struct Received {
    pub(super) line: String,
    headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

impl Received {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(n, _)| n.eq_ignore_ascii_case(name));
        let value = found.next().map(|(_, value)| value.as_str());
        assert!(found.next().is_none(), "{name} came twice");
        value
    }
}

type Behaviour = dyn Fn(&Received) -> Reply + Send + Sync;

struct Seen {
    requests: Mutex<Vec<Received>>,
    connections: AtomicUsize,
    /// Connections that have ended.
    ended: AtomicUsize,
    gate: Semaphore,
    behaviour: Box<Behaviour>,
}

pub(super) struct Receiver {
    pub(super) address: SocketAddr,
    seen: Arc<Seen>,
    task: JoinHandle<()>,
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Receiver {
    pub(super) async fn start(behaviour: impl Fn(&Received) -> Reply + Send + Sync + 'static) -> Self {
        Self::listen(None, behaviour).await
    }

    pub(super) async fn always(reply: Reply) -> Self {
        Self::start(move |_| reply.clone()).await
    }

    pub(super) async fn secured(reply: Reply) -> Self {
        Self::listen(Some(acceptor()), move |_| reply.clone()).await
    }

    async fn listen(tls: Option<TlsAcceptor>, behaviour: impl Fn(&Received) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Seen {
            requests: Mutex::default(),
            connections: AtomicUsize::new(0),
            ended: AtomicUsize::new(0),
            gate: Semaphore::new(0),
            behaviour: Box::new(behaviour),
        });
        let task = tokio::spawn(accept(listener, tls, seen.clone()));
        Self { address, seen, task }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    pub(super) fn requests(&self) -> Vec<Received> {
        self.seen.requests.lock().unwrap().clone()
    }

    pub(super) fn connections(&self) -> usize {
        self.seen.connections.load(Ordering::SeqCst)
    }

    pub(super) fn ended(&self) -> usize {
        self.seen.ended.load(Ordering::SeqCst)
    }

    pub(super) fn release(&self, requests: usize) {
        self.seen.gate.add_permits(requests);
    }
}

async fn accept(listener: TcpListener, tls: Option<TlsAcceptor>, seen: Arc<Seen>) {
    let mut connections = tokio::task::JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        seen.connections.fetch_add(1, Ordering::SeqCst);
        let (tls, seen) = (tls.clone(), seen.clone());
        connections.spawn(async move {
            match tls {
                Some(tls) => {
                    if let Ok(mut stream) = tls.accept(stream).await {
                        serve(&mut stream, &seen).await;
                    }
                }
                None => serve_plain(stream, &seen).await,
            }
            seen.ended.fetch_add(1, Ordering::SeqCst);
        });
    }
}

async fn serve_plain(mut stream: TcpStream, seen: &Seen) {
    if serve(&mut stream, seen).await == Ended::Hard {
        stream.set_zero_linger().unwrap();
    }
}

#[derive(PartialEq, Eq)]
enum Ended {
    Softly,
    Hard,
}

async fn serve(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), seen: &Seen) -> Ended {
    while let Some(request) = read(stream).await {
        seen.requests.lock().unwrap().push(request.clone());
        match (seen.behaviour)(&request) {
            Reply::Send(bytes) => {
                if stream.write_all(&bytes).await.is_err() || stream.flush().await.is_err() {
                    return Ended::Softly;
                }
            }
            Reply::SendAndClose(bytes) => {
                let _ = stream.write_all(&bytes).await;
                return Ended::Softly;
            }
            Reply::SendAndStall(bytes) => {
                let _ = stream.write_all(&bytes).await;
                let _ = stream.flush().await;
                let _ = read(stream).await; // Until the caller hangs up.
                return Ended::Softly;
            }
            Reply::Reset => return Ended::Hard,
            Reply::Hold => {
                tokio::select! {
                    permit = seen.gate.acquire() => permit.unwrap().forget(),
                    _ = read(stream) => return Ended::Softly,
                }
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
            }
        }
    }
    Ended::Softly
}

async fn read(stream: &mut (impl AsyncRead + Unpin)) -> Option<Received> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).expect("heads are text");
    let mut lines = head.lines();
    let line = lines.next().unwrap_or_default().to_owned();
    let headers: Vec<_> =
        lines.filter_map(|line| line.split_once(": ")).map(|(n, v)| (n.to_owned(), v.to_owned())).collect();
    let mut received = Received { line, headers, body: Vec::new() };
    let length = received.header("content-length").map_or(0, |text| text.parse().expect("a length"));
    received.body = vec![0; length];
    stream.read_exact(&mut received.body).await.ok()?;
    Some(received)
}

fn acceptor() -> TlsAcceptor {
    let chain = CertificateDer::from_pem_slice(include_bytes!("certificates/receiver.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_slice(include_bytes!("certificates/receiver.key")).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![chain], key)
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}
