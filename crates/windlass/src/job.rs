//! Jobs as the library knows them: the job a caller wants stored, and the job a store returns.

use std::fmt;
use std::sync::Arc;
use windlass_core::job::{Kind, QueueName, Tenant};
use windlass_core::trace_context::NOT_RECORDED;
use windlass_core::verdict::Standing;
use windlass_core::{Delivery, Executor, JobId, Millis, Policy, Priority, Reason, Running, State, Timestamp};

/// JSON text that Windlass stores and never interprets.
pub type Payload = Arc<str>;

/// How long an idempotency key is remembered, unless its caller says otherwise.
pub const DEFAULT_KEY_WINDOW: Millis = Millis::from_secs(86_400);

/// A job to be stored: complete, checked, with its effective policy.
#[derive(Debug, Clone)]
pub struct NewJob {
    /// Its owner.
    pub tenant: Tenant,
    /// Its queue.
    pub queue: QueueName,
    /// Who carries out its attempts.
    pub executor: Executor,
    /// The kind, which chooses a handler.
    pub kind: Kind,
    /// Its JSON text.
    pub payload: Payload,
    /// Its priority among the due jobs of its queue.
    pub priority: Priority,
    /// When it is due.
    pub run_at: RunAt,
    /// If it is not started by then, it fails (`expired`).
    pub start_by: Option<Timestamp>,
    /// Its retry policy, all levels merged.
    pub policy: Arc<Policy>,
    /// How often its effects may happen.
    pub delivery: Delivery,
    /// Longest an attempt may take.
    pub timeout: Option<Millis>,
    /// Its idempotency key.
    pub idempotency: Option<Idempotency>,
    /// What to call, for the executor `http`.
    pub http: Option<Arc<HttpCall>>,
    /// What is called when it has finished.
    pub webhook: Option<Arc<Webhook>>,
    /// The schedule this is a run of.
    pub schedule: Option<JobId>,
    /// The job whose completion this delivery reports.
    pub parent: Option<JobId>,
    /// W3C trace context of the producer.
    pub traceparent: Option<Arc<str>>,
    /// What per-key limits, holds and breakers apply to.
    pub limit_key: Option<Arc<str>>,
}

impl NewJob {
    /// A job with default values: default tenant and queue, due now.
    #[must_use]
    pub fn new(kind: Kind, payload: impl Into<Payload>, policy: Arc<Policy>) -> Self {
        Self {
            tenant: Tenant::default(),
            queue: QueueName::default(),
            executor: Executor::Worker,
            kind,
            payload: payload.into(),
            priority: Priority::Normal,
            run_at: RunAt::Now,
            start_by: None,
            policy,
            delivery: Delivery::AtLeastOnce,
            timeout: None,
            idempotency: None,
            http: None,
            webhook: None,
            schedule: None,
            parent: None,
            traceparent: None,
            limit_key: None,
        }
    }
}

/// How many attempts a job gets at most. An at-most-once job gets one, whatever its policy says.
#[must_use]
pub const fn max_attempts(delivery: Delivery, policy: &Policy) -> u32 {
    match delivery {
        Delivery::AtMostOnce => 1,
        Delivery::AtLeastOnce => policy.max_attempts(),
    }
}

impl NewJob {
    /// How many attempts it gets at most: one, if it is at-most-once.
    #[must_use]
    pub fn max_attempts(&self) -> u32 {
        max_attempts(self.delivery, &self.policy)
    }

    /// The job as a store keeps it from then on: queued, without an attempt.
    #[must_use]
    pub fn stored(self, id: JobId, queue_id: QueueId, created_at: Timestamp, due_at: Timestamp) -> Job {
        Job {
            id,
            tenant: self.tenant,
            queue: self.queue,
            queue_id,
            executor: self.executor,
            kind: self.kind,
            payload: self.payload,
            priority: self.priority,
            state: State::Queued,
            reason: None,
            delivery: self.delivery,
            policy: self.policy,
            attempt: 0,
            failures: 0,
            crashes: 0,
            replays: 0,
            created_at,
            due_at,
            first_attempt_at: None,
            claimed_at: None,
            finished_at: None,
            previous_delay: Millis::ZERO,
            start_by: self.start_by,
            timeout: self.timeout,
            idempotency_key: self.idempotency.map(|idempotency| idempotency.key),
            cancel_requested: false,
            error_class: None,
            error: None,
            result: None,
            discarded_at: None,
            discard_reason: None,
            http: self.http,
            webhook: self.webhook,
            schedule: self.schedule,
            parent: self.parent,
            traceparent: self.traceparent,
            limit_key: self.limit_key,
        }
    }
}

