//! Windlass: durable jobs with the best retry engine in the field, inside your process.
//!
//! ```
//! use windlass::{Attempt, Failure, JobKind, Windlass, Worker};
//!
//! #[derive(serde::Serialize, serde::Deserialize)]
//! struct SendEmail { to: String }
//! impl JobKind for SendEmail {
//!     const KIND: &'static str = "email";
//! }
//!
//! async fn send_email(job: SendEmail, attempt: Attempt) -> Result<(), Failure> {
//!     attempt.note(format!("to {}", job.to));
//!     Ok(())
//! }
//!
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! let windlass = Windlass::open("memory:").await?;
//! let id = windlass.enqueue(SendEmail { to: "ann@example.org".into() }).queue("email").await?;
//! let finished = async { windlass.wait(id).await.map(|_| ()).unwrap_or_default() };
//! Worker::new(&windlass).handle(send_email).queue("email", 50).run(finished).await?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! ```

pub mod alert;
pub mod attempt;
pub mod client;
pub mod clock;
pub mod event;
pub mod executor;
pub mod fingerprint;
pub mod handler_error;
pub mod job;
pub mod leases;
pub mod random;
mod remote;
pub mod store;
pub mod tally;
#[cfg(feature = "testing")]
pub mod testing;
pub mod transaction;
pub mod upkeep;
pub mod wake;
pub mod webhook;
pub mod worker;

pub use attempt::Attempt;
pub use client::batch::{EnqueueEach, EnqueueMany};
pub use client::dead_letters::ReplayedPage;
pub use client::draft::{DraftError, WebhookDraft};
pub use client::enqueue::{Enqueue, EnqueueError};
pub use client::open::WindlassBuilder;
pub use client::retry::{IntoRetry, Retry};
pub use client::windlass::{OpenError, Windlass};
pub use event::{AttemptLog, Event, EventKind, Events, Observe};
pub use executor::handlers::JobKind;
pub use executor::{Execute, Executed, Timeout};
pub use handler_error::{HandlerError, cancel, snooze};
pub use transaction::TransactionError;
pub use windlass_core as core;
pub use windlass_core::{Delivery, Failure, JobId, Millis, Outcome, Policy, Priority, Reason, State, Timestamp};
#[cfg(feature = "macros")]
pub use windlass_macros::JobKind;
pub use worker::{Upkeep, Worker, WorkerError};
