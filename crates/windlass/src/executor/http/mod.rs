//! The executor `http`: an attempt is a call to a URL. It runs HTTP jobs and webhook deliveries alike.
//!
//! One attempt goes through these files, in this order:
//!
//! | file | step |
//! |---|---|
//! | [`check`](check_call) | before storing: can this call be made? |
//! | `slots` | wait for a slot: calls per host and in all are capped |
//! | `request` | method, headers, body; the signature of a signed call |
//! | `connect` | the guarded connector: resolve, check, dial, compare the peer, start TLS |
//! | `answer` | status → success or failure class; `Retry-After`; the first 4 KiB of a failing body |
//! | `fault` | no answer: timeout, refused, broken, denied → failure class |
//!
//! # What it promises
//! - **Nothing reaches a denied address.** Every connection is opened by the guarded connector, which checks the
//!   address that it dials; see [`Egress`] for the rules. Redirects are not followed, proxies in the environment are
//!   not used, a connection is never shared between executors (and so between egress rules).
//! - **Bounded.** Resolving, connecting and the TLS handshake take at most 5 s each, a whole call at most its timeout
//!   (which is at most an hour),
//!   waiting for a slot at most [`HttpOptions::slot_wait`] (after which the job is snoozed, which counts as no
//!   failure). At most 64 KiB of a response are read, within 2 s of its head; nothing is decompressed. Heads are
//!   limited to 64 KiB.
//! - **The status decides.** 2xx is success, even if the body stalls or breaks off afterwards.
//! - **The same on every attempt:** body, `Idempotency-Key`, `webhook-id`. `webhook-timestamp` and `webhook-signature`
//!   are made for each attempt.
//! - **HTTP/1.1** with connection reuse. One connection carries one call at a time, so that a stalled receiver does not
//!   delay other calls.
//! - Dropping the future of a call drops its connection.

mod answer;
mod check;
mod fault;
mod headers;
mod limit;
mod network;
mod options;
mod request;
mod retry_after;
mod target;
#[cfg(test)]
mod tests;

pub use crate::client::enqueue::outgoing::{MASK, mask_after_host, mask_credentials, mask_url};
pub use answer::KEPT_BYTES;
pub(crate) use check::TargetRules;
pub use check::{CallError, check_call, check_url};
pub use fault::{BAD_CALL, CONNECT_ERROR, DNS_ERROR, EGRESS_DENIED, PROTOCOL_ERROR, TLS_ERROR};
pub use headers::{MAX_HEADER_BYTES, MAX_HEADERS, mask_headers};
pub use ipnet::IpNet;
pub use network::address::Egress;
pub use network::dial::{Dial, TcpDial};
pub use network::resolve::{Resolve, SystemResolver};
pub use options::{DEFAULT_CALLS, DEFAULT_CALLS_PER_HOST, DEFAULT_SLOT_WAIT, DEFAULT_TIMEOUT, HttpOptions, RootsError};
pub use target::MAX_URL_BYTES;
pub use windlass_core::job::MAX_CALL_TIMEOUT as MAX_TIMEOUT;
pub use windlass_core::slots::{Percent, SlotShares};

use crate::client::enqueue::outgoing::Outgoing;
use crate::client::windlass::Windlass;
use crate::clock::Clock;
use crate::job::{HttpCall, Job};
use crate::telemetry::{CallTrace, OpenCall};
use bytes::Bytes;
use fault::{Fault, Phase};
use http::Response;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use limit::within;
use network::connect::GuardedConnector;
use network::slots::Slots;
use network::wire::Gauge;
use request::{Reuse, Sender, Sent};
use std::sync::Arc;
use std::time::Duration;
use target::Target;
use windlass_core::slots::SlotLimits;
use windlass_core::{Delivery, Failure, Millis, Outcome, Progress};

