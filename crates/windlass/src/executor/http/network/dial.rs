//! Dial: opening a connection to one address. Behind a trait, so that tests can count and stall connections.

use async_trait::async_trait;
use std::io;
use std::net::SocketAddr;
use tokio::net::TcpStream;

/// Opens connections.
#[async_trait]
pub trait Dial: Send + Sync + std::fmt::Debug {
    /// Connects to `address` and nowhere else.
    async fn dial(&self, address: SocketAddr) -> io::Result<TcpStream>;
}

/// Connects by TCP.
#[derive(Debug, Clone, Copy, Default)]
pub struct TcpDial;

#[async_trait]
impl Dial for TcpDial {
    async fn dial(&self, address: SocketAddr) -> io::Result<TcpStream> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }
}
