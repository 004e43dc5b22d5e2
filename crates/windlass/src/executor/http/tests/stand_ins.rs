//! Name servers and networks for tests: scripted, counted, stalled.

use super::super::{Dial, Resolve};
use async_trait::async_trait;
use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::net::TcpStream;

/// Answers every lookup with the next script line; the last one repeats.
#[derive(Debug)]
pub(super) struct Script {
    answers: Mutex<VecDeque<Vec<IpAddr>>>,
    asked: AtomicUsize,
}

impl Script {
    pub(super) fn new(answers: &[&[&str]]) -> Self {
        let line = |line: &&[&str]| line.iter().map(|text| text.parse().expect(text)).collect();
        Self { answers: Mutex::new(answers.iter().map(line).collect()), asked: AtomicUsize::new(0) }
    }

    pub(super) fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl Resolve for Script {
    async fn resolve(&self, _: &str) -> io::Result<Vec<IpAddr>> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let mut answers = self.answers.lock().unwrap();
        if answers.len() > 1 {
            Ok(answers.pop_front().unwrap())
        } else {
            answers.front().cloned().ok_or_else(|| io::Error::other("no such name"))
        }
    }
}

/// A name server that never answers.
#[derive(Debug, Default)]
pub(super) struct Silence(pub(super) AtomicUsize);

#[async_trait]
impl Resolve for Silence {
    async fn resolve(&self, _: &str) -> io::Result<Vec<IpAddr>> {
        self.0.fetch_add(1, Ordering::SeqCst);
        std::future::pending().await
    }
}

/// Records every address that is dialled, and then does what the test chose.
#[derive(Debug)]
pub(super) struct Spy {
    dialled: Mutex<Vec<SocketAddr>>,
    then: Then,
}

#[derive(Debug)]
pub(super) enum Then {
    /// The connection is refused.
    Refuse,
    /// Packets are lost.
    Stall,
    /// Packets to this address are lost, others arrive.
    StallAt(IpAddr),
    /// Connects to the requested address.
    Connect,
    /// Connects to another address, as network address translation might.
    Detour(SocketAddr),
}

impl Spy {
    pub(super) fn new(then: Then) -> Self {
        Self { dialled: Mutex::default(), then }
    }

    pub(super) fn dialled(&self) -> Vec<SocketAddr> {
        self.dialled.lock().unwrap().clone()
    }
}

#[async_trait]
impl Dial for Spy {
    async fn dial(&self, address: SocketAddr) -> io::Result<TcpStream> {
        self.dialled.lock().unwrap().push(address);
        match self.then {
            Then::Refuse => Err(io::ErrorKind::ConnectionRefused.into()),
            Then::Stall => std::future::pending().await,
            Then::StallAt(dead) if dead == address.ip() => std::future::pending().await,
            Then::StallAt(_) | Then::Connect => TcpStream::connect(address).await,
            Then::Detour(other) => TcpStream::connect(other).await,
        }
    }
}