/// How long an idle connection waits for its next call. Common servers hang up after 5 s. A shorter time makes it
/// unlikely that a call uses a connection that is being closed.
const IDLE_LIMIT: Duration = Duration::from_secs(4);
/// Most bytes of a response's head.
const MAX_HEAD_BYTES: usize = 64 * 1024;
/// Most headers of a response.
const MAX_ANSWER_HEADERS: usize = 128;
/// How long a job that got no slot is snoozed, so that calls to other hosts come first.
const BUSY_SNOOZE: Millis = Millis::from_secs(5);

/// Makes the calls of HTTP jobs and webhook deliveries. Cheap to clone; clones share connections and slots.
#[derive(Clone)]
pub struct HttpExecutor(Arc<Inner>);

struct Inner {
    client: Client<GuardedConnector, Full<Bytes>>,
    slots: Arc<Slots>,
    /// Connections open, idle ones included.
    open: Gauge,
    options: HttpOptions,
    clock: Clock,
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Called {
    /// The outcome of the attempt.
    pub outcome: Outcome,
    /// `HTTP 200`: the status, if there was an answer.
    pub note: Option<String>,
}

impl HttpExecutor {
    /// An executor with these options.
    #[must_use]
    pub fn new(options: HttpOptions, clock: Clock) -> Self {
        let open = Gauge::default();
        let connector = GuardedConnector::new(&options, clock.clone(), open.clone());
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_LIMIT)
            .pool_max_idle_per_host(options.calls_per_host)
            .http1_max_buf_size(MAX_HEAD_BYTES)
            .http1_max_headers(MAX_ANSWER_HEADERS)
            .build(connector);
        let slots = Arc::new(Slots::new(options.calls_per_host, options.calls));
        Self(Arc::new(Inner { client, slots, open, options, clock }))
    }

    /// Makes the call of one attempt. Never panics; bounded in time and memory. Dropping the future aborts the call.
    ///
    /// The executor enforces the call's timeout, which starts when the call has its slot. Do not wrap it in another
    /// timeout.
    pub async fn call(&self, job: &Job) -> Called {
        let signers: Vec<String> = job.http.iter().filter_map(|call| call.secret.clone()).collect();
        self.call_from("", job, &signers, None).await
    }

    /// The same with the installation's id, which is part of the ids that the receiver sees, the secrets that sign, and
    /// the trace that the call is part of.
    pub(crate) async fn call_from(
        &self,
        installation: &str,
        job: &Job,
        signers: &[String],
        trace: Option<CallTrace<'_>>,
    ) -> Called {
        let sender = Sender { installation, signers, user_agent: &self.0.options.user_agent };
        match self.0.answer(sender, job, trace).await {
            Ok(called) => called,
            Err(fault) => Called { outcome: Outcome::Failed(fault.failure()), note: None },
        }
    }

    /// From now on `windlass` refuses jobs and webhooks whose URL shows a target that this executor would not call,
    /// when they are stored. Without it, they fail when they are called.
    pub fn guard(&self, windlass: &Windlass) {
        windlass.inner().set_outgoing(Outgoing { rules: Some(self.rules()) });
    }

    /// What [`HttpExecutor::check_target`] checks, without the executor.
    pub(crate) fn rules(&self) -> TargetRules {
        TargetRules { egress: self.0.options.egress.clone(), deny: self.0.options.deny.clone() }
    }

    /// How many of `slots` calls may be of one tenant, and how many to one host.
    pub(crate) fn limits(&self, slots: u32) -> SlotLimits {
        let limits = self.0.options.shares.of(slots);
        let per_host = u32::try_from(self.0.options.calls_per_host).unwrap_or(u32::MAX).max(1);
        SlotLimits { destination: limits.destination.min(per_host), ..limits }
    }

    /// Whether a URL's target may be reached, as far as the URL itself shows. Addresses and internal names are checked
    /// here. Other names are checked when they are resolved for a call.
    ///
    /// # Errors
    /// The URL is wrong, or its target is denied.
    pub fn check_target(&self, url: &str) -> Result<(), CallError> {
        self.rules().check(url)
    }
}