/// When a new job is first due. Relative times are measured by the store's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunAt {
    /// At once.
    Now,
    /// At this moment.
    At(Timestamp),
    /// This long after it is stored.
    After(Millis),
}

impl RunAt {
    /// The absolute time, at `now`.
    #[must_use]
    pub fn moment(self, now: Timestamp) -> Timestamp {
        match self {
            Self::Now => now,
            Self::At(moment) => moment,
            Self::After(span) => now + span,
        }
    }
}

/// The caller's name for a job within its tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Idempotency {
    /// The key.
    pub key: Arc<str>,
    /// How long it refers to the job.
    pub window: KeyWindow,
}

/// How long a key refers to its job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyWindow {
    /// For this long.
    For(Millis),
    /// As long as the job is live.
    Live,
}

impl<T: Into<Millis>> From<T> for KeyWindow {
    fn from(span: T) -> Self {
        Self::For(span.into())
    }
}

/// A call to a URL.
#[derive(Clone, PartialEq, Eq)]
pub struct HttpCall {
    /// The HTTP method.
    pub method: String,
    /// The URL to call.
    pub url: String,
    /// Names and values.
    pub headers: Vec<(String, String)>,
    /// Signs the call by the Standard Webhooks scheme: `whsec_…`. Deliveries and alert notices have one.
    pub secret: Option<String>,
    /// The stable `webhook-id` of a signed call.
    pub webhook_id: Option<String>,
}

/// Leaves out headers and the secret, because debug output may end up in a log.
impl fmt::Debug for HttpCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpCall").field("method", &self.method).field("url", &self.url).finish_non_exhaustive()
    }
}

/// A completion webhook: what to call when a job finishes.
#[derive(Clone, PartialEq, Eq)]
pub struct Webhook {
    /// The URL to call.
    pub url: String,
    /// The finished states to report.
    pub events: Vec<State>,
    /// `whsec_…`; calls are unsigned without it.
    pub secret: Option<String>,
    /// The delivery's policy.
    pub policy: Arc<Policy>,
}

/// Leaves out the secret, because debug output may end up in a log.
impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Webhook").field("url", &self.url).field("events", &self.events).finish_non_exhaustive()
    }
}

/// A job as its store knows it, live or archived.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Job {
    /// Its id.
    pub id: JobId,
    /// Its owner.
    pub tenant: Tenant,
    /// Its queue.
    pub queue: QueueName,
    /// The id of its queue.
    pub queue_id: QueueId,
    /// Who carries out its attempts.
    pub executor: Executor,
    /// The kind, which chooses a handler.
    pub kind: Kind,
    /// Its JSON text.
    pub payload: Payload,
    /// Its priority among the due jobs of its queue.
    pub priority: Priority,
    /// Its state.
    pub state: State,
    /// Why it was given up; set exactly if `state` is `failed`.
    pub reason: Option<Reason>,
    /// How often its effects may happen.
    pub delivery: Delivery,
    /// Its retry policy, all levels merged.
    pub policy: Arc<Policy>,
    /// Attempts claimed so far; the number of the current one while running.
    pub attempt: u32,
    /// Failures since it was created or replayed.
    pub failures: u32,
    /// Lost attempts since it was created or replayed.
    pub crashes: u32,
    /// How often it was sent again.
    pub replays: u32,
    /// When it was stored.
    pub created_at: Timestamp,
    /// When it is, or was last, due.
    pub due_at: Timestamp,
    /// When the first attempt of the present allowance was claimed.
    pub first_attempt_at: Option<Timestamp>,
    /// When the current or last attempt was claimed.
    pub claimed_at: Option<Timestamp>,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
    /// The delay before the current or last attempt; zero before the first.
    pub previous_delay: Millis,
    /// If it is not started by then, it fails (`expired`).
    pub start_by: Option<Timestamp>,
    /// Longest an attempt may take.
    pub timeout: Option<Millis>,
    /// Its idempotency key.
    pub idempotency_key: Option<Arc<str>>,
    /// Whether a cancel was requested while it ran.
    pub cancel_requested: bool,
    /// Class and message of the last failure.
    pub error_class: Option<String>,
    /// The message of the error.
    pub error: Option<String>,
    /// JSON returned by the handler on success.
    pub result: Option<Payload>,
    /// When an operator declared this dead letter dealt with.
    pub discarded_at: Option<Timestamp>,
    /// Why an operator discarded it.
    pub discard_reason: Option<String>,
    /// What to call, for the executor `http`.
    pub http: Option<Arc<HttpCall>>,
    /// What is called when it has finished.
    pub webhook: Option<Arc<Webhook>>,
    /// The schedule it is a run of.
    pub schedule: Option<JobId>,
    /// The job whose completion this delivery reports.
    pub parent: Option<JobId>,
    /// W3C trace context of the producer, or that its trace is not recorded.
    pub traceparent: Option<Arc<str>>,
    /// What per-key limits, holds and breakers apply to.
    pub limit_key: Option<Arc<str>>,
}

