//! Contact with the server: notices a server that went silent, although its connections look alive. A statement may
//! take long, so a late answer alone means nothing: whether the server lives is found out with a connection of its own.

use crate::clock::Stopwatch;
use crate::store::StoreError;
use crate::store::postgres::Inner;
use crate::store::postgres::connection::connect::{Connector, Link};
use crate::store::postgres::connection::fault;
use crate::store::postgres::connection::pool::Source;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use windlass_core::Millis;

/// How long a server may be silent before its connections are given up, unless the URL says otherwise.
pub(in crate::store::postgres) const SILENCE: Duration = Duration::from_secs(4);
/// A statement without an answer for this long makes the server suspect.
const SUSPECT: Duration = Duration::from_secs(1);
/// How often waiting statements are looked at.
const LOOK: Duration = Duration::from_millis(250);
/// How long a suspect server has to accept a connection.
const PROBE: Duration = Duration::from_secs(2);
/// How long a host has to accept a connection while the server is away, and the pause between two tries.
const AGAIN: (Duration, Duration) = (Duration::from_secs(1), Duration::from_millis(200));
/// A server that was found alive is not asked again for this long.
const TRUSTED: Duration = Duration::from_secs(5);

/// How much longer than a server's silence a node may need to find its successor: until its next call, until the answer
/// is late, and for the probes.
const FIND: Duration = Duration::from_secs(6);

/// What one store knows about its server.
#[derive(Debug)]
pub(in crate::store::postgres) struct Contact {
    links: Mutex<Vec<Weak<LinkState>>>,
    /// Why nobody can connect now; `None` as long as the server is not known to be away.
    away: watch::Sender<Option<Arc<str>>>,
    silence: Duration,
}

/// What one connection waits for.
#[derive(Debug, Default)]
pub(in crate::store::postgres) struct LinkState {
    /// Names the server process: a standby that was promoted has another.
    server: OnceLock<String>,
    waiting: Mutex<Waiting>,
    /// Closes the connection.
    pub(in crate::store::postgres) end: CancellationToken,
}

#[derive(Debug, Default)]
struct Waiting {
    statements: usize,
    /// Since the last answer, or since the first statement was sent.
    since: Option<Stopwatch>,
    trusted: Option<Stopwatch>,
}

/// A statement under way. Dropping it counts as an answer.
#[derive(Debug)]
pub(in crate::store::postgres) struct UnderWay(Arc<LinkState>);

impl LinkState {
    pub(in crate::store::postgres) fn ask(self: &Arc<Self>) -> UnderWay {
        let mut waiting = lock(&self.waiting);
        if waiting.statements == 0 {
            *waiting = Waiting { statements: 0, since: Some(Stopwatch::start()), trusted: None };
        }
        waiting.statements += 1;
        UnderWay(self.clone())
    }

    pub(in crate::store::postgres) fn is_of(&self, server: String) {
        // Read once, right after connecting.
        let _ = self.server.set(server);
    }

    /// How long the server has not answered, unless it was found alive meanwhile.
    fn silent_for(&self) -> Option<Duration> {
        let waiting = lock(&self.waiting);
        let is_trusted = waiting.trusted.as_ref().is_some_and(|trusted| trusted.elapsed() < TRUSTED);
        waiting.since.as_ref().filter(|_| waiting.statements > 0 && !is_trusted).map(Stopwatch::elapsed)
    }

    fn trust(&self) {
        lock(&self.waiting).trusted = Some(Stopwatch::start());
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let mut waiting = lock(&self.0.waiting);
        waiting.statements -= 1;
        (waiting.since, waiting.trusted) = (Some(Stopwatch::start()), None);
    }
}

impl Contact {
    pub(in crate::store::postgres) fn new(silence: Duration) -> Arc<Self> {
        Arc::new(Self { links: Mutex::default(), away: watch::Sender::new(None), silence })
    }

    /// How long a node may take to notice that its server is gone and another one has taken over.
    pub(in crate::store::postgres) fn notice_time(&self) -> Millis {
        Millis::from(self.silence + FIND)
    }

