//! The workers that are connected, and what they were asked to do. A worker learns it from the answer to its next BEAT.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use windlass::remote::HeldAttempt;
use windlass_core::{Millis, Timestamp};

/// A worker that was silent for this long is gone.
const SEEN_WITHIN: Millis = Millis::from_secs(60);
/// The most workers that are remembered.
const MAX_WORKERS: usize = 10_000;
/// The most attempts that are remembered; others are found in the store.
const MAX_HELD: usize = 50_000;

/// What an operator wants a worker to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signal {
    /// Fetch no more jobs.
    Quiet,
    /// Stop.
    Terminate,
}

impl Signal {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Quiet => "quiet",
            Self::Terminate => "terminate",
        }
    }
}

/// A connected worker.
#[derive(Debug, Clone)]
pub(crate) struct Connected {
    pub(crate) wid: String,
    pub(crate) hostname: String,
    pub(crate) labels: Vec<String>,
    pub(crate) seen_at: Timestamp,
    pub(crate) signal: Option<Signal>,
}

/// All workers that this process serves. Clones are the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct Workers(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    workers: HashMap<String, Connected>,
    /// By worker and jid: the attempt that the worker was given. It keeps a worker that lost its reservation from
    /// ending the attempt of another.
    held: HashMap<(String, String), HeldAttempt>,
}

impl Workers {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A worker says HELLO.
    pub(super) fn hello(&self, wid: &str, hostname: &str, labels: &[String], now: Timestamp) {
        let mut state = self.state();
        state.workers.retain(|_, worker| now.since(worker.seen_at) < SEEN_WITHIN);
        if state.workers.len() < MAX_WORKERS {
            let signal = state.workers.get(wid).and_then(|worker| worker.signal);
            let (wid, hostname, labels) = (wid.to_owned(), hostname.to_owned(), labels.to_vec());
            state.workers.insert(wid.clone(), Connected { wid, hostname, labels, seen_at: now, signal });
        }
    }

    /// A worker is alive. Returns what it was asked to do.
    pub(super) fn beat(&self, wid: &str, now: Timestamp) -> Option<Signal> {
        let mut state = self.state();
        let worker = state.workers.get_mut(wid)?;
        worker.seen_at = now;
        worker.signal
    }

    /// Tells a worker what to do. False if it is not connected here.
    pub(crate) fn signal(&self, wid: &str, signal: Signal, now: Timestamp) -> bool {
        match self.state().workers.get_mut(wid) {
            Some(worker) if now.since(worker.seen_at) < SEEN_WITHIN => {
                worker.signal = Some(signal);
                true
            }
            Some(_) | None => false,
        }
    }

    /// The workers seen lately, by name.
    pub(crate) fn list(&self, now: Timestamp) -> Vec<Connected> {
        let state = self.state();
        let mut found: Vec<Connected> =
            state.workers.values().filter(|worker| now.since(worker.seen_at) < SEEN_WITHIN).cloned().collect();
        found.sort_by(|a, b| a.wid.cmp(&b.wid));
        found
    }

    pub(super) fn keep(&self, wid: &str, jid: &str, held: HeldAttempt) {
        let mut state = self.state();
        if state.held.len() >= MAX_HELD {
            state.held.clear();
        }
        state.held.insert((wid.to_owned(), jid.to_owned()), held);
    }

    pub(super) fn held(&self, wid: &str, jid: &str) -> Option<HeldAttempt> {
        self.state().held.get(&(wid.to_owned(), jid.to_owned())).copied()
    }

    pub(super) fn forget(&self, wid: &str, jid: &str) {
        self.state().held.remove(&(wid.to_owned(), jid.to_owned()));
    }
}
