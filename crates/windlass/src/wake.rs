//! Wake-ups: signal waiting workers of this process that work may have become due. A lost wake-up only adds latency.

use tokio::sync::watch;

/// A signal that anyone can send and anyone can wait for.
#[derive(Debug, Clone)]
pub struct Wake(watch::Sender<u64>);

/// Waits for the signal. Several signals between two waits count as one.
#[derive(Debug)]
pub struct Waker(watch::Receiver<u64>);

impl Default for Wake {
    fn default() -> Self {
        Self(watch::Sender::new(0))
    }
}

impl Wake {
    /// Wakes the workers of this process.
    pub fn ring(&self) {
        self.0.send_modify(|rings| *rings = rings.wrapping_add(1));
    }

    /// Whether anyone is waiting.
    #[must_use]
    pub fn is_watched(&self) -> bool {
        self.0.receiver_count() > 0
    }

    /// Waits for the next wake-up from now on.
    #[must_use]
    pub fn subscribe(&self) -> Waker {
        Waker(self.0.subscribe())
    }
}

impl Waker {
    /// Returns when a signal was sent since the last return. Cancel-safe.
    pub async fn rung(&mut self) {
        if self.0.changed().await.is_err() {
            // The store is gone: there is nothing left to wait for.
            std::future::pending::<()>().await;
        }
    }
}
