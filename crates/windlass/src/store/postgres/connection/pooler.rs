//! Poolers: whether a connection goes straight to the server. Behind a pooler in transaction mode each transaction may
//! reach another server process, which lacks statements that were prepared before, or has others under the same names.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, ReadBuf, duplex};
use tokio_postgres::tls::{ChannelBinding, TlsConnect, TlsStream};
use tokio_postgres::{Client, Error, SimpleQueryMessage};

/// What a URL says about prepared statements, as `?prepared=…`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::store::postgres) enum Prepared {
    /// If the connection goes straight to the server.
    #[default]
    Auto,
    /// Always: there is no pooler, or one that knows prepared statements.
    On,
    /// Never.
    Off,
}

impl Prepared {
    pub(in crate::store::postgres) fn parse(text: &str) -> Option<Self> {
        match text {
            "auto" => Some(Self::Auto),
            "on" => Some(Self::On),
            "off" => Some(Self::Off),
            _ => None,
        }
    }

    /// Whether statements may be prepared, on a connection that goes straight to the server or not.
    pub(in crate::store::postgres) const fn is_on(self, is_direct: bool) -> bool {
        match self {
            Self::On => true,
            Self::Off => false,
            Self::Auto => is_direct,
        }
    }
}

/// The key that a server gives with a connection, for cancelling, names the process that serves it. A pooler gives keys
/// of its own, because that process changes.
pub(in crate::store::postgres) async fn is_direct(client: &Client) -> Result<bool, Error> {
    let (answering, named) = (backend(client).await?, named_in_key(client).await);
    Ok(answering.is_some() && answering == named)
}

/// The server process that answers now.
async fn backend(client: &Client) -> Result<Option<i32>, Error> {
    let answers = client.simple_query("SELECT pg_backend_pid()").await?;
    Ok(first(&answers).and_then(|pid| pid.parse().ok()))
}

/// The first column of the first row.
pub(in crate::store::postgres) fn first(answers: &[SimpleQueryMessage]) -> Option<&str> {
    answers.iter().find_map(|answer| if let SimpleQueryMessage::Row(row) = answer { row.get(0) } else { None })
}

/// The driver does not expose the key, but writes it into a request to cancel. Such a request is made here and sent
/// nowhere.
async fn named_in_key(client: &Client) -> Option<i32> {
    let (ours, mut theirs) = duplex(64);
    // If the driver asks for TLS first, the answer is yes.
    theirs.write_all(b"S").await.ok()?;
    client.cancel_token().cancel_query_raw(ours, Plain).await.ok()?;
    let mut request = Vec::new();
    theirs.read_to_end(&mut request).await.ok()?;
    // It ends with the process and the secret, four bytes each.
    let key = request.last_chunk::<8>()?;
    Some(i32::from_be_bytes(*key.first_chunk()?))
}

/// No encryption in place of TLS.
struct Plain;

impl TlsConnect<DuplexStream> for Plain {
    type Stream = Bare;
    type Error = io::Error;
    type Future = std::future::Ready<io::Result<Bare>>;

    fn connect(self, stream: DuplexStream) -> Self::Future {
        std::future::ready(Ok(Bare(stream)))
    }
}

struct Bare(DuplexStream);

impl TlsStream for Bare {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for Bare {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Bare {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
