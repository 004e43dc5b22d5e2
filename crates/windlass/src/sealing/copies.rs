//! Jobs with their history, sealed for a store and opened from one.

use super::cipher::{Cipher, OpenError};
use super::values::{output, place_mark};
use crate::job::Payload;
use crate::store::JobCopy;
use std::sync::Arc;
use windlass_core::{Attempt, JobId};

impl Cipher {
    pub fn open_copy(&self, copy: JobCopy) -> Result<JobCopy, OpenError> {
        let id = copy.job.id;
        let attempts = copy.attempts.into_iter().map(|attempt| self.open_attempt(id, attempt));
        Ok(JobCopy { attempts: attempts.collect::<Result<_, _>>()?, job: self.open_job(copy.job)?, key: copy.key })
    }

    /// The same parts that an enqueue and the commits of its attempts would have sealed.
    pub fn seal_copy(&self, copy: JobCopy) -> JobCopy {
        if self.ring.is_empty() {
            return copy;
        }
        let JobCopy { mut job, attempts, key } = copy;
        let id = job.id.to_string();
        job.payload = self.seal_payload(&job.payload, &job.tenant, &job.kind, job.idempotency_key.is_some());
        job.http = job.http.map(|call| Arc::new(self.seal_call(&call, &job.tenant)));
        job.webhook = job.webhook.map(|webhook| Arc::new(self.seal_webhook(&webhook, &job.tenant)));
        let failed = attempts.iter().rev().find(|attempt| attempt.error_class.is_some());
        let trace = failed.and_then(|attempt| attempt.trace.as_deref());
        job.error = job.error.map(|error| self.seal(&error, output(&id, "error"), Some(&place_mark(&error, trace))));
        let result = |text: Payload| format!("\"{}\"", self.seal(&text, output(&id, "result"), None)).into();
        job.result = job.result.map(result);
        let attempts = attempts.into_iter().map(|attempt| self.seal_attempt(job.id, attempt)).collect();
        JobCopy { job, attempts, key }
    }

    fn seal_attempt(&self, job: JobId, mut attempt: Attempt) -> Attempt {
        let id = job.to_string();
        let mark = attempt.error.as_deref().map(|error| place_mark(error, attempt.trace.as_deref()));
        let seal = |text: String, field, mark: Option<&str>| self.seal(&text, output(&id, field), mark);
        attempt.error = attempt.error.map(|text| seal(text, "error", mark.as_deref()));
        attempt.note = attempt.note.map(|text| seal(text, "note", None));
        attempt.trace = attempt.trace.map(|text| seal(text, "trace", None));
        attempt
    }
}
