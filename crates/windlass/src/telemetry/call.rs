//! The span of a call to a URL: an HTTP job or a webhook delivery. The receiver is handed its context.

use super::attempt::AttemptTrace;
use super::span::job_facts;
use super::{Span, SpanKind, SpanStatus, TraceContext, Tracer};
use crate::clock::Clock;
use crate::event::{LOGGED_ERROR, cut, loggable};
use crate::job::{HttpCall, Job, LeaseId};
use crate::leases::text::clean;
use windlass_core::{Failure, Timestamp};

/// The attempt that makes a call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallTrace<'a> {
    tracer: &'a Tracer,
    attempt: TraceContext,
}

impl Tracer {
    /// The trace of the calls that an attempt makes.
    pub(crate) fn call(&self, job: &Job, lease: LeaseId) -> CallTrace<'_> {
        let AttemptTrace { context, .. } = self.attempt(job, lease);
        CallTrace { tracer: self, attempt: context }
    }
}

impl<'a> CallTrace<'a> {
    /// A call begins.
    pub(crate) fn begin(self, job: &'a Job, call: &'a HttpCall, clock: &'a Clock) -> OpenCall<'a> {
        let context = if self.attempt.is_sampled { self.tracer.context(Some(self.attempt)) } else { self.attempt };
        OpenCall { trace: self, context, job, call, clock, started_at: clock.now(), is_ended: false }
    }
}

/// A call under way. Dropped without an end, it was stopped.
pub(crate) struct OpenCall<'a> {
    trace: CallTrace<'a>,
    context: TraceContext,
    job: &'a Job,
    call: &'a HttpCall,
    clock: &'a Clock,
    started_at: Timestamp,
    is_ended: bool,
}

impl OpenCall<'_> {
    /// What the receiver is handed.
    pub(crate) fn traceparent(&self) -> String {
        self.context.to_string()
    }

    /// The call has ended: with this status, if there was an answer, and with this failure, if it failed.
    pub(crate) fn end(mut self, answered: Option<u16>, failure: Option<&Failure>) {
        self.is_ended = true;
        let status = failure.map_or(SpanStatus::Ok, |failure| {
            let text = loggable(self.job, Some(&failure.class), &failure.message);
            SpanStatus::Error(clean(text.as_deref().unwrap_or(&failure.class)))
        });
        self.record(answered, failure.map(|failure| failure.class.as_str()), status);
    }

    fn record(&self, answered: Option<u16>, class: Option<&str>, status: SpanStatus) {
        if !self.context.is_sampled {
            return;
        }
        let mut attributes = job_facts(self.job);
        attributes.push(("http.request.method", self.call.method.as_str().into()));
        // A query may hold anything, so it is left out.
        let shown = self.job.shown_url().unwrap_or_default();
        let place = shown.split(['?', '#']).next().unwrap_or_default();
        attributes.push(("url.full", cut(place, LOGGED_ERROR).as_ref().into()));
        if let Ok(url) = url::Url::parse(&self.call.url) {
            attributes.extend(url.host_str().map(|host| ("server.address", host.into())));
            attributes.extend(url.port_or_known_default().map(|port| ("server.port", u32::from(port).into())));
        }
        attributes.extend(answered.map(|status| ("http.response.status_code", u32::from(status).into())));
        attributes.extend(class.map(|class| ("errorClass", clean(class).into())));
        attributes.extend(class.map(|class| ("error.type", clean(class).into())));
        self.trace.tracer.record(Span {
            context: self.context,
            parent: Some(self.trace.attempt.span),
            name: self.call.method.clone(),
            kind: SpanKind::Client,
            started_at: self.started_at,
            ended_at: self.clock.now(),
            attributes,
            status,
        });
    }
}

impl Drop for OpenCall<'_> {
    fn drop(&mut self) {
        if !self.is_ended {
            self.record(None, None, SpanStatus::Error("the call was stopped before it was answered".into()));
        }
    }
}
