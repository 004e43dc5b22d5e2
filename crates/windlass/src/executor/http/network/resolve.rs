//! Resolve: looks up the addresses of a name. Behind a trait, so that tests can answer like a hostile name server.

use async_trait::async_trait;
use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Lookups at one time. A lookup that hangs keeps its thread even after its call has timed out, so lookups are counted
/// until they end. A dead name server must not use up the threads that other work needs.
const MAX_LOOKUPS: usize = 64;

/// Looks names up.
#[async_trait]
pub trait Resolve: Send + Sync + std::fmt::Debug {
    /// All addresses of `name`, in the order they should be tried.
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>>;
}

/// Asks the operating system.
#[derive(Debug, Clone)]
pub struct SystemResolver(Arc<Semaphore>);

impl Default for SystemResolver {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(MAX_LOOKUPS)))
    }
}

#[async_trait]
impl Resolve for SystemResolver {
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let permit = self.0.clone().acquire_owned().await.map_err(io::Error::other)?;
        let name = name.to_owned();
        let lookup = tokio::task::spawn_blocking(move || {
            let answers = (name.as_str(), 0).to_socket_addrs();
            drop(permit);
            answers.map(|answers| answers.map(|answer| answer.ip()).collect())
        });
        lookup.await.map_err(io::Error::other)?
    }
}