impl Inner {
    async fn answer(&self, sender: Sender<'_>, job: &Job, trace: Option<CallTrace<'_>>) -> Result<Called, Fault> {
        let call = job.http.as_deref().ok_or_else(|| Fault::bad_call("the job has nothing to call"))?;
        let target = check::parse_url(&call.url).map_err(|error| Fault::bad_call(error.to_string()))?;
        // A target that the URL itself shows to be denied need not wait for a slot. The connector checks again.
        target.check(&self.options.egress, &self.options.deny)?;
        let waiting = self.slots.acquire(target.host_key());
        let Ok(Ok(_slot)) = within(&self.clock, self.options.slot_wait, waiting).await else {
            return Ok(busy(job.delivery));
        };
        let limit = job.timeout.unwrap_or(self.options.default_timeout).min(MAX_TIMEOUT);
        let span = trace.map(|trace| trace.begin(job, call, &self.clock));
        let traceparent = span.as_ref().map(OpenCall::traceparent);
        let answered =
            self.within_limit(Sent { sender, job, call, traceparent: traceparent.as_deref() }, &target, limit);
        let (status, answered) = match answered.await {
            Ok((status, called)) => (Some(status), Ok(called)),
            Err(fault) => (None, Err(fault)),
        };
        if let Some(span) = span {
            end(span, status, &answered);
        }
        answered
    }

    /// The call, with the status of its answer.
    async fn within_limit(&self, sent: Sent<'_>, target: &Target, limit: Millis) -> Result<(u16, Called), Fault> {
        let started = self.clock.monotonic();
        match within(&self.clock, limit, self.exchange(sent, target)).await {
            Ok(response) => {
                let response = response?;
                let status = response.status().as_u16();
                let left = limit - (self.clock.monotonic() - started);
                Ok((status, self.judge(response, sent.call, left).await))
            }
            Err(limit::Elapsed) => Err(Fault::Timeout { phase: Phase::Whole, after: limit }),
        }
    }

    async fn exchange(&self, sent: Sent<'_>, target: &Target) -> Result<Response<Incoming>, Fault> {
        // Idle connections are kept only up to the number of calls, so there are never more than twice as many open.
        let reuse = if self.open.count() < self.options.calls { Reuse::Keep } else { Reuse::Close };
        let request = request::request(sent, target, reuse, self.clock.now())?;
        self.client.request(request).await.map_err(|error| Fault::from_client(&error))
    }

    async fn judge(&self, response: Response<Incoming>, call: &HttpCall, left: Millis) -> Called {
        let note = Some(format!("HTTP {}", response.status().as_u16()));
        let outcome = match answer::judge(response, left, &self.clock).await {
            None => Outcome::Succeeded,
            Some(failure) => {
                let message = headers::mask_echoes(&failure.message, &call.headers);
                Outcome::Failed(Failure { message, ..failure })
            }
        };
        Called { outcome, note }
    }
}

/// Ends the span of a call.
fn end(span: OpenCall<'_>, status: Option<u16>, answered: &Result<Called, Fault>) {
    match answered {
        Ok(Called { outcome: Outcome::Failed(failure), .. }) => span.end(status, Some(failure)),
        Ok(_) => span.end(status, None),
        Err(fault) => span.end(status, Some(&fault.failure())),
    }
}

/// A job that got no slot made no call: it waits without a counted failure.
pub(super) fn busy(delivery: Delivery) -> Called {
    let outcome = match delivery {
        Delivery::AtLeastOnce => Outcome::Snoozed(BUSY_SNOOZE),
        // A snoozed attempt counts as started, and this job may start only once.
        Delivery::AtMostOnce => Outcome::Released(Progress::NotStarted),
    };
    Called { outcome, note: Some("the target's call slots were busy".into()) }
}

/// What a job calls: scheme, host and port. Jobs without a usable URL fail at once, so they need none.
pub(super) fn destination(job: &Job) -> String {
    job.http.as_deref().and_then(|call| windlass_core::gate::destination(&call.url)).unwrap_or_default()
}

impl std::fmt::Debug for HttpExecutor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpExecutor").field("options", &self.0.options).finish_non_exhaustive()
    }
}
