//! The socket of a connection. It records when the client stops reading, so that a stalled connection can be closed.

use super::connections::ConnectionSlot;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

#[derive(Debug)]
pub(super) struct Wire {
    stream: TcpStream,
    slot: ConnectionSlot,
    /// Set while the socket accepts no more bytes: the response counts as being sent.
    blocked: Option<super::connections::Sending>,
}

impl Wire {
    pub(super) fn new(stream: TcpStream, slot: ConnectionSlot) -> Self {
        Self { stream, slot, blocked: None }
    }

    fn note<T>(&mut self, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        match &written {
            Poll::Ready(_) => {
                if self.blocked.take().is_some() {
                    self.slot.progress();
                }
            }
            Poll::Pending => {
                if self.blocked.is_none() {
                    self.blocked = Some(self.slot.sending());
                }
            }
        }
        written
    }
}

impl AsyncRead for Wire {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Wire {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.note(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, parts);
        self.note(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
