//! The collector: takes one request after another over a connection that is kept open, and says what became of each.

mod grpc;
mod http;

use crate::config::{Protocol, Target};
use crate::dial::{Authorities, Version, dial};
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio_util::task::AbortOnDropHandle;
use windlass_core::Millis;

/// How much of an answer is read.
const MAX_ANSWER: usize = 64 * 1024;

/// What became of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    /// Accepted, except for this many spans or points.
    Accepted { rejected: u64 },
    /// Not now: send it again.
    Later { why: String, after: Option<Millis> },
    /// Not at all: sending it again would not help.
    Refused(String),
}

/// What is sent to a collector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Signal {
    Traces,
    Metrics,
}

/// A collector for one signal.
#[derive(Debug)]
pub(super) struct Collector {
    signal: Signal,
    target: Target,
    trusted: Authorities,
    open: Option<Connection>,
}

#[derive(Debug)]
struct Connection {
    sender: Sender,
    _task: AbortOnDropHandle<()>,
}

#[derive(Debug)]
enum Sender {
    Http1(http1::SendRequest<Full<Bytes>>),
    Http2(http2::SendRequest<Full<Bytes>>),
}

impl Collector {
    /// # Errors
    /// The target names certificates that cannot be used.
    pub(super) fn new(signal: Signal, target: Target) -> Result<Self, String> {
        let named = target.certificate.as_deref().filter(|_| target.url.scheme() == "https");
        let trusted = named.map_or_else(|| Ok(Authorities::public()), Authorities::of_file)?;
        Ok(Self { signal, target, trusted, open: None })
    }

    pub(super) const fn signal(&self) -> Signal {
        self.signal
    }

    pub(super) const fn protocol(&self) -> Protocol {
        self.target.protocol
    }

    /// Sends a request. Dropping the future closes the connection.
    pub(super) async fn send(&mut self, body: Bytes) -> Answer {
        // A connection that was kept may have been closed at the other end: that says nothing about the collector.
        if let Some(kept) = self.open.take().filter(|kept| !kept.sender.is_closed())
            && let Ok(answer) = self.exchange(kept, body.clone()).await
        {
            return answer;
        }
        let answered = match self.connect().await {
            Ok(connection) => self.exchange(connection, body).await,
            Err(why) => Err(why),
        };
        answered.unwrap_or_else(|why| Answer::Later { why, after: None })
    }

    async fn connect(&self) -> Result<Connection, String> {
        match self.target.protocol {
            Protocol::HttpJson | Protocol::HttpProtobuf => {
                let wire = TokioIo::new(dial(&self.target.url, Version::Http1, &self.trusted).await?);
                let (sender, connection) = http1::handshake(wire).await.map_err(|error| error.to_string())?;
                let task = AbortOnDropHandle::new(tokio::spawn(async { drop(connection.await) }));
                Ok(Connection { sender: Sender::Http1(sender), _task: task })
            }
            Protocol::Grpc => {
                let wire = TokioIo::new(dial(&self.target.url, Version::Http2, &self.trusted).await?);
                let shaken = http2::handshake(TokioExecutor::new(), wire).await;
                let (sender, connection) = shaken.map_err(|error| error.to_string())?;
                let task = AbortOnDropHandle::new(tokio::spawn(async { drop(connection.await) }));
                Ok(Connection { sender: Sender::Http2(sender), _task: task })
            }
        }
    }

    async fn exchange(&mut self, mut connection: Connection, body: Bytes) -> Result<Answer, String> {
        let answer = match self.target.protocol {
            Protocol::HttpJson | Protocol::HttpProtobuf => {
                let request = http::request(&self.target, body).map_err(|error| error.to_string())?;
                http::read(connection.sender.send(request).await?, self.signal, self.target.protocol).await
            }
            Protocol::Grpc => {
                let request = grpc::request(&self.target, self.signal, &body).map_err(|error| error.to_string())?;
                grpc::read(connection.sender.send(request).await?).await?
            }
        };
        self.open = Some(connection);
        Ok(answer)
    }
}

impl Sender {
    fn is_closed(&self) -> bool {
        match self {
            Self::Http1(sender) => sender.is_closed(),
            Self::Http2(sender) => sender.is_closed(),
        }
    }

    async fn send(&mut self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, String> {
        let answered = match self {
            Self::Http1(sender) => match sender.ready().await {
                Ok(()) => sender.send_request(request).await,
                Err(error) => Err(error),
            },
            Self::Http2(sender) => match sender.ready().await {
                Ok(()) => sender.send_request(request).await,
                Err(error) => Err(error),
            },
        };
        answered.map_err(|error| error.to_string())
    }
}
