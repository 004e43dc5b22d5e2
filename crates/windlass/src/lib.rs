//! Durable jobs in your own process: stored in SQLite or Postgres, retried by policies you can read, run by plain async
//! functions. No server is needed.
//!
//! ```toml
//! [dependencies]
//! windlass = "0.1"                                     # SQLite; for Postgres: features = ["postgres", "tls"]
//! serde = { version = "1", features = ["derive"] }
//! tokio = { version = "1", features = ["full"] }
//! ```
//!
//! Rust 1.95 or newer.
//!
//! ```
//! use serde::{Deserialize, Serialize};
//! use windlass::{Attempt, Failure, JobKind, Windlass, Worker};
//!
//! #[derive(Serialize, Deserialize, JobKind)]
//! #[job(kind = "email", queue = "email", retry = "full-jitter")]
//! struct SendEmail { to: String }
//!
//! // What it returns is kept with the job; an error is a failure that is retried.
//! async fn send_email(job: SendEmail, attempt: Attempt) -> Result<(), Failure> {
//!     attempt.note(format!("to {}", job.to));
//!     Ok(())
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let url = "memory:";
//! # #[cfg(any())]
//! let url = "sqlite:jobs.db";
//! let windlass = Windlass::open(url).await?;
//! // Once this returns, the job survives a crash.
//! let id = windlass.enqueue(SendEmail { to: "ann@example.org".into() }).await?;
//!
//! let done = windlass.wait(id); // a service would wait for `tokio::signal::ctrl_c()`
//! Worker::new(&windlass).handle(send_email).queue("email", 50).run(done).await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Where to find what
//! - Store jobs: [`Windlass::enqueue`], [`Windlass::enqueue_many`], [`Windlass::enqueue_all`]; inside a transaction of
//!   your own: [`Enqueue::enqueue_in`].
//! - Run them: [`Worker`]; around every handler: [`Worker::wrap`]; what a handler may return: [`HandlerError`].
//! - Test code that uses jobs, in virtual time: the module `testing` (feature `testing`).
//! - Count: `Metrics` (feature `metrics`), [`Windlass::events`]. Trace: [`telemetry`].
//!
//! # Features
//! | Feature | Default | Gives |
//! |---|---|---|
//! | `sqlite` | yes | stores of the form `sqlite:FILE` |
//! | `macros` | yes | `#[derive(JobKind)]` |
//! | `postgres` | | stores of the form `postgres://…`, over plain connections |
//! | `tls` | | TLS to Postgres |
//! | `http` | | jobs that call URLs, and webhooks |
//! | `anyhow` | | failures inside `anyhow::Error` keep their class and advice |
//! | `metrics` | | metrics for Prometheus |
//! | `sealing` | | values at rest sealed with a key ring |
//! | `testing` | | the test kit |

#![deny(missing_docs)]

pub mod alert;
mod attempt;
pub mod client;
mod clock;
mod event;
mod executor;
mod fingerprint;
mod handler_error;
mod job;
mod json_text;
mod leases;
#[doc(hidden)]
pub mod low_level;
#[cfg(feature = "metrics")]
mod metrics;
pub mod protocol;
mod random;
pub mod remote;
#[cfg(feature = "sealing")]
mod sealing;
mod store;
mod tally;
pub mod telemetry;
#[cfg(feature = "testing")]
pub mod testing;
mod transaction;
mod upkeep;
mod wake;
mod webhook;
mod worker;

// What an application needs, by one path each. What the client's handles take and answer is in `client`.

pub use attempt::Attempt;
pub use client::enqueue::batch::{EnqueueEach, EnqueueMany};
pub use client::enqueue::draft::DraftError;
pub use client::enqueue::retry::{IntoRetry, Retry};
pub use client::enqueue::typed::RetryPolicy;
pub use client::enqueue::{Enqueue, EnqueueError};
pub use client::open::WindlassBuilder;
pub use client::windlass::{OpenError, Windlass};
pub use clock::Clock;
/// The pool that a store can be opened on; callers need this version of it.
#[cfg(feature = "deadpool")]
pub use deadpool_postgres;
pub use event::{AttemptLog, Event, EventKind, Events, Observe};
pub use executor::handlers::JobKind;
#[cfg(feature = "http")]
pub use executor::http;
pub use executor::middleware::Next;
pub use executor::{Execute, Executed, Timeout};
pub use handler_error::{BoxError, HandlerError, cancel, snooze};
pub use job::{Job, RunAt};
#[cfg(feature = "metrics")]
pub use metrics::{Metrics, TenantLabel};
pub use random::Random;
/// The driver whose transactions jobs can be stored and completed in; callers need this version of it.
#[cfg(feature = "sqlite")]
pub use rusqlite;
#[cfg(feature = "sealing")]
pub use sealing::{KeyRing, KeyRingError};
pub use store::{Migrations, Options, StoreError};
/// The driver whose transactions jobs can be stored and completed in; callers need this version of it.
#[cfg(feature = "postgres")]
pub use tokio_postgres;
pub use tokio_util::sync::CancellationToken;
#[cfg(feature = "postgres")]
pub use transaction::driver;
pub use transaction::{CompleteIn, EnqueueIn, TransactionError};
pub use windlass_core as core;
pub use windlass_core::{Delivery, Failure, JobId, Millis, Outcome, Policy, Priority, Reason, State, Timestamp};
#[cfg(feature = "macros")]
pub use windlass_macros::JobKind;
pub use worker::shutdown::IntoShutdown;
pub use worker::{Upkeep, Worker, WorkerError};
