//! A server without sockets, and clients that speak the protocol by hand.

use crate::faktory::session::{Shared, run};
use crate::faktory::{Counters, Options, Workers};
use serde_json::Value;
use std::sync::Arc;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream};
use windlass::low_level::stores::memory::MemoryStore;
use windlass::low_level::stores::{JobLife as _, Reap, Spared};
use windlass::testing::FaultyStore;
use windlass::{Clock, Job, Random, Windlass};
use windlass_core::{JobId, Millis, Timestamp};

pub(super) struct World {
    pub(super) windlass: Windlass,
    pub(super) workers: Workers,
    store: Arc<MemoryStore>,
    shared: Shared,
}

/// A connection.
pub(super) struct Client(BufReader<DuplexStream>);

impl World {
    pub(super) fn new() -> Self {
        Self::with(None, false)
    }

    pub(super) fn with(password: Option<&str>, allow_flush: bool) -> Self {
        let start = Timestamp::parse("2026-01-01T12:00:00Z").unwrap();
        let options = windlass::Options {
            clock: Clock::manual(start),
            random: Random::seeded(7),
            ..windlass::Options::default()
        };
        let store = MemoryStore::new(options);
        let windlass = Windlass::with_random(store.clone(), Random::seeded(8));
        let options = Options { password: password.map(str::to_owned), allow_flush, max_connections: 10 };
        Self::on(store, windlass, options)
    }

    /// A server whose store fails as the test chooses.
    pub(super) fn faulty() -> (Self, Arc<FaultyStore>) {
        let world = Self::new();
        let faults = FaultyStore::new(world.store.clone());
        let windlass = Windlass::with_random(faults.clone(), Random::seeded(8));
        (Self::on(world.store, windlass, (*world.shared.options).clone()), faults)
    }

    fn on(store: Arc<MemoryStore>, windlass: Windlass, options: Options) -> Self {
        let workers = Workers::default();
        let shared = Shared {
            windlass: windlass.clone(),
            remote: windlass.remote(),
            workers: workers.clone(),
            options: Arc::new(options),
            counters: Arc::new(Counters::new(windlass.clock())),
        };
        Self { windlass, workers, store, shared }
    }

    /// Another process on the same store, as after a restart.
    pub(super) fn restarted(&self) -> Self {
        Self::on(self.store.clone(), self.windlass.clone(), (*self.shared.options).clone())
    }

    /// A connection that has not said HELLO, and what the server said first.
    pub(super) async fn greeted(&self) -> (Client, String) {
        let (client, server) = tokio::io::duplex(64 * 1024);
        tokio::spawn(run(server, self.shared.clone()));
        let mut client = Client(BufReader::new(client));
        let greeting = client.line().await;
        (client, greeting)
    }

    /// Sends these bytes on a connection of their own, ends it, and returns what the server said. Panics if the server
    /// does.
    pub(super) async fn converse(&self, bytes: &[u8]) -> Vec<u8> {
        let (mut client, server) = tokio::io::duplex(64 * 1024);
        let session = tokio::spawn(run(server, self.shared.clone()));
        let talk = async {
            let mut said = Vec::new();
            let (mut from, mut to) = tokio::io::split(&mut client);
            // A server that refuses the bytes may close before it has read all of them.
            let sending = async {
                let _ = to.write_all(bytes).await;
                let _ = to.shutdown().await;
            };
            let _ = tokio::join!(sending, from.read_to_end(&mut said));
            said
        };
        tokio::pin!(talk);
        let said = loop {
            tokio::select! {
                biased;
                said = &mut talk => break said,
                () = tokio::task::yield_now() => self.windlass.clock().advance(Millis::new(10)),
            }
        };
        let _ = session.await.expect("the server does not panic");
        said
    }

    pub(super) async fn producer(&self) -> Client {
        self.connect(r#"{"v":2}"#).await
    }

    pub(super) async fn worker(&self, wid: &str) -> Client {
        self.connect(&format!(r#"{{"wid":"{wid}","hostname":"h","pid":1,"labels":["rust"],"v":2}}"#)).await
    }

    async fn connect(&self, hello: &str) -> Client {
        let (mut client, _) = self.greeted().await;
        assert_eq!(client.call(&format!("HELLO {hello}")).await, "+OK");
        client
    }

    pub(super) fn advance(&self, seconds: u64) {
        self.windlass.clock().advance(Millis::from_secs(seconds));
    }

    pub(super) async fn job(&self, id: i64) -> Job {
        self.windlass.jobs().get(JobId(id)).await.unwrap().unwrap()
    }

    /// Ends reservations whose time has run out.
    pub(super) async fn reap(&self) {
        self.store.reap(Reap::Expired { spared: Spared::default() }, 100).await.unwrap();
    }

    /// The only job.
    pub(super) async fn only(&self) -> Job {
        let jobs = self.windlass.jobs().list(&Default::default(), windlass::client::Page::newest(10)).await.unwrap();
        assert_eq!(jobs.len(), 1);
        jobs.into_iter().next().unwrap()
    }

    /// Fetches; lets time pass until the server answers.
    pub(super) async fn fetch(&self, client: &mut Client, queues: &str) -> Option<Value> {
        let text = self.call(client, &format!("FETCH {queues}")).await;
        text.starts_with('{').then(|| serde_json::from_str(&text).unwrap())
    }

    /// Calls; lets time pass until the server answers.
    pub(super) async fn call(&self, client: &mut Client, line: &str) -> String {
        let answer = client.call(line);
        tokio::pin!(answer);
        loop {
            tokio::select! {
                biased;
                text = &mut answer => return text,
                () = tokio::task::yield_now() => self.windlass.clock().advance(Millis::new(10)),
            }
        }
    }
}

impl Client {
    pub(super) async fn send(&mut self, line: &str) {
        self.0.write_all(format!("{line}\r\n").as_bytes()).await.unwrap();
    }

    pub(super) async fn send_bytes(&mut self, bytes: &[u8]) {
        // A server that refuses the bytes may close before it has read all of them.
        let _ = self.0.write_all(bytes).await;
    }

    async fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).await.unwrap();
        line.trim_end().to_owned()
    }

    /// The next reply; a text without its length.
    pub(super) async fn reply(&mut self) -> String {
        let line = self.line().await;
        match line.strip_prefix('$').map(|length| length.parse::<i64>().unwrap()) {
            None | Some(-1) => line,
            Some(length) => {
                let mut text = vec![0; length as usize + 2];
                self.0.read_exact(&mut text).await.unwrap();
                assert!(text.ends_with(b"\r\n"));
                String::from_utf8(text[..length as usize].to_vec()).unwrap()
            }
        }
    }

    pub(super) async fn call(&mut self, line: &str) -> String {
        self.send(line).await;
        self.reply().await
    }

    /// Whether the server closed the connection.
    pub(super) async fn is_closed(&mut self) -> bool {
        let mut rest = Vec::new();
        self.0.read_to_end(&mut rest).await.is_ok()
    }
}
