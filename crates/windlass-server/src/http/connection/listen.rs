//! The accept loop. It closes connections that are slow, idle or too many, and drains all connections on stop. (Plain
//! `axum::serve` has no header timeout: a few thousand silent sockets would block all other clients.)

use super::connections::{ConnectionSlot, ConnectionSlots, Sending, Unread, Working};
use super::wire::Wire;
use crate::http::output::problem::{Kind, Problem};
use axum::Router;
use axum::body::{Body, Bytes};
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt as _;
use windlass::Clock;
use windlass::http::Percent;

/// The longest time until the first request's header is complete.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest idle time between two requests.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// The longest time in which a client may read nothing of a response.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// How often a connection is checked for this.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// The backlog of the listening socket.
const BACKLOG: u32 = 4096;
/// The most streams of one HTTP/2 connection.
const MAX_STREAMS: u32 = 100;
/// The most bytes that an HTTP/2 stream buffers for a client that does not read them.
const MAX_UNSENT: usize = 64 * 1024;
/// The largest header of a request, in bytes.
const MAX_HEADER: usize = 64 * 1024;
const MAX_HEADERS: usize = 100;
/// How often, and with which pause, to look for the first request of a connection that is to be closed.
const LAST_LOOKS: u32 = 50;
const LAST_LOOK_EVERY: Duration = Duration::from_millis(10);
/// How long to wait after the system refused to accept a connection (out of file descriptors).
const AFTER_REFUSAL: Duration = Duration::from_millis(50);

/// Binds an address.
///
/// # Errors
/// The address is in use, or is not an address of this machine.
pub(crate) fn bind(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// How many connections there may be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// In all.
    pub(crate) connections: usize,
    /// The most of them that one client address holds.
    pub(crate) of_address: Percent,
    /// The most of them that requests with one token hold.
    pub(crate) of_token: Percent,
}

/// Serves until `stop`; then running requests may finish within `grace`.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    clock: Clock,
    limits: Limits,
    stop: CancellationToken,
    grace: Duration,
) {
    let slots = Arc::new(ConnectionSlots::new(clock, limits.connections, limits.of_address, limits.of_token));
    let connections = TaskTracker::new();
    let end = CancellationToken::new();
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, peer)) = accepted else {
            tokio::time::sleep(AFTER_REFUSAL).await;
            continue;
        };
        // Without a place, the connection is closed.
        let Some(slot) = slots.enter(peer.ip().to_canonical()) else { continue };
        connections.spawn(connection(stream, router.clone(), slot, stop.clone(), end.clone()));
    }
    drop(listener);
    connections.close();
    if tokio::time::timeout(grace, connections.wait()).await.is_err() {
        tracing::warn!(open = connections.len(), "connections were still open at the end of the grace time");
        end.cancel();
        connections.wait().await;
    }
}

async fn connection(
    stream: TcpStream,
    router: Router,
    slot: ConnectionSlot,
    stop: CancellationToken,
    end: CancellationToken,
) {
    // Answers are small and clients wait for them. If this option cannot be set, the socket is about to fail anyway.
    let _ = stream.set_nodelay(true);
    let service = {
        let slot = slot.clone();
        service_fn(move |request: Request<Incoming>| answer(router.clone(), slot.working(), slot.clone(), request))
    };
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(IDLE_TIMEOUT).max_headers(MAX_HEADERS);
    builder.http1().max_buf_size(MAX_HEADER);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(MAX_STREAMS)
        .max_send_buf_size(MAX_UNSENT)
        .max_header_list_size(MAX_HEADER as u32);
    builder.http2().keep_alive_interval(IDLE_TIMEOUT).keep_alive_timeout(HEADER_TIMEOUT);
    let connection = builder.serve_connection(TokioIo::new(Wire::new(stream, slot.clone())), service);
    tokio::pin!(connection);
    let first_header = tokio::time::sleep(HEADER_TIMEOUT);
    tokio::pin!(first_header);
    let mut look = tokio::time::interval(LOOK_EVERY);
    let mut awaiting_first = true;
    let mut draining = false;
    loop {
        tokio::select! {
            // An error of the client or the network. The client notices it too.
            _ = connection.as_mut() => break,
            () = slot.evicted() => break,
            () = end.cancelled() => break,
            _ = look.tick() => {
                if slot.is_stalled(WRITE_TIMEOUT) {
                    break;
                }
            }
            () = slot.retired(), if !draining => {
                draining = true;
                connection.as_mut().graceful_shutdown();
            }
            () = closing(&stop, &slot), if !draining => {
                draining = true;
                connection.as_mut().graceful_shutdown();
            }
            // Check whether a request has arrived when the time is over, not when the wait begins.
            () = first_header.as_mut(), if awaiting_first => {
                if !slot.has_asked() {
                    break;
                }
                awaiting_first = false;
            }
        }
    }
}