impl Job {
    /// How many attempts it gets at most: one, if it is at-most-once.
    #[must_use]
    pub fn max_attempts(&self) -> u32 {
        max_attempts(self.delivery, &self.policy)
    }

    /// The facts about a claimed job that the decision needs.
    #[must_use]
    pub fn running(&self) -> Running<'_> {
        Running {
            failures: self.failures,
            crashes: self.crashes,
            first_attempt_at: self.first_attempt_at.unwrap_or(self.created_at),
            previous_delay: self.previous_delay,
            delivery: self.delivery,
            cancel_requested: self.cancel_requested,
            is_probe: false,
            policy: &self.policy,
            rules: windlass_core::LiveRules::default(),
        }
    }

    /// The facts about a job that operators' actions need.
    #[must_use]
    pub fn standing(&self) -> Standing {
        Standing {
            state: self.state,
            is_discarded: self.discarded_at.is_some(),
            priority: self.priority,
            due_at: self.due_at,
            start_by: self.start_by,
            has_started: self.first_attempt_at.is_some(),
        }
    }

    /// The W3C trace context that the job was stored with.
    #[must_use]
    pub fn traceparent(&self) -> Option<&str> {
        self.traceparent.as_deref().filter(|text| *text != NOT_RECORDED)
    }

    /// The key that is the same for every attempt: the caller's, or one made from the installation and the job's id.
    #[must_use]
    pub fn stable_key(&self, installation: &str) -> String {
        let own = self.idempotency_key.as_deref();
        own.map_or_else(|| format!("windlass-{}", within(installation, "-", &self.id.to_string())), str::to_owned)
    }

    /// The `webhook-id` of its call, if that is a webhook: the same for every attempt, and different in every
    /// installation.
    #[must_use]
    pub fn webhook_id(&self, installation: &str) -> Option<String> {
        let stored = self.http.as_ref()?.webhook_id.as_deref()?;
        let number = stored.strip_prefix(WEBHOOK_ID).unwrap_or(stored);
        Some(format!("{WEBHOOK_ID}{}", within(installation, "_", number)))
    }
}

/// What every `webhook-id` begins with.
pub(crate) const WEBHOOK_ID: &str = "msg_";

/// A number that an installation gave, as other systems see it.
pub(crate) fn within(installation: &str, separator: &str, number: &str) -> String {
    if installation.is_empty() { number.to_owned() } else { format!("{installation}{separator}{number}") }
}

/// A running job together with the lease it runs under. Only a claim creates one, and only a claimed job can be
/// committed.
#[derive(Debug, Clone)]
pub struct ClaimedJob {
    /// The job as it was claimed.
    pub job: Job,
    /// The lease it is held under.
    pub lease: LeaseId,
    /// Whether this attempt tests a destination behind an open circuit breaker.
    pub is_probe: bool,
}

impl ClaimedJob {
    /// The same job with a cancel requested by an operator.
    #[must_use]
    pub fn with_cancel_requested(&self) -> Self {
        Self { job: Job { cancel_requested: true, ..self.job.clone() }, ..self.clone() }
    }
}

impl std::ops::Deref for ClaimedJob {
    type Target = Job;
    fn deref(&self) -> &Job {
        &self.job
    }
}

/// The id of a queue in its store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueId(pub i64);

/// A lease's random id, drawn by the worker. With the attempt number it is the fence. Positive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseId(pub i64);

impl LeaseId {
    /// Draws a new one.
    #[must_use]
    pub fn draw(random: &crate::random::Random) -> Self {
        Self((random.number() >> 1) as i64)
    }

    /// Parses the output of [`fmt::Display`].
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let number = i64::from_str_radix(text, 16).ok()?;
        (text.len() == 16 && number >= 0).then_some(Self(number))
    }
}

/// Sixteen hexadecimal digits.
impl fmt::Display for LeaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}
