//! The accept loop: connections that are slow to ask, idle or too many are closed, and everything drains on stop. (Plain
//! `axum::serve` has no header timeout: a few thousand silent sockets would starve everyone else.)

use super::connections::{ConnectionSlot, ConnectionSlots, Sending, Working};
use super::wire::Wire;
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
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt as _;
use windlass::Clock;

/// Longest time until the first request's header is complete.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest silence between two requests.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// Longest time for which a client may take nothing of a response.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// How often a connection is looked at for that.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// Connections the system may queue up for us.
const BACKLOG: u32 = 4096;
/// Streams of one HTTP/2 connection.
const MAX_STREAMS: u32 = 100;
/// Most bytes that an HTTP/2 stream buffers for a client that does not take them.
const MAX_UNSENT: usize = 64 * 1024;
/// Largest header of a request, in bytes.
const MAX_HEADER: usize = 64 * 1024;
const MAX_HEADERS: usize = 100;
/// How long to wait after the system refused to accept (out of file descriptors).
const AFTER_REFUSAL: Duration = Duration::from_millis(50);

/// Binds an address.
///
/// # Errors
/// It is in use, or not this machine's.
pub(crate) fn bind(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Serves until `stop`; then lets what is under way finish within `grace`.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    clock: Clock,
    max_connections: usize,
    stop: CancellationToken,
    grace: Duration,
) {
    let slots = Arc::new(ConnectionSlots::new(clock, max_connections));
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
        let slot = tokio::select! {
            () = stop.cancelled() => break,
            slot = slots.take(peer.ip()) => slot,
        };
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
    // Answers are small and someone waits for them. A socket that refuses is about to fail anyway.
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
            // The client's or the network's fault: it knows.
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
            () = stop.cancelled(), if !draining => {
                draining = true;
                connection.as_mut().graceful_shutdown();
            }
            // Whether it has asked is to be looked at when the time is up, not when the waiting began.
            () = first_header.as_mut(), if awaiting_first => {
                if !slot.has_asked() {
                    break;
                }
                awaiting_first = false;
            }
        }
    }
}

async fn answer(
    router: Router,
    working: Working,
    slot: ConnectionSlot,
    mut request: Request<Incoming>,
) -> Result<Response<Attended>, Infallible> {
    // A handler that waits for something to happen says so, and can be asked to answer early.
    request.extensions_mut().insert(slot);
    let response = router.oneshot(request.map(Body::new)).await?;
    Ok(response.map(|body| Attended { body, sending: working.sending() }))
}

/// A body that notes when the client takes a part of it.
#[derive(Debug)]
struct Attended {
    body: Body,
    sending: Sending,
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

    async fn ask(stream: &mut TcpStream) -> String {
        stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await.expect("the connection is open");
        let mut answer = vec![0; 1024];
        let length = stream.read(&mut answer).await.expect("the connection is open");
        String::from_utf8_lossy(&answer[..length]).into_owned()
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_has_asked_outlives_the_time_for_the_first_header() {
        // While a blocking task runs, the paused clock moves only when it is told to.
        let (release, held) = std::sync::mpsc::channel::<()>();
        let holder = tokio::task::spawn_blocking(move || held.recv());
        let listener = bind(([127, 0, 0, 1], 0).into()).expect("a port is free");
        let address = listener.local_addr().expect("the listener is bound");
        let stop = CancellationToken::new();
        let router = Router::new().route("/", get(|| async { "here" }));
        let serving = tokio::spawn(serve(listener, router, Clock::system(), 8, stop.clone(), IDLE_TIMEOUT));
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
