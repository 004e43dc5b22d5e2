//! One connection: the greeting, then one command after another.

use super::command::{self, Command};
use super::hello::{self, Hello};
use super::lines::{self, LineError, MAX_HELLO, MAX_LINE};
use super::outage::Waiting;
use super::reply::Reply;
use super::workers::Workers;
use super::{Counters, Options};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use windlass::Windlass;
use windlass::remote::{Remote, RemoteWorker, WorkScope};

/// How long a client may take to say HELLO.
const HELLO_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a client may take to read a reply.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// The salt's length in bytes.
const SALT: usize = 8;

/// What all connections share.
#[derive(Debug, Clone)]
pub(super) struct Shared {
    pub(super) windlass: Windlass,
    pub(super) remote: Remote,
    pub(super) workers: Workers,
    pub(super) options: Arc<Options>,
    pub(super) counters: Arc<Counters>,
}

/// A client that has said HELLO.
#[derive(Debug)]
pub(super) struct Session {
    shared: Shared,
    name: String,
}

/// Serves a connection until it ends.
pub(super) async fn run<S: AsyncRead + AsyncWrite + Unpin>(stream: S, shared: Shared) -> Result<(), LineError> {
    let mut stream = BufReader::new(stream);
    let salt = hello::hex(&shared.windlass.random().bytes::<SALT>());
    let password = shared.options.password.clone();
    let greeting = hello::hi(password.as_ref().map(|_| salt.as_str()));
    send(&mut stream, greeting.as_bytes()).await?;
    let line = tokio::time::timeout(HELLO_TIMEOUT, lines::next(&mut stream, MAX_HELLO)).await;
    let line = line.map_err(|_| LineError::TooSlow)??;
    let hello = match hello::read(&line, password.as_deref(), &salt) {
        Ok(hello) => hello,
        Err(why) => return send(&mut stream, &Reply::Error(why).encode()).await,
    };
    send(&mut stream, &Reply::Ok.encode()).await?;
    let session = Session::new(shared, hello);
    loop {
        let line = match lines::next(&mut stream, MAX_LINE).await {
            Ok(line) => line,
            Err(error @ (LineError::TooLong(_) | LineError::NotText)) => {
                // Where the next command begins is unknown, so the connection ends.
                return send(&mut stream, &Reply::Error(error.to_string()).encode()).await;
            }
            Err(LineError::End) => return Ok(()),
            Err(error @ (LineError::TooSlow | LineError::Io(_))) => return Err(error),
        };
        session.shared.counters.command();
        match command::parse(&line) {
            Ok(Command::End) => return send(&mut stream, &Reply::Ok.encode()).await,
            Ok(Command::Fetch(queues)) => session.fetch_on(&mut stream, &queues).await?,
            Ok(command) => send(&mut stream, &session.answer(&command).await.encode()).await?,
            Err(why) => send(&mut stream, &Reply::Error(why).encode()).await?,
        }
    }
}

async fn send<S: AsyncWrite + Unpin>(stream: &mut S, bytes: &[u8]) -> Result<(), LineError> {
    let write = async {
        stream.write_all(bytes).await?;
        stream.flush().await
    };
    tokio::time::timeout(WRITE_TIMEOUT, write).await.map_err(|_| LineError::TooSlow)??;
    Ok(())
}

/// Ends when the client has closed the connection.
async fn gone<S: AsyncRead + Unpin>(stream: &mut BufReader<S>) {
    match stream.fill_buf().await {
        // The next command is here already: the client is not gone.
        Ok(arrived) if !arrived.is_empty() => std::future::pending().await,
        Ok(_) | Err(_) => {}
    }
}

impl Session {
    fn new(shared: Shared, hello: Hello) -> Self {
        let now = shared.windlass.clock().now();
        if let Some(wid) = &hello.wid {
            shared.workers.hello(wid, &hello.hostname, &hello.labels, now);
        }
        Self { shared, name: hello.wid.unwrap_or_else(|| "producer".into()) }
    }

    pub(super) fn windlass(&self) -> &Windlass {
        &self.shared.windlass
    }

    pub(super) fn remote(&self) -> &Remote {
        &self.shared.remote
    }

    pub(super) fn workers(&self) -> &Workers {
        &self.shared.workers
    }

    pub(super) fn counters(&self) -> &Counters {
        &self.shared.counters
    }

    pub(super) fn may_flush(&self) -> bool {
        self.shared.options.allow_flush
    }

    /// The worker's name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The worker in leases and in the ledger.
    pub(super) fn worker(&self) -> RemoteWorker {
        RemoteWorker::new(format!("faktory:{}", self.name), WorkScope::all())
    }

    /// Fetches, unless the client goes away meanwhile. A job that it did not receive is given back.
    async fn fetch_on<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: &mut BufReader<S>,
        queues: &[&str],
    ) -> Result<(), LineError> {
        let fetched = tokio::select! {
            fetched = self.fetch(queues) => fetched,
            () = gone(stream) => return Err(LineError::End),
        };
        let job = match fetched {
            Ok(Some(job)) => job,
            Ok(None) => return send(stream, &Reply::Nothing.encode()).await,
            Err(refused) => return send(stream, &refused.encode()).await,
        };
        let reply = match self.hand_out(&job).await {
            Ok(reply) => reply,
            Err(refused) => return send(stream, &refused.encode()).await,
        };
        // What is sent to a client that has just gone may be accepted, so ask first.
        let sent = tokio::select! {
            biased;
            () = gone(stream) => Err(LineError::End),
            () = std::future::ready(()) => send(stream, &reply.encode()).await,
        };
        if sent.is_err() {
            self.give_back(&job).await;
        }
        sent
    }

    async fn answer(&self, command: &Command<'_>) -> Reply {
        let waiting = Waiting::new(self.windlass().clock());
        loop {
            let answered = self.answer_once(command.clone()).await;
            if !waiting.tries_again(&answered).await {
                return answered.unwrap_or_else(|refused| refused);
            }
        }
    }

    async fn answer_once(&self, command: Command<'_>) -> Result<Reply, Reply> {
        match command {
            Command::Push(job) => self.push(job).await,
            Command::PushMany(jobs) => self.push_many(jobs).await,
            Command::Ack(jid) => self.ack(&jid).await,
            Command::Fail(fail) => self.fail(fail).await,
            Command::Beat(beat) => Ok(self.beat(&beat.wid)),
            Command::Info => self.info().await,
            Command::Flush => self.flush().await,
            Command::Mutate(mutation) => self.mutate(mutation).await,
            Command::Queue(action, names) => self.queue(action, &names).await,
            Command::NotSupported(name) => Err(Reply::Error(format!("{name} is not supported"))),
            // Both are answered where the stream is.
            Command::Fetch(_) | Command::End => Ok(Reply::Ok),
        }
    }

    /// The worker is alive; the answer says if it should stop.
    fn beat(&self, wid: &str) -> Reply {
        let now = self.windlass().clock().now();
        match self.workers().beat(wid, now) {
            None => Reply::Ok,
            Some(signal) => Reply::Text(serde_json::json!({ "state": signal.as_str() }).to_string()),
        }
    }
}