/// Ends when a connection is to be closed because the server stops. A client that has just connected may have sent a
/// request that was not read yet: it gets a moment, and its answer.
async fn closing(stop: &CancellationToken, slot: &ConnectionSlot) {
    stop.cancelled().await;
    let mut look = tokio::time::interval(LAST_LOOK_EVERY);
    // A machine that stalls makes no look count twice.
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for _ in 0..LAST_LOOKS {
        if slot.has_asked() {
            return;
        }
        look.tick().await;
    }
}

async fn answer(
    router: Router,
    working: Working,
    slot: ConnectionSlot,
    mut request: Request<Incoming>,
) -> Result<Response<Attended>, Infallible> {
    let path = request.uri().path().to_owned();
    if !slot.is_admitted() {
        if is_health(&path) {
            // An operator can always see whether the server is alive.
            slot.retire();
        } else if !slot.wait_for_slot().await {
            slot.retire();
            return Ok(busy(&path, "there are too many connections").map(|body| Attended::new(body, working, None)));
        }
    }
    // A handler that waits for an event marks itself as waiting, so that it can be asked to answer early.
    request.extensions_mut().insert(slot.clone());
    let response = router.oneshot(request.map(Body::new)).await?;
    let length = HttpBody::size_hint(response.body()).exact().unwrap_or_default();
    match slot.unread(usize::try_from(length).unwrap_or(usize::MAX)) {
        Some(unread) => Ok(response.map(|body| Attended::new(body, working, Some(unread)))),
        None => {
            let refused = busy(&path, "clients have not read earlier answers; read them first");
            Ok(refused.map(|body| Attended::new(body, working, None)))
        }
    }
}

/// Health checks, also behind a base path.
fn is_health(path: &str) -> bool {
    path.ends_with("/healthz") || path.ends_with("/readyz")
}

fn busy(path: &str, detail: &str) -> Response<Body> {
    Problem::new(Kind::Busy, detail).render(path, "")
}

/// A body that records when the client reads a part of it.
#[derive(Debug)]
struct Attended {
    body: Body,
    sending: Sending,
    /// The bytes that the client has not read.
    _unread: Option<Unread>,
}

impl Attended {
    fn new(body: Body, working: Working, unread: Option<Unread>) -> Self {
        Self { body, sending: working.sending(), _unread: unread }
    }
}

impl HttpBody for Attended {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        match &frame {
            Poll::Ready(_) => self.sending.progress(),
            Poll::Pending => self.sending.idle(),
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::routing::get;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::task::JoinHandle;

    async fn ask(stream: &mut TcpStream) -> String {
        stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await.expect("the connection is open");
        let mut answer = vec![0; 1024];
        let length = stream.read(&mut answer).await.expect("the connection is open");
        String::from_utf8_lossy(&answer[..length]).into_owned()
    }

    fn start() -> (SocketAddr, CancellationToken, JoinHandle<()>) {
        let listener = bind(([127, 0, 0, 1], 0).into()).expect("a port is free");
        let address = listener.local_addr().expect("the listener is bound");
        let stop = CancellationToken::new();
        let router = Router::new().route("/", get(|| async { "here" }));
        let limits = Limits { connections: 8, of_address: Percent::ALL, of_token: Percent::ALL };
        let serving = tokio::spawn(serve(listener, router, Clock::system(), limits, stop.clone(), IDLE_TIMEOUT));
        (address, stop, serving)
    }

    #[tokio::test]
    async fn a_client_that_has_just_connected_gets_its_answer_when_the_server_stops() {
        let (address, stop, serving) = start();
        let connect = async || TcpStream::connect(address).await.expect("the server listens");
        let mut early = connect().await;
        // Connections are accepted in order: once a later one has its answer, both are.
        assert!(ask(&mut connect().await).await.ends_with("here"));
        stop.cancel();
        assert!(ask(&mut early).await.ends_with("here"), "the connection was closed");
        serving.await.expect("the server ends");
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_with_a_request_outlives_the_header_timeout() {
        // While a blocking task runs, the paused clock moves only when the test advances it.
        let (release, held) = std::sync::mpsc::channel::<()>();
        let holder = tokio::task::spawn_blocking(move || held.recv());
        let (address, stop, serving) = start();
        let mut stream = TcpStream::connect(address).await.expect("the server listens");
        assert!(ask(&mut stream).await.ends_with("here"));
        tokio::time::advance(HEADER_TIMEOUT + HEADER_TIMEOUT).await;
        tokio::task::yield_now().await;
        assert!(ask(&mut stream).await.ends_with("here"), "the connection was closed");
        stop.cancel();
        serving.await.expect("the server ends");
        drop(release);
        let _ = holder.await;
    }
}