    /// Watches over a new connection.
    pub(in crate::store::postgres) fn add(&self) -> Arc<LinkState> {
        let state = Arc::new(LinkState::default());
        let mut links = lock(&self.links);
        links.retain(|link| link.strong_count() > 0);
        links.push(Arc::downgrade(&state));
        state
    }

    /// Refuses at once while the server is away: whoever waits would only wait longer.
    pub(in crate::store::postgres) fn check(&self) -> Result<(), StoreError> {
        self.away.borrow().as_ref().map_or(Ok(()), |why| Err(StoreError::unavailable(why.to_string())))
    }

    /// Waits until the server is known to be away.
    pub(in crate::store::postgres) async fn lost(&self) {
        // The sender lives as long as this future.
        let _ = self.away.subscribe().wait_for(Option::is_some).await;
    }

    fn links(&self) -> Vec<Arc<LinkState>> {
        lock(&self.links).iter().filter_map(Weak::upgrade).collect()
    }

    fn suspects(&self) -> Vec<Arc<LinkState>> {
        let is_suspect = |link: &Arc<LinkState>| link.silent_for().is_some_and(|silent| silent >= SUSPECT);
        self.links().into_iter().filter(is_suspect).collect()
    }

    fn end_all(&self, unless: impl Fn(&LinkState) -> bool) -> usize {
        let ended: Vec<_> = self.links().into_iter().filter(|link| !unless(link)).collect();
        ended.iter().for_each(|link| link.end.cancel());
        ended.len()
    }
}

/// Watches the server until the store is closed.
pub(in crate::store::postgres) async fn watch(inner: Arc<Inner>) {
    let Source::Own(connector) = inner.pool.source() else { return };
    let contact = connector.contact();
    loop {
        tokio::time::sleep(LOOK).await;
        let suspects = contact.suspects();
        if suspects.is_empty() {
            continue;
        }
        match probe(connector, PROBE).await {
            Ok(server) => {
                for suspect in suspects.iter().filter(|link| link.server.get() == Some(&server)) {
                    suspect.trust();
                }
                if suspects.iter().any(|link| link.server.get().is_some_and(|old| *old != server)) {
                    let count = contact.end_all(|link| link.server.get().is_none_or(|of| *of == server));
                    tracing::warn!(count, "another server has taken over: connections to the old one were given up");
                    inner.wake.ring();
                }
            }
            // A server that refuses a connection has answered. Of several hosts another one may have refused it.
            Err(error) if connector.has_one_host() && fault::is_refusal(&error) => {
                suspects.iter().for_each(|link| link.trust());
            }
            Err(error) => {
                if !stays_silent(contact, &suspects).await {
                    continue;
                }
                let silence = contact.silence;
                contact.away.send_replace(Some(format!("Postgres did not answer for {silence:?} ({error})").into()));
                let count = contact.end_all(|_| false);
                tracing::warn!(count, %error, "Postgres did not answer for {silence:?}: its connections were given up");
                find_again(&inner, connector, contact).await;
            }
        }
    }
}

/// Waits until one of the suspects has been silent for too long; false if all of them got answers.
async fn stays_silent(contact: &Contact, suspects: &[Arc<LinkState>]) -> bool {
    loop {
        let longest = suspects.iter().filter_map(|link| link.silent_for()).max().filter(|silent| *silent >= SUSPECT);
        let Some(silent) = longest else { return false };
        if silent >= contact.silence {
            return true;
        }
        tokio::time::sleep(LOOK.min(contact.silence - silent)).await;
    }
}

/// Tries the hosts until one of them accepts connections.
async fn find_again(inner: &Inner, connector: &Connector, contact: &Contact) {
    let (limit, pause) = AGAIN;
    while let Err(error) = probe(connector, limit).await {
        tracing::debug!(%error, "Postgres is still away");
        tokio::time::sleep(pause).await;
    }
    contact.away.send_replace(None);
    tracing::info!("Postgres accepts connections again");
    inner.wake.ring();
}

/// Connects, and asks which server it is.
async fn probe(connector: &Connector, limit: Duration) -> Result<String, StoreError> {
    let probing = async {
        let link: Link = connector.connect_within(None, limit).await?;
        link.server().await
    };
    let late = || StoreError::unavailable("no connection in time");
    tokio::time::timeout(limit + limit, probing).await.map_err(|_| late())?
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
